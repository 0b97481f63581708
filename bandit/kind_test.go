package bandit

import (
	"encoding"
	"math/rand/v2"
	"strings"
	"testing"

	"vitrine/assortment"
	"vitrine/internal/state"
	"vitrine/utility"
)

// The names that snapshots have on disks.
func TestKinds(t *testing.T) {
	p := Problem{Features: 3, Items: 4, Size: 2, Rounds: 1000, Constraint: assortment.AtMost(2)}
	rng := rand.New(rand.NewPCG(1, 1))
	m := utility.NewLinear(3, true)
	const regression = "RegressionOptions:{Oracle:offline Rate:0.0001 Steps:2000 Restart:false Lambda:1 Step:1}}"
	onl, err := NewONL(p, m, DefaultONLOptions(), rng)
	sets := DefaultEpsGreedyOptions()
	sets.Explore = "set"
	eps, err1 := NewEpsGreedy(p, m, sets, rng)
	barrier, err2 := NewLogBarrier(p, m, DefaultLogBarrierOptions(), rng)
	log := DefaultFeelGoodOptions()
	log.Loss = "log"
	feel, err3 := NewFeelGood(p, m, log, rng)
	ts, err4 := NewTS(p, DefaultTSOptions())
	for _, err := range []error{err, err1, err2, err3, err4} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		learner encoding.BinaryMarshaler
		want    string
	}{
		{onl, "onl-mnl d=3 K=2 T=1000 linear with intercept {FitOptions:{Warmup:50 Lambda:10 Pilot:adam PilotRate:0.0001 PilotSteps:2000 PilotRidge:1 Update:mle Step:1 Tolerance:1e-06} Beta:10 Curvature:0 Schedule:configured Kappa:0 Mu:0 Delta:0.05 UtilityBound:1 GradientBound:1}"},
		{eps, "eps-greedy-mnl d=3 K=2 T=1000 linear with intercept {Epsilon:0.1 Decay:0.995 Floor:0.001 " + regression},
		{barrier, "log-barrier-mnl d=3 K=2 T=1000 linear with intercept {Gamma:10 Limit:100000 " + regression},
		{feel, "feel-good-ts d=3 K=2 T=1000 linear with intercept {Ridge:1 Eta:1 FeelGood:0.1 Moves:10}"},
		{ts, "ts-mnl d=3 K=2 T=1000 linear {LinearOptions:{Constants:theory Radius:0 Intercept:false Lambda:1} Samples:9}"},
	} {
		data, err := c.learner.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		have, _, err := state.Read(data)
		if err != nil {
			t.Fatal(err)
		}
		// Options that came later are not in the names of before.
		if !named(c.learner, c.want) {
			t.Errorf("%s does not read %q", have, c.want)
		}
	}
}

// named reports whether a learner reads snapshots of a name.
func named(l encoding.BinaryMarshaler, name string) bool {
	switch l := l.(type) {
	case *TS:
		return l.kind.reads(name)
	case interface{ kind() kind }:
		return l.kind().reads(name)
	}
	return false
}

// A snapshot that does not know an option is read where the option has its default or is zero, and one that
// differs is not.
func TestKindReadsEarlierOptions(t *testing.T) {
	type Inner struct {
		A int
		B string
		C float64 // new
	}
	type options struct {
		Inner
		New  []float64 // new
		D    float64
		Last bool // new
	}
	p := Problem{Features: 3, Size: 2, Rounds: 10}
	standard := options{Inner: Inner{1, "x", 2}, D: 3}
	with := func(change func(*options)) kind {
		o := standard
		change(&o)
		k := p.kind("toy", 1, nil, o, standard)
		k.tail = " and more"
		return k
	}
	const before = "toy d=3 K=2 T=10 {Inner:{A:1 B:x} D:3} and more"
	for name, c := range map[string]struct {
		change func(*options)
		text   string
		want   bool
	}{
		"before":         {func(*options) {}, before, true},
		"itself":         {func(*options) {}, with(func(*options) {}).String(), true},
		"zero":           {func(o *options) { o.C = 0 }, before, true},
		"set":            {func(o *options) { o.C = 4 }, before, false},
		"set list":       {func(o *options) { o.New = []float64{1} }, before, false},
		"set last":       {func(o *options) { o.Last = true }, before, false},
		"another":        {func(o *options) { o.A = 11 }, before, false},
		"another before": {func(*options) {}, strings.Replace(before, "A:1", "A:11", 1), false},
		"unknown":        {func(*options) {}, strings.Replace(before, "D:3", "D:3 E:4", 1), false},
		"without a tail": {func(*options) {}, strings.TrimSuffix(before, " and more"), false},
		"size":           {func(*options) {}, strings.Replace(before, "K=2", "K=3", 1), false},
		"version":        {func(*options) {}, strings.Replace(before, "toy", "toy v2", 1), false},
		"torn":           {func(*options) {}, before[:20], false},
	} {
		if have := with(c.change).reads(c.text); have != c.want {
			t.Errorf("%s: %q reads %q: %v", name, with(c.change), c.text, have)
		}
	}
	if have := p.kind("toy", 2, nil, nil, nil).String(); have != "toy v2 d=3 K=2 T=10" {
		t.Errorf("the second version is called %q", have)
	}
}
