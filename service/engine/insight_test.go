package engine_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp/cmpopts"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/offer"
)

func insight(t testing.TB, e *engine.Engine, name string, now int64) *api.Insight {
	t.Helper()
	x := fatal.Or(e.Insight(t.Context(), name, now))(t)
	return x
}

// The counts of an insight equal a hand count, and a replay of the log, or of a snapshot and the entries after it,
// gives the same.
func TestInsightCounts(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store})
	put(t, e, "home", reasoned(`{"name":"ucb-mnl"}`, `,"mode":"explore","explore_share":0.3`))
	rng := rand.New(rand.NewPCG(6, 2))
	items, places := map[string]api.ItemInsight{}, make([]api.Position, 2)
	var bins [10]struct{ n, bought, predicted float64 }
	var middle []byte
	chance := 0
	const decisions = 1300
	var revenues []float64
	for round := range decisions {
		if round == decisions/2 {
			middle = snapshot(t, e)
		}
		r := asking(rng)
		r.User = aged(0)
		a := decide(t, e, "home", r, int64(round)*minute)
		item, revenue := "", 0.0
		if rng.IntN(3) == 0 {
			item = a.IDs()[rng.IntN(len(a.IDs()))]
		}
		fatal.If(t, e.Outcome(t.Context(), "home", a.Decision, item, int64(round)*minute))
		for k, id := range a.IDs() {
			x := items[id]
			x.ID, x.Shown, places[k].Shown, places[k].Position = id, x.Shown+1, places[k].Shown+1, k+1
			if id == item {
				revenue = *r.Items[slices.IndexFunc(r.Items, func(i api.Item) bool { return i.ID == id })].Revenue
				x.Taken, places[k].Taken = x.Taken+1, places[k].Taken+1
				x.Revenue += revenue
			}
			items[id] = x
		}
		if a.Mode == offer.ByChance {
			chance++
		}
		b := &bins[min(int(10*(1-a.Outside)), 9)]
		b.n, b.predicted = b.n+1, b.predicted+1-a.Outside
		if item != "" {
			b.bought++
		}
		revenues = append(revenues, revenue)
	}
	wait(t, e)
	x := insight(t, e, "home", 0)
	t.Run("items", func(t *testing.T) {
		for _, got := range x.Items {
			want := items[got.ID]
			if got.Utility == nil || got.SD == nil || *got.SD <= 0 || *got.SlotWorth <= 0 {
				t.Errorf("%s has no utility: %+v", got.ID, got)
			}
			expect.Equal(t, got, want, cmpopts.IgnoreFields(api.ItemInsight{}, "Utility", "SD", "SlotWorth"),
				cmpopts.EquateApprox(1e-12, 0))
		}
		if !slices.IsSortedFunc(x.Items, func(a, b api.ItemInsight) int { return int(b.Shown) - int(a.Shown) }) ||
			len(x.Items) != len(items) {
			t.Errorf("%d items, %d were shown: %+v", len(x.Items), len(items), x.Items)
		}
	})
	t.Run("places", func(t *testing.T) {
		expect.Equal(t, x.Positions, places, "places")
	})
	t.Run("exploration", func(t *testing.T) {
		expect.Equal(t, x.ExplorationShare, float64(chance)/decisions, "the exploration share is")
	})
	t.Run("calibration", func(t *testing.T) {
		for _, b := range x.Calibration {
			want := bins[int(math.Round(b.Low*10))]
			if float64(b.Rounds) != want.n || math.Abs(b.Observed-want.bought/want.n) > 1e-12 ||
				math.Abs(b.Predicted-want.predicted/want.n) > 1e-9 || b.High <= b.Low {
				t.Errorf("bin %+v, counted %+v", b, want)
			}
		}
	})
	t.Run("drift", func(t *testing.T) {
		d := x.Drift
		if d == nil || d.Recent.Decisions < 1000 || d.Recent.Decisions > 1100 {
			t.Fatalf("drift %+v", d)
		}
		sum := func(revenues []float64) (all float64) {
			for _, r := range revenues {
				all += r
			}
			return all
		}
		n := d.Before.Decisions
		if math.Abs(d.Before.Earned-sum(revenues[:n])) > 1e-9 ||
			math.Abs(d.Recent.Earned-sum(revenues[n:n+d.Recent.Decisions])) > 1e-9 || n+d.Recent.Decisions < 1295 ||
			d.Recent.Predicted <= 0 || d.Recent.ByChance.Rounds == 0 {
			t.Errorf("drift %+v", d)
		}
	})
	t.Run("latency", func(t *testing.T) {
		if l := x.Latency; l == nil || l.Decisions != decisions || l.P50 <= 0 || l.P99 < l.P95 || l.P95 < l.P50 {
			t.Errorf("latency %+v", l)
		}
	})
	for name, snapshot := range map[string][]byte{"the log": nil, "a snapshot": middle} {
		t.Run("from "+name, func(t *testing.T) {
			again := opened(t, engine.Options{Store: store, Snapshot: snapshot})
			wait(t, again)
			expect.Equal(t, insight(t, again, "home", 0), x, cmpopts.IgnoreFields(api.Insight{}, "Latency",
				"Families"))
		})
	}
}

