// Command oapi plays a shop's first day against a running service, with the client that oapi-codegen generates from the
// service's OpenAPI document: it puts a placement, decides twice, reports a purchase and an outcome without one, and reads
// statistics and the list. .ci/run client generates the package shop. The module pins the generators of Go clients.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"

	"client/oapi/shop"
)

func main() {
	log.SetFlags(0)
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal("oapi-codegen: ", err)
	}
}

func run(ctx context.Context, base string) error {
	c, err := shop.NewClientWithResponses(base)
	if err != nil {
		return err
	}
	placement := shop.Placement{
		MaxSize:  2,
		Features: []shop.Feature{{Name: "price", Kind: "number"}, {Name: "brand", Kind: "category", Default: "none"}},
		Policy:   &map[string]any{"name": "ucb-mnl"},
	}
	put, err := c.PutPlacementWithResponse(ctx, "home", nil, placement)
	if err != nil {
		return err
	}
	if put.StatusCode() != http.StatusCreated {
		return fmt.Errorf("put: %s", put.Body)
	}
	features := func(price float64) *map[string]any { return &map[string]any{"price": price} }
	request := shop.DecideRequest{Items: &[]shop.Item{{Id: "sku1", Features: features(1.2)},
		{Id: "sku2", Features: features(0.7)}}}
	taken := "sku2"
	for _, choice := range []*string{&taken, nil} {
		decided, err := c.DecideWithResponse(ctx, "home", request)
		if err != nil {
			return err
		}
		if decided.JSON201 == nil || len(decided.JSON201.Assortment) != 2 || decided.JSON201.OutsideProbability == nil {
			return fmt.Errorf("decide: %s", decided.Body)
		}
		id := decided.JSON201.DecisionId
		body := shop.Outcome{Choice: choice}
		if choice == nil {
			body.Choices = &[]shop.Choice{} // a choice of nil would be left out
		}
		response, err := c.OutcomeWithResponse(ctx, "home", id, body)
		if err != nil {
			return err
		}
		if response.StatusCode() != http.StatusNoContent {
			return fmt.Errorf("outcome: %s", response.Body)
		}
		got, err := c.GetDecisionWithResponse(ctx, "home", id, nil)
		if err != nil {
			return err
		}
		if got.JSON200 == nil || got.JSON200.Status != "chosen" || (got.JSON200.Choice == nil) != (choice == nil) {
			return fmt.Errorf("the decision: %s", got.Body)
		}
	}
	stats, err := c.StatsWithResponse(ctx, "home", nil)
	if err != nil {
		return err
	}
	if stats.JSON200 == nil || stats.JSON200.Outcomes != 2 || stats.JSON200.ByPolicy.Purchases != 1 {
		return fmt.Errorf("stats: %s", stats.Body)
	}
	list, err := c.ListPlacementsWithResponse(ctx, nil)
	if err != nil {
		return err
	}
	if list.JSON200 == nil || len(list.JSON200.Placements) != 1 || list.JSON200.Placements[0].Config.MaxSize != 2 {
		return fmt.Errorf("list: %s", list.Body)
	}
	refused, err := c.StatsWithResponse(ctx, "nowhere", nil)
	if err != nil {
		return err
	}
	if refused.ApplicationproblemJSON404 == nil || refused.ApplicationproblemJSON404.Detail == "" {
		return fmt.Errorf("a problem: %s", refused.Body)
	}
	fmt.Println("oapi-codegen: put, decide, outcomes, decision, stats, list and a problem")
	return nil
}
