// Command ogen plays the day of the command oapi with the client that ogen generates.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"client/ogen/shop"

	"github.com/go-faster/jx"
)

// A service without keys needs none.
type open struct{ shop.SecuritySource }

func (open) Key(context.Context, shop.OperationName) (shop.Key, error) { return shop.Key{}, nil }

func main() {
	log.SetFlags(0)
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal("ogen: ", err)
	}
}

func run(ctx context.Context, base string) error {
	c, err := shop.NewClient(base, open{})
	if err != nil {
		return err
	}
	put, err := c.PutPlacement(ctx, &shop.Placement{
		MaxSize: 2,
		Features: []shop.Feature{{Name: "price", Kind: shop.FeatureKindNumber},
			{Name: "brand", Kind: shop.FeatureKindCategory, Default: jx.Raw(`"none"`)}},
		Policy: shop.NewOptPlacementPolicy(shop.PlacementPolicy{"name": jx.Raw(`"ucb-mnl"`)}),
	}, shop.PutPlacementParams{Name: "ogen"})
	if _, ok := put.(*shop.PutPlacementCreated); err != nil || !ok {
		return fmt.Errorf("put: %#v, %v", put, err)
	}
	features := func(price string) shop.OptItemFeatures {
		return shop.NewOptItemFeatures(shop.ItemFeatures{"price": jx.Raw(price)})
	}
	request := &shop.DecideRequest{Items: []shop.Item{{ID: "sku1", Features: features("1.2")},
		{ID: "sku2", Features: features("0.7")}}}
	for _, choice := range []shop.OptNilString{shop.NewOptNilString("sku2"), {Set: true, Null: true}} {
		answer, err := c.Decide(ctx, request, shop.DecideParams{Name: "ogen"})
		created, ok := answer.(*shop.DecideCreated)
		if err != nil || !ok || len(created.Response.Assortment) != 2 || created.Response.OutsideProbability.Null {
			return fmt.Errorf("decide: %#v, %v", answer, err)
		}
		outcome, err := c.Outcome(ctx, &shop.Outcome{Choice: choice},
			shop.OutcomeParams{Name: "ogen", ID: created.Response.DecisionID})
		if _, ok := outcome.(*shop.OutcomeNoContent); err != nil || !ok {
			return fmt.Errorf("outcome: %#v, %v", outcome, err)
		}
		decision, err := c.GetDecision(ctx, shop.GetDecisionParams{Name: "ogen", ID: created.Response.DecisionID})
		if got, ok := decision.(*shop.Decision); err != nil || !ok || got.Status != "chosen" ||
			got.Choice.Null != choice.Null {
			return fmt.Errorf("the decision: %#v, %v", decision, err)
		}
	}
	stats, err := c.Stats(ctx, shop.StatsParams{Name: "ogen"})
	if got, ok := stats.(*shop.Stats); err != nil || !ok || got.Outcomes != 2 || got.ByPolicy.Purchases != 1 {
		return fmt.Errorf("stats: %#v, %v", stats, err)
	}
	refused, err := c.Stats(ctx, shop.StatsParams{Name: "nowhere"})
	if problem, ok := refused.(*shop.StatsNotFound); err != nil || !ok || problem.Detail == "" {
		return fmt.Errorf("a problem: %#v, %v", refused, err)
	}
	fmt.Println("ogen: put, decide, outcomes, decision, stats and a problem")
	return nil
}