// The weights of the families sum to 1 after each of the rounds that are noted, at most 128 of them.
func TestInsightFamilies(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", reasoned(`{"name":"auto"}`, ""))
	for range 150 {
		teach(t, e, "home", 1)
	}
	x := insight(t, e, "home", 0)
	total := map[uint64]float64{}
	for _, f := range x.Families {
		for k, p := range f.Points {
			if total[p.Learned] += p.Weight; k > 0 && p.Learned <= f.Points[k-1].Learned {
				t.Errorf("%s has the weight after %d rounds after that of %d", f.Family, p.Learned,
					f.Points[k-1].Learned)
			}
		}
	}
	if len(total) < 64 || len(total) > 128 || total[0] == 0 {
		t.Errorf("the weights of %d rounds are noted", len(total))
	}
	for learned, sum := range total {
		if math.Abs(sum-1) > 1e-9 {
			t.Errorf("after %d rounds the weights sum to %v", learned, sum)
		}
	}
}

// The effect of a feature is the mean utility of the items that were shown, each with this value of it: the same as
// trials of such items say.
func TestInsightEffects(t *testing.T) {
	for _, name := range []string{"auto", "ucb-mnl"} {
		t.Run(name, func(t *testing.T) {
			e := opened(t, engine.Options{Store: new(memlog.Store)})
			put(t, e, "home", strings.Replace(reasoned(fmt.Sprintf(`{"name":%q}`, name), ""), `"max_size":2`,
				`"max_size":6`, 1))
			rng := rand.New(rand.NewPCG(1, 7))
			var r *api.Request
			for range 40 {
				r = asking(rng)
				r.Include = []string{"sku0", "sku1", "sku2", "sku3", "sku4", "sku5"}
				a := decide(t, e, "home", r, 0)
				fatal.If(t, e.Outcome(t.Context(), "home", a.Decision, a.IDs()[rng.IntN(6)], 0))
			}
			wait(t, e)
			x := insight(t, e, "home", 0)
			if x.Background != 6 || len(x.Effects) != 3 {
				t.Fatalf("%d effects over %d rows", len(x.Effects), x.Background)
			}
			try := func(change func(values api.Values), user api.Values) (mean, sd, share, high float64) {
				q := &api.Request{User: user, Include: r.Include}
				for _, item := range r.Items {
					item.Features = slices.Clone(item.Features)
					change(item.Features)
					q.Items = append(q.Items, item)
				}
				_, why, err := try(t.Context(), e, "home", q, 0)
				fatal.If(t, err)
				for _, item := range why.Items {
					mean, sd = mean+*item.Utility/6, sd+*item.SD/6
					share, high = share+1/(1+math.Exp(-*item.Utility))/6, high+1/(1+math.Exp(-*item.Utility-*item.SD))/6
				}
				return mean, sd, share, high
			}
			for _, f := range x.Effects {
				expect.Equal(t, len(f.Points), map[string]int{"x": 9, "brand": 2, "age": 1}[f.Feature], f.Feature,
					"has n points")
				for _, p := range f.Points {
					mean, sd, share, high := try(func(values api.Values) {
						switch v := p.Value.(type) {
						case float64:
							if f.Feature == "x" {
								values[0].Number = v
							}
						case string:
							values[1].Text = v
						}
					}, r.User)
					if math.Abs(p.Utility-mean) > 1e-9 || math.Abs(*p.SD-sd) > 1e-9 {
						t.Errorf("%s = %v has the effect %v ± %v, trials have %v ± %v", f.Feature, p.Value, p.Utility,
							*p.SD, mean, sd)
					}
					if math.Abs(p.Share-share) > 1e-9 || math.Abs(*p.High-high) > 1e-9 || *p.Low >= p.Share {
						t.Errorf("%s = %v: %v would buy, from %v to %v, trials have %v and %v", f.Feature, p.Value,
							p.Share, *p.Low, *p.High, share, high)
					}
				}
			}
			for _, item := range x.Items {
				if u, worth := *item.Utility,
					*item.SlotWorth; math.Abs(worth-revenueIn(r, item.ID)*math.Exp(u)/(1+math.Exp(u))) > 1e-12 {
					t.Errorf("a slot of %s is worth %v", item.ID, worth)
				}
			}
		})
	}
}

