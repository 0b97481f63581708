package bandit

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/scratch"
)

// If two items differ by an id of the same mean, the one with the less known id is shown.
func TestWideShowsWhatItDoesNotKnow(t *testing.T) {
	p := Problem{NumFeatures: 40, MaxShown: 1, Rounds: 100, Constraint: assortment.AtMost(1), Numeric: []int{0}}
	l := must(NewWide(p, newRand())).(*Wide)
	items := func(ids ...int) *vitrine.Context {
		x := mat.NewDense(len(ids), 40, nil)
		for i, j := range ids {
			x.Set(i, j, 1)
		}
		return &vitrine.Context{Features: x}
	}
	for s := range 60 { // the id 1 sells best, and the id 2 never
		r := vitrine.Round{Context: items(1, 2, 3), Offer: vitrine.Offer{Assortment: vitrine.Assortment{0, 1, 2}},
			Choice: []vitrine.Choice{1, 1, 3, vitrine.Outside}[s%4]}
		fatal.If(t, l.Observe(r))
	}
	l.line.mean[l.line.place[3]] = 0 // as if the id was never shown
	l.policy = nil
	pi := l.Policy().(*widePolicy)
	u := make([]float64, 2)
	if pi.Utilities(u, items(3, 4)); u[0] != u[1] {
		t.Errorf("without a bonus the utilities are %v", u)
	}
	for _, revenue := range [][]float64{nil, {1, 2}} {
		x, share := items(1, 4), indexOptimism*optimism
		if x.Revenue = revenue; revenue != nil {
			share = indexOptimism * revenueOptimism
		}
		var rows entries
		rows.scan(pi.line, x.Features)
		reduced := &vitrine.Context{Features: pi.line.reduce(new(scratch.Matrix), x.Features, &rows, 0),
			Revenue: revenue}
		for i := range 2 {
			reduced.Features.Set(i, 1, reduced.Features.At(i, 1)+share*math.Sqrt(
				varianceOf(pi.line, []int{1 + 3*i}, []float64{1})))
		}
		have, want := pi.Reasons(x, newRand()), pi.inner.Reasons(reduced, newRand())
		for i, v := range want.Index {
			wantNear(t, "the utility of a slot", have.Index[i], v, 1e-12)
		}
	}
	for _, x := range []*vitrine.Context{items(3, 4), items(4, 3)} {
		if i := l.Policy().Offer(x, newRand()).Assortment[0]; x.Features.At(i, 4) == 0 {
			t.Error("shows the item of the id that is known")
		}
	}
}

// Next to indicators auto uses the products of the numbers with each other, and, if not all products are used, with all
// features. For many numbers it uses the squares.
func TestAutoHasProductsOfNumbers(t *testing.T) {
	first := func(n int) (numeric []int) {
		for j := range n {
			numeric = append(numeric, j)
		}
		return numeric
	}
	for _, c := range []struct {
		features int
		numeric  []int
		want     []string // beside the default experts
	}{
		{8, nil, nil},
		{8, []int{}, nil},
		{3, []int{0, 1, 2}, nil},
		{8, []int{1, 4}, []string{"quadratic in [1 4]"}},
		{11, []int{1, 4}, []string{"quadratic in [1 4]", "quadratic in [1 4] with all"}},
		{12, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, []string{"quadratic in [0 1 2 3 4 5 6 7 8 9 10 11]"}},
		{29, []int{0, 1, 2, 3}, []string{"quadratic in [0 1 2 3]"}}, // 10 + 100 with all, and 30
		{20, first(14), []string{"squares of the first 14"}},        // 14 · 15 / 2 + 21 products are too many
		{15, first(15), []string{"squares of the first 15"}},
		{79, first(79), []string{"squares of the first 79"}},
		{80, first(80), nil},
		{300, first(40), []string{"squares of the first 40"}},
		{60, []int{5, 9}, []string{"quadratic in [0 1]"}}, // and the index
		{60, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, []string{"quadratic in [0 1 2 3 4 5 6 7 8 9]", "quadratic in [0 " +
			"1 2 3 4 5 6 7 8 9] with all"}},
	} {
		p := Problem{NumFeatures: c.features, MaxShown: 3, Rounds: 100, Constraint: assortment.AtMost(3),
			Numeric: c.numeric}
		l := fatal.Or(NewAuto(p, AutoOptions{}, newRand()))(t)
		bma, ok := l.(*BMA)
		if !ok {
			bma = l.(*Wide).bma
		}
		var have []string
		for _, e := range bma.experts[len(DefaultExperts(bma.p.NumFeatures)):] {
			have = append(have, e.String())
		}
		expect.List(t, have, c.want, c.features, "features, numeric", c.numeric, "has")
	}
}

