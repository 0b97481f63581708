package engine_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/earnings"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/offer"
)

// fate is a decision in the log.
type fate struct {
	time   int64
	by     uint8
	earned float64
	closed bool
}

// fates reads the decisions of a log, which sells for a price.
func fates(t *testing.T, e *engine.Engine, price float64) []*fate {
	t.Helper()
	byID := map[string]*fate{}
	var all []*fate
	for entry, err := range e.Events(t.Context(), 1) {
		fatal.If(t, err)
		switch b := entry.Event.Body.(type) {
		case *eventlog.Offered:
			f := &fate{time: entry.Event.Time, by: b.Mode}
			byID[b.Decision], all = f, append(all, f)
		case *eventlog.Chosen:
			f := byID[b.Decision]
			f.closed = true
			if b.Choice > 0 {
				f.earned = price
			}
		case *eventlog.Expired:
			byID[b.Decision].closed = true
		}
	}
	return all
}

// A series's points sum the log's decisions by their times, for every span and number of points; and the sum of leads
// is the policy's gain over chance. A snapshot keeps the series.
func TestSeriesIsTheLog(t *testing.T) {
	store := new(memlog.Store)
	e := guarded(t, store, showing{utility: -800})
	put(t, e, "home", `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{},"mode":"explore","explore_share":0.25}`)
	w := newTrade(t, e, 0.6, 0.2, 0.2) // the policy shows the first one: 0.6 − (0.6 + 0.2 + 0.2)/3 = 0.8/3 more a decision
	const price = 3
	w.goOn(1500, price)
	snapshot, _, err := e.Snapshot(t.Context())
	fatal.If(t, err)
	w.goOn(500, price)
	all := fates(t, e, price)
	for _, span := range []time.Duration{0, time.Hour, 24 * time.Hour, 100 * 24 * time.Hour} {
		for _, points := range []int{1, 7, 100, 5000} {
			s := fatal.Or(e.Series("home", w.now, span, points))(t)
			compareSeries(t, s, all, span, points)
		}
	}
	s, _ := e.Series("home", w.now, 0, 10)
	last := len(s.Times) - 1
	low, estimate, high := *s.OverChance.Low[last], *s.OverChance.Estimate[last], *s.OverChance.High[last]
	n := float64(len(all))
	if want := n * price * 0.8 / 3; !(low < want && want < high) || low < 0 || high > n*price {
		t.Errorf("the policy earned %v, from %v to %v, more than chance, want %v", estimate, low, high, want)
	}
	if s.OverBaseline != nil || s.Baseline != nil {
		t.Error("the series has a baseline")
	}
	recent := fatal.Or(e.Recent("home", w.now+10*second, 0))(t)
	recent.Policy = fatal.Or(e.Recent("home", w.now+31*minute, 0))(t).Policy // when no decision waits
	stats, _ := e.Stats("home")
	expect.Equal(t, recent, earnings.Recent{Policy: stats.ByPolicy, Gains: stats.Gains, Rate: 0.1}, "the statistics",
		cmpopts.IgnoreFields(earnings.Recent{}, "Latency"))
	if g := stats.Gains[0]; len(stats.Gains) != 1 || g.Over != api.OverChance ||
		g.Total != (api.Interval{Low: *s.OverChance.Low[last], Estimate: estimate, High: *s.OverChance.High[last]}) {
		t.Errorf("the series ends elsewhere than the gains %+v", stats.Gains)
	}

	again := opened(t, engine.Options{Store: store, Build: buildShowing(showing{utility: -800}), Snapshot: snapshot})
	other := fatal.Or(again.Series("home", w.now, 0, 5000))(t)
	compareSeries(t, other, all, 0, 5000)
}

