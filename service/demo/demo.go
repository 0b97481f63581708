// Package demo is a shop that demonstrates the service: drawn products, shoppers of several kinds with changing tastes
// that are not linear, and three placements that serve the same shoppers.
//
//	products.go    the catalogue; picture.go draws it
//	world.go       the shoppers and their tastes
//	placements.go  the three placements
//	demo.go        shoppers come, and shop over HTTP; pace.go how many come a second
//	curve.go       the windows' values
//	visitor.go     the person in front of the page, as a shopper
//	routes.go      the page's requests
package demo

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"vitrine"
	"vitrine/assortment"
	"vitrine/env"
	"vitrine/service/api"
	"vitrine/service/client"
)

// Seed determines the products of the shop, its shoppers and its placements.
const Seed = 1

// halfSeason is the number of shoppers after which tastes change.
const halfSeason = 2000

// maxShoppers is the max number of shoppers in the shop at once.
const maxShoppers = 32

// Demo is the shop. It is safe for concurrent use.
type Demo struct {
	Logger *slog.Logger // must be set

	world   *world
	at      map[string]int // the products by id
	compare float64        // [Compare], or 0 in tests
	pace    pace
	service atomic.Pointer[client.Client] // nil while the shop is closed

	mu     sync.Mutex // of all below
	record record
	last   *visited // the latest shopper
	failed time.Time
}

// New returns the shop, which is empty before Run.
func New(logger *slog.Logger) *Demo {
	d := &Demo{Logger: logger, world: &world{products: catalogue(Seed), half: halfSeason}, at: map[string]int{},
		compare: Compare}
	for i, p := range d.world.products {
		d.at[p.ID] = i
	}
	d.pace.set(startSpeed)
	return d
}

// Run opens the shop at the address of a service, and sends shoppers until ctx ends.
func (d *Demo) Run(ctx context.Context, url string) error {
	service := &client.Client{Base: url}
	defer service.CloseIdleConnections()
	met, err := d.begin(ctx, service)
	if err != nil {
		return err
	}
	d.service.Store(service)
	defer d.service.Store(nil)
	rounds := make(chan int)
	var shoppers sync.WaitGroup
	for range maxShoppers {
		shoppers.Go(func() {
			s := shopping{Shoppers: env.Shoppers{World: d.world, Seed: Seed}, demo: d, service: service}
			for round := range rounds {
				if err := s.meet(ctx, round); err != nil && ctx.Err() == nil {
					d.complain(round, err)
				}
			}
		})
	}
	d.pace.arrivals(ctx, met+1, rounds)
	close(rounds)
	shoppers.Wait()
	return nil
}

// begin makes the placements and the catalogue, and returns the number of shoppers so far.
func (d *Demo) begin(ctx context.Context, service *client.Client) (met int, err error) {
	configs := Placements(Seed, d.compare)
	for _, name := range names {
		if _, err := service.Put(ctx, name, configs[name]); err != nil {
			return 0, err
		}
		if name == auto {
			if _, err := service.PutItems(ctx, name, items(d.world.products)); err != nil {
				return 0, err
			}
		}
		stats, err := service.Stats(ctx, name)
		if err != nil {
			return 0, err
		}
		if name != auto { // where visitors also decide
			met = max(met, int(stats.Decisions))
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.record = newRecord(met)
	return met, nil
}

// visited is a shopper after all windows.
type visited struct {
	Round   int       `json:"round"`
	Kind    string    `json:"kind"`
	Windows []*window `json:"windows"` // in the order of names

	optimum float64 // the expected revenue of the best window
}

// window is a placement's page for a shopper.
type window struct {
	Placement string   `json:"placement"`
	Shown     []string `json:"shown"`
	Taken     string   `json:"taken,omitempty"`

	worth     float64  // its expected revenue, by the true tastes
	predicted *float64 // its expected revenue, by the placement; nil without an estimate
	earned    float64
}

// shopping sends shoppers to the service, one after the other. They are the customers of an experiment: with the same
// seed, world and learner the regret equals the workbench's.
type shopping struct {
	env.Shoppers
	shopper env.Shopper
	demo    *Demo
	service *client.Client
}

// meet sends the shopper of a round to all placements.
func (s *shopping) meet(ctx context.Context, round int) error {
	p, d := &s.shopper, s.demo
	if err := s.Meet(p, round); err != nil {
		return err
	}
	kind := kindOf(p.Context.Features.RawRowView(0))
	v := &visited{Round: round, Kind: kinds[kind]}
	_, v.optimum = assortment.Maximize(nil, assortment.AtMost(size), p.Utilities, p.Context.Revenue)
	for _, name := range names {
		w, err := s.visit(ctx, name, round)
		if err != nil {
			return fmt.Errorf("placement %q: %w", name, err)
		}
		v.Windows = append(v.Windows, w)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.record.add(v)
	d.pace.count()
	if d.last == nil || d.last.Round < round {
		d.last = v
	}
	return nil
}

// visit asks a placement for a window, and reports what the shopper of the round takes from it.
func (s *shopping) visit(ctx context.Context, placement string, round int) (*window, error) {
	p := &s.shopper
	kind := kindOf(p.Context.Features.RawRowView(0))
	answer, err := s.service.Decide(ctx, placement, &api.Request{Decision: fmt.Sprintf("%s-%d", placement, round),
		User: user(kind)})
	if err != nil {
		return nil, err
	}
	w := &window{Placement: placement, Shown: answer.Items(), predicted: answer.ExpectedRevenue}
	var shown vitrine.Assortment
	for _, id := range w.Shown {
		shown = append(shown, s.demo.at[id])
	}
	slices.Sort(shown)
	w.worth = vitrine.ExpectedRevenue(shown, p.Utilities, p.Context.Revenue)
	if c := p.Choose(shown); c != vitrine.Outside {
		product := s.demo.world.products[shown[c-1]]
		w.Taken, w.earned = product.ID, product.Price
	}
	return w, s.service.Outcome(ctx, placement, answer.Decision, w.Taken)
}

func user(kind int) api.Values { return api.Values{api.Text("kind", kinds[kind])} }

// complain logs a failure, at most once a second.
func (d *Demo) complain(round int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := time.Now(); now.Sub(d.failed) >= time.Second {
		d.failed = now
		d.Logger.Warn("a shopper went away", "round", round, "cause", err.Error())
	}
}
