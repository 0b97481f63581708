package geometry_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/paper/geometry"
)

// surveyed is the landscape in the paper's figure.
var surveyed = sync.OnceValues(func() (*geometry.Landscape, error) {
	return geometry.Survey(context.Background(), geometry.Figure)
})

func survey(t *testing.T) *geometry.Landscape {
	t.Helper()
	return fatal.Or(surveyed())(t)
}

// probes calls f on random points and on a grid of the box that is finer than the survey's and has different points.
func probes(box geometry.Box, f func(geometry.Params)) {
	const n = 700
	rng := rand.New(rand.NewPCG(4, 4))
	for i := range n {
		for j := range n {
			f(geometry.Params{
				box.Low[0] + (box.High[0]-box.Low[0])*(float64(i)+0.5)/n,
				box.Low[1] + (box.High[1]-box.Low[1])*(float64(j)+0.5)/n,
			})
		}
	}
	for range 200_000 {
		f(draw(box, rng))
	}
}

// Assumption "Generalized geometric condition": the bound lies below the loss on the whole box. The loss is computed
// from its closed form, independently of the package.
func TestTheBoundHolds(t *testing.T) {
	l := survey(t)
	broken := 0
	probes(l.Setting.Box, func(w geometry.Params) {
		loss := closed(l.ExpectedSize, w, l.Setting.Truth)
		lowest := math.Inf(1) // over W*, as in the assumption
		for _, g := range l.Global {
			r := math.Hypot(w[0]-g[0], w[1]-g[1])
			lowest = min(lowest, l.Condition.Mu/2*r*r, l.Condition.Tau/2*math.Pow(r, l.Condition.Gamma))
		}
		if lowest > loss+1e-12 {
			broken++
		}
	})
	if broken > 0 {
		t.Errorf("the bound is above the loss at %d points", broken)
	}
}

// Other exponents and other truths lead to their own constants.
func TestTheBoundHoldsForOtherSettings(t *testing.T) {
	for _, c := range []struct {
		gamma float64
		truth geometry.Params
	}{{0.5, geometry.Params{2.5, 1.2}}, {1.5, geometry.Params{-3.5, 2}}} {
		s := geometry.Figure
		s.Gamma, s.Truth = c.gamma, c.truth
		l := fatal.Or(geometry.Survey(context.Background(), s))(t)
		rng := rand.New(rand.NewPCG(5, 5))
		for range 200_000 {
			w := draw(s.Box, rng)
			if loss := closed(l.ExpectedSize, w,
				s.Truth); l.Condition.Bound(geometry.Distance(w, l.Global)) > loss+1e-12 {
				t.Fatalf("γ = %v: the bound is above the loss %v at %v", c.gamma, loss, w)
			}
		}
	}
}

// μ is the stated share of the curvature at W*, rounded down.
func TestMuIsAShareOfTheCurvature(t *testing.T) {
	l := survey(t)
	loss, s := paper()
	for _, w := range l.Global {
		if ratio := l.Condition.Mu / loss.Curvature(w); !(ratio <= s.Share && ratio > 0.99*s.Share) {
			t.Errorf("μ = %v is %v of the curvature at %v, want %v", l.Condition.Mu, ratio, w, s.Share)
		}
	}
}

// A τ one hundredth larger breaks the condition, at the stated point.
func TestTauIsTheLargest(t *testing.T) {
	l := survey(t)
	larger := l.Condition
	larger.Tau *= 1.01
	r := geometry.Distance(l.Tight, l.Global)
	if loss := closed(l.ExpectedSize, l.Tight, l.Setting.Truth); larger.Bound(r) <= loss ||
		l.Condition.Bound(r) > loss {
		t.Errorf("at %v the loss is %v, the bound %v, and with a larger τ %v",
			l.Tight, loss, l.Condition.Bound(r), larger.Bound(r))
	}
}

// On the box, ℓ_sq is 0 on W* and nowhere else.
func TestTheLossIsZeroOnTheEquivalenceSetAlone(t *testing.T) {
	l := survey(t)
	want := []geometry.Params{{3, 0.5}, {-3, math.Pi - 0.5}}
	expect.Equal(t, l.Global, want, "W*")
	for _, w := range l.Global {
		if loss := closed(l.ExpectedSize, w, l.Setting.Truth); loss > 1e-14 {
			t.Errorf("the loss is %v at %v", loss, w)
		}
	}
	probes(l.Setting.Box, func(w geometry.Params) {
		r := geometry.Distance(w, l.Global)
		if loss := closed(l.ExpectedSize, w, l.Setting.Truth); r > 1e-3 && loss < 1e-7 {
			t.Errorf("the loss is %v at %v, which is %v from W*", loss, w, r)
		}
	})
}

