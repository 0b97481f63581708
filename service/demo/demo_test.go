package demo

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/env"
	"vitrine/experiment"
	"vitrine/internal/fatal"
	"vitrine/service/client"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/server"
	"vitrine/service/setup"
)

// shop is a shop at a service of its own, in which shoppers are sent by hand.
type shop struct {
	*Demo
	shopping
	engine *engine.Engine
	page   http.Handler
}

func opened(t *testing.T, half int) *shop {
	t.Helper()
	wait := maxWait
	t.Cleanup(func() { maxWait = wait })
	maxWait = time.Minute // a busy machine takes long
	e := fatal.Or(engine.Open(t.Context(), engine.Options{Store: new(memlog.Store), Build: setup.NewLearner}))(t)
	t.Cleanup(e.Close)
	d := New(slog.New(slog.DiscardHandler))
	d.world.half, d.compare = half, 0
	api := httptest.NewServer(server.New(server.Options{Engine: e, Demo: d.Routes()}))
	t.Cleanup(api.Close)
	service := &client.Client{Base: api.URL}
	t.Cleanup(service.CloseIdleConnections)
	if met, err := d.begin(t.Context(), service); met != 0 || err != nil {
		t.Fatalf("%d shoppers, %v", met, err)
	}
	d.service.Store(service)
	return &shop{d, shopping{Shoppers: env.Shoppers{World: d.world, Seed: Seed}, demo: d, service: service}, e,
		api.Config.Handler}
}

// The regret of each placement over HTTP equals, in every round, the regret of an experiment with the same world,
// seed and learner. The tastes change meanwhile.
func TestDemoIsTheExperiment(t *testing.T) {
	const rounds, half = 60, 40
	dir := t.TempDir()
	s := opened(t, half)
	e := experiment.Experiment{
		Name: "demo", Rounds: rounds, Constraint: assortment.AtMost(size), Seeds: []uint64{Seed},
		World: func(*rand.Rand) env.Environment { return &world{products: catalogue(Seed), half: half} },
	}
	for _, name := range []string{auto, linear} {
		policy := fatal.Or(json.Marshal(Placements(Seed, 0)[name].Policy))(t)
		e.Policies = append(e.Policies, experiment.Policy{Label: name,
			New: func(env.Environment, *rand.Rand) (vitrine.Learner, error) {
				l, err := setup.NewLearner(setup.Spec{
					Policy: policy, Features: columnKind + len(kinds),
					Numeric: []int{columnRound, columnWarm, columnBusy,
						columnPrice},
					Items: 1000, Size: size, Rounds: 100_000, Seed: Seed,
				})
				return ofShown{l}, err
			}})
	}
	fatal.Or(experiment.Run(t.Context(), &e, experiment.Options{Dir: dir}))(t)
	text := fatal.Or(os.ReadFile(filepath.Join(dir, "demo", "runs.jsonl")))(t)
	want := map[string][]float64{}
	for line := range bytes.Lines(text) {
		var unit struct {
			Policy string    `json:"policy"`
			Regret []float64 `json:"regret"`
		}
		if err := json.Unmarshal(line, &unit); err != nil || len(unit.Regret) != rounds {
			t.Fatalf("%d rounds, %v", len(unit.Regret), err)
		}
		want[unit.Policy] = unit.Regret
	}
	regret := make([]float64, len(names))
	for round := 1; round <= rounds; round++ {
		fatal.If(t, s.meet(t.Context(), round))
		for i, w := range s.last.Windows[:2] {
			if regret[i] += s.last.optimum - w.worth; regret[i] != want[names[i]][round-1] {
				t.Fatalf("%s: regret %v in round %d, the experiment has %v", names[i], regret[i], round,
					want[names[i]][round-1])
			}
		}
		if err := s.engine.Wait(t.Context()); err != nil { // an experiment waits for its learner
			t.Fatal(err)
		}
	}
	if met, err := s.begin(t.Context(), s.shopping.service); met != rounds || err != nil {
		t.Errorf("%d shoppers after a restart, %v", met, err)
	}
}

// ofShown is a learner that observes the items shown and no others, as a service learns of items from a catalogue.
type ofShown struct{ vitrine.Learner }

func (l ofShown) Observe(r vitrine.Round) error {
	n, d := len(r.Offer.Assortment), r.Context.Features.RawMatrix().Cols
	x := &vitrine.Context{Features: mat.NewDense(n, d, nil)}
	s := make(vitrine.Assortment, n)
	for k, i := range r.Offer.Assortment {
		s[k] = k
		x.Features.SetRow(k, r.Context.Features.RawRowView(i))
		if r.Context.Revenue != nil {
			x.Revenue = append(x.Revenue, r.Context.Revenue[i])
		}
	}
	r.Context, r.Offer.Assortment = x, s
	return l.Learner.Observe(r)
}