func compareSeries(t *testing.T, s api.Series, all []*fate, span time.Duration, points int) {
	t.Helper()
	if len(s.Times) == 0 || len(s.Times) > points+1 {
		t.Fatalf("span %v: %d points, at most %d were asked for", span, len(s.Times), points)
	}
	now := s.Now.Unix()
	covered := 0
	for i, from := range s.Times {
		to := from + s.Seconds[i]
		if i > 0 && from < s.Times[i-1]+s.Seconds[i-1] {
			t.Fatalf("point %d begins at %d, before the one before ends", i, from)
		}
		var decisions, open uint64
		var rounds [2]uint64
		var revenue, squares [2]float64
		for _, f := range all {
			if at := f.time / second; at < from || at >= to {
				continue
			}
			covered++
			decisions++
			if !f.closed {
				open++
				continue
			}
			rounds[f.by-offer.ByPolicy]++
			revenue[f.by-offer.ByPolicy] += f.earned
			squares[f.by-offer.ByPolicy] += f.earned * f.earned
		}
		if decisions != s.Decisions[i] || open != s.Open[i] {
			t.Errorf("span %v, %d points: point %d has %d decisions, %d of them open, want %d, %d", span, points, i,
				s.Decisions[i], s.Open[i], decisions, open)
		}
		for k, group := range []*api.SeriesMeans{s.Policy, s.Chance} {
			if group.Rounds[i] != rounds[k] || (group.Mean[i] == nil) != (rounds[k] == 0) {
				t.Fatalf("span %v, %d points: point %d of group %d has %d rounds, want %d", span, points, i, k,
					group.Rounds[i], rounds[k])
			}
			if rounds[k] > 0 && math.Abs(*group.Mean[i]-revenue[k]/float64(rounds[k])) > 1e-9 {
				t.Errorf("span %v, %d points: point %d of group %d has the mean %v, want %v", span, points, i, k,
					*group.Mean[i], revenue[k]/float64(rounds[k]))
			}
			if n := float64(rounds[k]); n > 1 {
				want := math.Sqrt((squares[k]/n - revenue[k]/n*revenue[k]/n) / (n - 1))
				if group.StandardError[i] == nil || math.Abs(*group.StandardError[i]-want) > 1e-6 {
					t.Errorf("span %v, %d points: point %d of group %d has the standard error %v, want %v", span,
						points, i, k, group.StandardError[i], want)
				}
			} else if group.StandardError[i] != nil {
				t.Errorf("a standard error of %v rounds", n)
			}
		}
	}
	want := 0
	for _, f := range all {
		if span == 0 || f.time/second > now-int64(span/time.Second) {
			want++
		}
	}
	if covered < want || span == 0 && covered != len(all) {
		t.Errorf("span %v, %d points: the points have %d decisions, want %d", span, points, covered, want)
	}
}

// After the mode shadow the policy is compared with the caller's earlier pages, however often its mode changes later.
func TestSeriesOverBaseline(t *testing.T) {
	e := guarded(t, new(memlog.Store), showing{utility: -800})
	put(t, e, "home", `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{},"mode":"shadow"}`)
	w := newTrade(t, e, 0.6, 0.2)
	w.base = []string{itemID(1)}
	w.goOn(600, 2)
	put(t, e, "home", `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{}}`)
	w.base = nil
	w.goOn(600, 2)
	for k := range 21 {
		put(t, e, "home", fmt.Sprintf(guardedShop, fmt.Sprintf(`,"mode":"explore","explore_share":0.%02d`, k+1)))
	}
	s := fatal.Or(e.Series("home", w.now, 0, 20))(t)
	last := len(s.Times) - 1
	if s.OverBaseline == nil || s.OverChance != nil || s.Chance != nil {
		t.Fatalf("%+v", s)
	}
	if low, high, want := *s.OverBaseline.Low[last], *s.OverBaseline.High[last],
		600*2*0.4; !(low < want && want < high) || low < 0 {
		t.Errorf("the policy earned between %v and %v more than the baseline, want %v", low, high, want)
	}
	if stats := fatal.Or(e.Stats("home"))(t); len(stats.Gains) != 1 || stats.Gains[0].Over != api.OverBaseline ||
		stats.Gains[0].Randomized || stats.Gains[0].Total.Low != *s.OverBaseline.Low[last] {
		t.Errorf("the gains are %+v", stats.Gains)
	}
}

// Baselines of an experiment, which were shown to other shoppers at another time, are compared with by its report alone:
// once it ends, a sale of all items neither counts as a loss nor raises an alarm.
func TestBaselinesOfAnExperiment(t *testing.T) {
	e := guarded(t, new(memlog.Store), showing{utility: -800})
	put(t, e, "home", `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{},"mode":"experiment","experiment":
		{"name":"summer","variants":[{"name":"shop","show":"baseline","share":0.5},{"name":"ours","show":"policy","share":0.5}]}}`)
	w := newTrade(t, e, 0.4, 0.4)
	w.base = []string{itemID(1)}
	w.goOn(2000, 10)
	put(t, e, "home", `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{}}`)
	w.goOn(2000, 2)
	stats, series := fatal.Or(e.Stats("home"))(t), fatal.Or(e.Series("home", w.now, 0, 20))(t)
	if stats.ByBaseline.Rounds < 900 || w.n < 4000 || len(stats.Gains) > 0 || series.OverBaseline != nil {
		t.Errorf("after %d decisions, %d of them baselines: the alarm %+v, the gains %+v and %+v", w.n,
			stats.ByBaseline.Rounds, w.alarm(), stats.Gains, series.OverBaseline)
	}
}