func revenueIn(r *api.Request, id string) float64 {
	return *r.Items[slices.IndexFunc(r.Items, func(i api.Item) bool { return i.ID == id })].Revenue
}

// If there are too many items, the least shown ones are counted together, without loss. The state stays within the
// placement's bytes.
func TestInsightManyItems(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store})
	put(t, e, "home", `{"max_size":2,"features":`+numbers(1)+`,"policy":{"name":"uniform"},"memory_bytes":2000000}`)
	long := strings.Repeat("ü", 90)
	const n = 1500
	for round := range n {
		r := &api.Request{}
		for k := range 2 {
			r.Items = append(r.Items, api.Item{ID: fmt.Sprint(long, round, "<script>", k),
				Features: api.Values{api.Number("x", 1)}})
		}
		r.Items[1].ID = "always"
		r.Include = []string{"always"}
		a := decide(t, e, "home", r, 0)
		fatal.If(t, e.Outcome(t.Context(), "home", a.Decision, "always", 0))
	}
	x := insight(t, e, "home", 0)
	shown, taken := x.Others.Shown, x.Others.Taken
	for _, item := range x.Items {
		shown, taken = shown+item.Shown, taken+item.Taken
	}
	all := uint64(0)
	for _, p := range x.Positions {
		all += p.Shown
	}
	if x.Items[0].ID != "always" || x.Items[0].Shown != n || x.Items[0].Revenue != n || shown != all || taken != n {
		t.Errorf("%d of %d showings, %d takings; the first is %+v", shown, all, taken, x.Items[0])
	}
	if most := 2 * 2000000 / 16 / 700; len(x.Items) > most || x.Dropped+uint64(len(x.Items)) < all-n {
		t.Errorf("%d items and %d dropped, at most %d have counts", len(x.Items), x.Dropped, most)
	}
	if x.Effects != nil || x.Items[0].Utility != nil {
		t.Errorf("a policy that knows nothing has effects: %+v", x.Effects)
	}
	replays(t, e, engine.Options{Store: store})
}

// A placement without decisions gets an insight, and the same one for three seconds.
func TestInsightEmpty(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", shop)
	x := insight(t, e, "home", 0)
	text, err := json.Marshal(x)
	if err != nil || !strings.Contains(string(text), `"items":[]`) || !strings.Contains(string(text),
		`"positions":[]`) || x.Drift != nil || x.Latency != nil {
		t.Errorf("%s, %v", text, err)
	}
	for k, at := range []int64{1, 2e9, 4e9, 3e9} {
		one(t, e, "home", fmt.Sprint("d", k), 1)
		fresh := insight(t, e, "home", at)
		if (fresh == x) != (k < 2) {
			t.Errorf("after %d decisions, at %d: the insight is of %v", k+1, at, fresh.Time)
		}
		x = fresh
	}
	_, err = e.Insight(t.Context(), "away", 0)
	is(t, "of an unknown placement", err, engine.ErrNotFound)
}

// Insights, explanations and trials go on beside decisions, outcomes, versions and changes, and leave the state to
// them.
func TestReadersBesideWriters(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store})
	put(t, e, "home", reasoned(`{"name":"auto"}`, ""))
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	for w := range 2 {
		writers.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 4))
			for i := range 60 {
				a := decide(t, e, "home", asking(rng), 0)
				expect.Error(t, e.Outcome(t.Context(), "home", a.Decision, a.IDs()[0], 0), nil)
				if i%20 == 10 {
					if _, err := e.Keep(t.Context(), "home", fmt.Sprint("version ", w, i), 0); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	for r := range 2 {
		readers.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(r), 5))
			for now := int64(0); ; now += 4e9 {
				select {
				case <-done:
					return
				default:
				}
				insight(t, e, "home", now)
				if _, _, err := try(t.Context(), e, "home", asking(rng), 0); err != nil {
					t.Error(err)
				}
				if _, err := e.Explain(t.Context(), "home", fmt.Sprint("home~1.", 1+rng.IntN(100)), 0, nil); err != nil &&
					!errors.Is(err, engine.ErrNotFound) {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	put(t, e, "home", reasoned(`{"name":"ucb-mnl"}`, ""))
	close(done)
	readers.Wait()
	wait(t, e)
	replays(t, e, engine.Options{Store: store})
}