// Spurious minima are minima: the slope is zero and the loss is higher all around. The loss agrees at equivalent
// parameters, so spurious minima come in pairs.
func TestSpuriousMinimaAreMinima(t *testing.T) {
	const around = 1e-3
	l := survey(t)
	loss, s := paper()
	if len(l.Spurious) < 4 || len(l.Spurious)%2 != 0 {
		t.Errorf("%d spurious minima, want several pairs", len(l.Spurious))
	}
	for _, m := range l.Spurious {
		if g := loss.Gradient(m.W); math.Hypot(g[0], g[1]) > 1e-4 {
			t.Errorf("the slope at %v is %v", m.W, g)
		}
		for k := range 16 {
			sin, cos := math.Sincos(math.Pi * float64(k) / 8)
			if v := loss.At(geometry.Params{m.W[0] + around*cos, m.W[1] + around*sin}); v <= m.Loss {
				t.Errorf("%v is lower beside %v", v, m)
			}
		}
		if !slices.ContainsFunc(l.Spurious, func(o geometry.Minimum) bool {
			return o.W != m.W && slices.ContainsFunc(geometry.Equivalents(m.W, s.Box), func(w geometry.Params) bool {
				return geometry.Distance(w, []geometry.Params{o.W}) < 1e-4
			})
		}) {
			t.Errorf("%v has no pair", m.W)
		}
	}
}

// Equivalent parameters of one function: all shifts by a period, and the mirror image.
func TestEquivalents(t *testing.T) {
	box := geometry.Box{Low: geometry.Params{-2, -8}, High: geometry.Params{2, 8}}
	got := geometry.Equivalents(geometry.Params{1, 2}, box)
	want := []geometry.Params{
		{1, 2 - 2*math.Pi}, {1, 2},
		{-1, math.Pi - 2 - 2*math.Pi}, {-1, math.Pi - 2}, {-1, math.Pi - 2 + 2*math.Pi},
	}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-12 })
	expect.Equal(t, got, want, near)
	loss, _ := paper()
	for _, w := range got {
		if a, b := loss.At(w), loss.At(geometry.Params{1, 2}); math.Abs(a-b) > 1e-12 {
			t.Errorf("the loss is %v at %v and %v at its equivalent", a, w, b)
		}
	}
	if outside := geometry.Equivalents(geometry.Params{3, 2}, box); len(outside) > 0 {
		t.Errorf("%v is outside of the box", outside)
	}
}

// The slice runs through both global minima to the edges of the box.
func TestTheSliceMeetsTheMinima(t *testing.T) {
	l := survey(t)
	first, last := l.Slice[0], l.Slice[len(l.Slice)-1]
	for _, p := range []geometry.Point{first, last} {
		if math.Abs(math.Abs(p.W[0])-5) > 1e-9 {
			t.Errorf("the slice ends at %v, want an edge", p.W)
		}
	}
	step := (last.Position - first.Position) / float64(len(l.Slice)-1)
	for _, g := range l.Global {
		nearest := math.Inf(1)
		for _, p := range l.Slice {
			nearest = min(nearest, geometry.Distance(p.W, []geometry.Params{g}))
			if want := closed(l.ExpectedSize, p.W, l.Setting.Truth); math.Abs(p.Loss-want) > 1e-12 ||
				p.Bound != min(p.StrongConvexity, p.Growth) {
				t.Errorf("%+v: want a loss of %v, and the lower of the terms as the bound", p, want)
			}
		}
		if nearest > step/2+1e-12 {
			t.Errorf("the slice passes %v at a distance of %v", g, nearest)
		}
	}
}

// Settings without a figure are rejected with a reason.
func TestSurveyRefuses(t *testing.T) {
	alter := func(change func(*geometry.Setting)) geometry.Setting {
		s := geometry.Figure
		change(&s)
		return s
	}
	for name, c := range map[string]struct {
		setting geometry.Setting
		want    string
	}{
		"one minimum": {
			alter(func(s *geometry.Setting) { s.Box.Low[0] = 1 }),
			"geometry: symmetry has 1 global minima in the box and a search 1, want 2",
		},
		"μ that holds everywhere": {
			alter(func(s *geometry.Setting) { s.Share = 1e-3 }),
			"geometry: strong convexity alone is a lower bound: no τ is the largest",
		},
	} {
		expect.Message(geometry.Survey(context.Background(), c.setting))(t, c.want, name)
	}
}

func TestSurveyStops(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := errors.New("stop")
	cancel(stop)
	expect.Fails(geometry.Survey(ctx, geometry.Figure))(t, stop)
}
