package setup_test

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/go-json-experiment/json"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/bandit/policy"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/setup"
	"vitrine/utility"
)

// A learner takes at most its predicted size, by the heap, and not much less.
func TestLearnerSize(t *testing.T) {
	sized := map[string]bool{}
	for _, c := range []struct {
		policy   string
		features int
		numeric  []int
	}{
		{`{"name":"onl-mnl","warmup":2}`, 200, nil},
		{`{"name":"onl-mnl","warmup":2,"update":"mle"}`, 200, nil},
		{`{"name":"onl-mnl","warmup":2,"pilot":"map","utility":{"kind":"mlp","hidden":[3]}}`, 60, nil},
		{`{"name":"greedy","warmup":2}`, 200, nil},
		{`{"name":"ucb-mnl"}`, 200, nil},
		{`{"name":"ucb-mnl","utility":{"kind":"quadratic"}}`, 18, nil},
		{`{"name":"ts-mnl"}`, 200, nil},
		{`{"name":"ofu-mnl-plus"}`, 200, nil},
		{`{"name":"eps-greedy-mnl"}`, 200, nil},
		{`{"name":"log-barrier-mnl"}`, 200, nil},
		{`{"name":"feel-good-ts"}`, 200, nil},
		{`{"name":"bma-mnl"}`, 70, nil},
		{`{"name":"bma-mnl"}`, 5, nil},
		{`{"name":"auto"}`, 25, nil},
		{`{"name":"auto"}`, 2000, []int{0, 1, 2}},
		{`{"name":"bma-mnl","experts":[{"kind":"linear","intercept":true},{"kind":"linear","intercept":true,"memory_rounds":200}]}`, 120, nil},
	} {
		s := setup.Spec{Policy: []byte(c.policy), Features: c.features, Numeric: c.numeric, Size: 2, Items: 4,
			All: true, Rounds: 1000, Seed: 1}
		size := fatal.Or(setup.LearnerSize(s))(t)
		before := heap()
		l := fatal.Or(setup.NewLearner(s))(t)
		rng := rand.New(rand.NewPCG(1, 2))
		rounds := int64(0)
		p := l.Policy()
		for range 4 {
			x := mat.NewDense(4, c.features, nil)
			for i := range 4 {
				for j := range c.features {
					x.Set(i, j, math.Exp(2*rng.NormFloat64())) // far from normal
				}
			}
			if c.numeric == nil { // else the learner keeps a few columns of them
				rounds += int64(8 * 4 * c.features)
			}
			r := vitrine.Round{Context: &vitrine.Context{Features: x},
				Offer: vitrine.Offer{Assortment: vitrine.Assortment{1, 3}, Propensity: 1}, Choice: 1}
			fatal.If(t, l.Observe(r))
		}
		next := l.Policy()
		next.Offer(&vitrine.Context{Features: mat.NewDense(4, c.features, nil)}, rng)
		live := heap() - before - rounds
		state := int64(len(saved(t, l))) - rounds
		runtime.KeepAlive(p)
		runtime.KeepAlive(next)
		square := float64(8 * c.features * c.features)
		t.Logf("%s: live %.2f of %.2f, state %.2f of %.2f d²", c.policy, float64(live)/square,
			float64(size.Learner)/square, float64(state)/square, float64(size.State)/square)
		if live > size.Learner || size.Learner > 6*live {
			t.Errorf("%s of %d features: takes %d bytes, and its size is %d", c.policy, c.features, live, size.Learner)
		}
		if state > size.State || size.State > 4*state {
			t.Errorf("%s of %d features: its state takes %d bytes, and its size is %d", c.policy, c.features, state,
				size.State)
		}
		sized[nameOf(t, s)] = true
	}
	for _, d := range policy.All {
		if d.Learner.Unfit == "" && d.Name != "uniform" && !sized[d.Name] {
			t.Errorf("%s has no row here: add one, and correct Matrices in bandit/policy/table.go by what fails", d.Name)
		}
	}
	if size, err := setup.LearnerSize(specOf(`{"name":"uniform"}`)); err != nil || size != (setup.Size{}) {
		t.Errorf("uniform learns nothing, and has the size %+v, %v", size, err)
	}
}

// The size of a learner of gigabytes is known before it is built, as are a policy's errors.
func TestLearnerSizeOfALargeOne(t *testing.T) {
	s := specOf(`{"name":"ucb-mnl","utility":{"kind":"quadratic"}}`)
	s.Features = 138
	params := int64(utility.NewQuadratic(138).NumParams())
	before := heap()
	size, err := setup.LearnerSize(s)
	if err != nil || size.Learner < 4e9 || size.Learner%(8*params*params) != 0 {
		t.Errorf("all products of 138 features, %d parameters: %+v, %v", params, size, err)
	}
	if took := heap() - before; took > 1e6 {
		t.Errorf("its size takes %d bytes to know", took)
	}
	expect.Message(setup.LearnerSize(specOf(`{"name":"ucb-mnl","lambda":-1}`)))(t,
		"ucb-mnl: lambda = -1: must be finite and at least 1e-09", "a bad option")
}

func heap() int64 {
	runtime.GC()
	runtime.GC() // pools are emptied in two steps
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func nameOf(t *testing.T, s setup.Spec) string {
	t.Helper()
	var p struct {
		Name string `json:"name"`
	}
	fatal.If(t, json.Unmarshal(s.Policy, &p))
	return p.Name
}