// The learner of auto is chosen by the number and the kinds of features.
func TestAutoChooses(t *testing.T) {
	numeric := func(n int) []int {
		list := []int{}
		for j := range n {
			list = append(list, j)
		}
		return list
	}
	for _, c := range []struct {
		features int
		numeric  []int
		want     string
	}{
		{3, nil, "bma-mnl"}, {30, numeric(2), "bma-mnl"}, {31, numeric(2), "wide"}, {31, nil, "bma-mnl"},
		{128, nil, "bma-mnl"}, {128, numeric(128), "bma-mnl"},
		{129, nil, "wide"}, {129, numeric(129), "wide"}, {200, numeric(120), "wide"}, {40, numeric(0), "wide"},
		{60, numeric(29), "wide"}, {60, numeric(30), "wide"}, {400, numeric(300), "wide"},
	} {
		p := Problem{NumFeatures: c.features, MaxShown: 3, Rounds: 100, Constraint: assortment.AtMost(3),
			Numeric: c.numeric}
		l := fatal.Or(NewAuto(p, AutoOptions{}, newRand()))(t)
		name := "bma-mnl"
		experts := 0
		if w, ok := l.(*Wide); ok {
			name, experts = "wide", len(w.bma.experts)
			direct := min(len(c.numeric), 127)
			if n := w.bma.p.NumFeatures; n != direct+1 || w.line.direct != direct {
				t.Errorf("the experts of %d features have %d, %d of them as they are, want %d", c.features, n,
					w.line.direct, direct)
			}
			if len(w.line.numeric) != min(len(c.numeric), 255) || w.line.limit != min(c.features+1, 256) ||
				w.line.limit != AutoBlock(p) {
				t.Errorf("of %d features %d are numeric, and %d in the block", c.features, len(w.line.numeric),
					w.line.limit)
			}
		} else {
			experts = len(l.(*BMA).experts)
		}
		if name != c.want || experts != len(AutoExperts(p)) {
			t.Errorf("%d features, numeric %v: %s of %d experts, want %s of %d", c.features, c.numeric, name, experts,
				c.want, len(AutoExperts(p)))
		}
	}
	for _, features := range []int{30, 31} {
		p := Problem{NumFeatures: features, MaxShown: 3, Rounds: 100, Constraint: assortment.AtMost(3),
			Numeric: numeric(2)}
		l, err := NewAuto(p, AutoOptions{PositionEffects: true}, newRand())
		if features == 30 && (err != nil || len(l.Policy().(*mixture).PlaceEffects()) != 3) {
			t.Errorf("%d features with position effects: %T, error %v", features, l, err)
		}
		if features == 31 && (err == nil || !strings.Contains(err.Error(), "at most 30 columns, or 128 if all are "+
			"numbers, and these have 31")) {
			t.Errorf("%d features with position effects: %T, error %v", features, l, err)
		}
	}
	for _, bad := range [][]int{{-1}, {3}, {1, 0}, {1, 1}} {
		p := Problem{NumFeatures: 3, MaxShown: 3, Rounds: 100, Constraint: assortment.AtMost(3), Numeric: bad}
		expect.Part(NewAuto(p, AutoOptions{}, newRand()))(t, "must be distinct columns of 3 features", bad)
	}
}
