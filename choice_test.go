package vitrine_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/panics"
	_ "vitrine/internal/rapidseed"
)

// precision in bits: 1 + exp(−700) needs 1010, and the squarings in exact lose some to rounding.
const precision = 1280

func number(v float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(v) }

// exact returns exp(v) by the Taylor series at v/2^40, squared 40 times.
func exact(v float64) *big.Float {
	const squarings = 40
	z := number(0).SetMantExp(number(v), -squarings)
	sum, term := number(1), number(1)
	for k := 1.0; term.Sign() != 0 && term.MantExp(nil) > -precision; k++ {
		term.Mul(term, z)
		term.Quo(term, number(k))
		sum.Add(sum, term)
	}
	for range squarings {
		sum.Mul(sum, sum)
	}
	return sum
}

// denominator returns 1 + Σ exp(u_k).
func denominator(u []float64) *big.Float {
	sum := number(1)
	for _, v := range u {
		sum.Add(sum, exact(v))
	}
	return sum
}

func quotient(a, b *big.Float) float64 {
	q, _ := new(big.Float).Quo(a, b).Float64()
	return q
}

// within reports whether got equals want up to rounding: a relative error of the given number of units of 2⁻⁵², or two
// steps among the subnormal numbers.
func within(got, want, units float64) bool {
	return math.Abs(got-want) <= units*0x1p-52*math.Abs(want)+2*math.SmallestNonzeroFloat64
}

// probabilityUnits returns the error allowed for a probability. It grows with the number of terms summed, and with the
// size of the utilities, because a difference of large utilities keeps fewer digits.
func probabilityUnits(u []float64) float64 {
	units := 4 + float64(len(u))
	for _, v := range u {
		units = max(units, 4+float64(len(u))+2*math.Abs(v))
	}
	return units
}

// instances returns utilities of every size that the kernel promises to handle.
func instances() map[string][]float64 {
	all := map[string][]float64{
		"no items":                nil,
		"one item like the other": {0},
		"a sure sale":             {700},
		"a sure walk away":        {-700},
		"both extremes":           {700, -700},
		"many sure sales":         slices.Repeat([]float64{700}, 200),
		"many sure walks away":    slices.Repeat([]float64{-700}, 200),
		"subnormal probabilities": {700, -40, -44, -45},
		"barely above 0":          {1e-300, 1e-17, -1e-17},
		"where exp overflows":     {709.8, 710, 0},
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, scale := range []float64{1e-8, 1e-2, 1, 30, 350, 700} {
		for _, n := range []int{1, 2, 5, 30} {
			u := make([]float64, n)
			for i := range u {
				u[i] = scale * (2*rng.Float64() - 1)
			}
			all[fmt.Sprintf("%d of size %g", n, scale)] = u
		}
	}
	return all
}

func TestLogSumExp1IsExact(t *testing.T) {
	for name, u := range instances() {
		got, want := vitrine.LogSumExp1(u), denominator(u)
		if math.IsNaN(got) || math.IsInf(got, 0) {
			t.Errorf("%s: %v is not finite", name, got)
			continue
		}
		// log(exp(got)/want) is the error, and log(1+e) = e where it is small.
		e := new(big.Float).Sub(exact(got), want)
		if off := quotient(e, want); !(math.Abs(off) <= 4*0x1p-52*got) {
			t.Errorf("%s: %v is off by %g", name, got, off)
		}
	}
}

func TestProbabilitiesAreExact(t *testing.T) {
	for name, u := range instances() {
		p := make([]float64, len(u)+1)
		vitrine.Probabilities(p, u)
		sum := denominator(u)
		for k, got := range p {
			want := quotient(number(1), sum)
			if k > 0 {
				want = quotient(exact(u[k-1]), sum)
			}
			if !within(got, want, probabilityUnits(u)) {
				t.Errorf("%s: p[%d] = %v, want %v", name, k, got, want)
			}
		}
	}
}

func TestExpectedRevenueIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for name, u := range instances() {
		r := make([]float64, len(u))
		var s vitrine.Assortment
		for i := range r {
			r[i] = 10 * rng.Float64()
			if rng.IntN(3) > 0 {
				s = append(s, i)
			}
		}
		sum, earned, sold := number(1), number(0), number(0)
		for _, i := range s {
			e := exact(u[i])
			sum.Add(sum, e)
			sold.Add(sold, e)
			earned.Add(earned, e.Mul(e, number(r[i])))
		}
		if got, want := vitrine.ExpectedRevenue(s, u, r),
			quotient(earned, sum); !within(got, want, probabilityUnits(u)) {
			t.Errorf("%s: R(%v) = %v, want %v", name, s, got, want)
		}
		if got, want := vitrine.ExpectedRevenue(s, u, nil),
			quotient(sold, sum); !within(got, want, probabilityUnits(u)) {
			t.Errorf("%s: R(%v) = %v without revenues, want %v", name, s, got, want)
		}
	}
}

// By hand: with exp(u) = (1, 2) and r = (3, 1), the denominator is 4.
func TestKernelByHand(t *testing.T) {
	u, r := []float64{0, math.Ln2}, []float64{3, 1}
	if got := vitrine.LogSumExp1(u); !within(got, math.Log(4), 1) {
		t.Errorf("LogSumExp1 = %v, want log 4", got)
	}
	p := make([]float64, 3)
	vitrine.Probabilities(p, u)
	for k, want := range []float64{0.25, 0.25, 0.5} {
		if !within(p[k], want, 2) {
			t.Errorf("p[%d] = %v, want %v", k, p[k], want)
		}
	}
	for _, c := range []struct {
		s    vitrine.Assortment
		want float64
	}{{nil, 0}, {vitrine.Assortment{0}, 3. / 2}, {vitrine.Assortment{1}, 2. / 3}, {vitrine.Assortment{0, 1}, 5. / 4}} {
		if got := vitrine.ExpectedRevenue(c.s, u, r); !within(got, c.want, 2) {
			t.Errorf("R(%v) = %v, want %v", c.s, got, c.want)
		}
	}
}

// The empty assortment is legal: every customer walks away, and the revenue is 0.
func TestEmptyAssortment(t *testing.T) {
	expect.Equal(t, vitrine.LogSumExp1(nil), 0, "LogSumExp1")
	p := []float64{math.NaN()}
	vitrine.Probabilities(p, nil)
	expect.Equal(t, p[0], 1, "p[0]")
	for _, s := range []vitrine.Assortment{nil, {}} {
		for name, u := range map[string][]float64{"no items": nil, "three items": {700, 0, -700}} {
			expect.Equal(t, vitrine.ExpectedRevenue(s, u, nil), 0, name, "R")
			shock := make([]float64, len(u)+1)
			shock[0] = -10 // however much the customer dislikes walking away
			expect.Equal(t, vitrine.Choose(s, u, shock), vitrine.Outside, name, "choice")
		}
	}
}

// utilities draws the utilities of up to 12 items, with magnitudes up to 700.
func utilities(t *rapid.T) []float64 {
	size := rapid.SampledFrom([]float64{1, 30, 700}).Draw(t, "size")
	return rapid.SliceOfN(rapid.Float64Range(-size, size), 0, 12).Draw(t, "u")
}

// assortment draws a subset of n items.
func assortment(t *rapid.T, n int) (s vitrine.Assortment) {
	for i, in := range rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, "in") {
		if in {
			s = append(s, i)
		}
	}
	return s
}

// of returns the utilities of the items of s.
func of(s vitrine.Assortment, u []float64) []float64 {
	var v []float64
	for _, i := range s {
		v = append(v, u[i])
	}
	return v
}

func probabilities(u []float64) []float64 {
	p := make([]float64, len(u)+1)
	vitrine.Probabilities(p, u)
	return p
}

func TestProbabilitiesAreALaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sum := 0.0
		for k, v := range probabilities(utilities(t)) {
			if !(v >= 0 && v <= 1) {
				t.Fatalf("p[%d] = %v", k, v)
			}
			sum += v
		}
		if math.Abs(sum-1) > 1e-15*13 {
			t.Fatalf("Σ p = %v", sum)
		}
	})
}

// log p(0 | S) = −LogSumExp1(u) and log p(k | S) = u_k − LogSumExp1(u).
func TestProbabilitiesAreExpOfLogSumExp1(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := utilities(t)
		l := vitrine.LogSumExp1(u)
		for k, p := range probabilities(u) {
			want := math.Exp(-l)
			if k > 0 {
				want = math.Exp(u[k-1] - l)
			}
			if !within(p, want, 4*probabilityUnits(u)) {
				t.Fatalf("p[%d] = %v, want %v", k, p, want)
			}
		}
	})
}

// Adding items v to a display of items u is like showing v to customers with an outside option worth L = LogSumExp1(u):
//
//	LogSumExp1(u, v) = L + LogSumExp1(v − L)
func TestLogSumExp1Shifts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u, v := utilities(t), utilities(t)
		l := vitrine.LogSumExp1(u)
		shifted := slices.Clone(v)
		for i := range shifted {
			shifted[i] -= l
		}
		got, want := vitrine.LogSumExp1(slices.Concat(u, v)), l+vitrine.LogSumExp1(shifted)
		if math.Abs(got-want) > 1e-14*(1+want) {
			t.Fatalf("LogSumExp1(u, v) = %v, want %v", got, want)
		}
	})
}

// The gradient of LogSumExp1 equals the choice probabilities. Checked by central differences.
func TestLogSumExp1HasProbabilitiesAsGradient(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := rapid.SliceOfN(rapid.Float64Range(-5, 5), 1, 8).Draw(t, "u")
		const h = 1e-5
		for k, p := range probabilities(u)[1:] {
			at := func(step float64) float64 {
				v := slices.Clone(u)
				v[k] += step
				return vitrine.LogSumExp1(v)
			}
			if slope := (at(h) - at(-h)) / (2 * h); math.Abs(slope-p) > 1e-9 {
				t.Fatalf("∂/∂u_%d = %v, want %v", k, slope, p)
			}
		}
	})
}

// Independence of irrelevant alternatives: showing more items leaves the odds between an item and the outside option
// unchanged.
func TestIndependenceOfIrrelevantAlternatives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := rapid.SliceOfN(rapid.Float64Range(-30, 30), 1, 12).Draw(t, "u")
		all := probabilities(u)
		s := assortment(t, len(u))
		some := probabilities(of(s, u))
		for k, i := range s {
			if got, want := some[k+1]/some[0], all[i+1]/all[0]; !within(got, want, 500) {
				t.Fatalf("item %d sells %v times as often as nothing in %v, and %v times among all", i, got, s, want)
			}
		}
	})
}

// R(S) = Σ_{i∈S} p(i | S) r_i, which is 1 − p(0 | S) if all revenues are 1.
func TestExpectedRevenueIsAnExpectation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := utilities(t)
		r := rapid.SliceOfN(rapid.Float64Range(0, 100), len(u), len(u)).Draw(t, "r")
		s := assortment(t, len(u))
		p := probabilities(of(s, u))
		earned, sold := 0.0, 0.0
		for k, i := range s {
			earned += p[k+1] * r[i]
			sold += p[k+1]
		}
		if got := vitrine.ExpectedRevenue(s, u, r); !within(got, earned, 40) {
			t.Fatalf("R(%v) = %v, want %v", s, got, earned)
		}
		if got := vitrine.ExpectedRevenue(s, u, nil); !within(got, sold, 40) {
			t.Fatalf("R(%v) = %v without revenues, want %v", s, got, sold)
		}
		if got, ones := vitrine.ExpectedRevenue(s, u, nil),
			vitrine.ExpectedRevenue(s, u, slices.Repeat([]float64{1}, len(u))); got != ones {
			t.Fatalf("R(%v) = %v without revenues and %v with revenues 1", s, got, ones)
		}
	})
}

// Compares the frequencies of 200,000 choices with the probabilities, within 5 standard errors.
func TestChoicesFollowTheProbabilities(t *testing.T) {
	const n = 200_000
	u := []float64{0.3, -2, 1.5, 0, -0.7, 4}
	for _, s := range []vitrine.Assortment{{2}, {0, 1, 3}, {1, 2, 4, 5}, {0, 1, 2, 3, 4, 5}} {
		rng := rand.New(rand.NewPCG(5, uint64(len(s))))
		shock, count := make([]float64, len(u)+1), make([]float64, len(s)+1)
		for range n {
			vitrine.DrawShocks(shock, rng)
			count[vitrine.Choose(s, u, shock)]++
		}
		for k, p := range probabilities(of(s, u)) {
			if got, se := count[k]/n, math.Sqrt(p*(1-p)/n); math.Abs(got-p) > 5*se {
				t.Errorf("%v: choice %d has frequency %.5f, want %.5f ± %.5f", s, k, got, p, se)
			}
		}
	}
}

// Shocks belong to items, so a customer who meets two assortments follows one order of preference. Offered a subset,
// she makes the same choice as before if it is still available, and she walks away again if she walked away. This is
// how policies are compared on the same customers.
func TestOneCustomerHasOnePreference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := utilities(t)
		shock := make([]float64, len(u)+1)
		vitrine.DrawShocks(shock, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "customer"), 6)))
		large := assortment(t, len(u))
		small := slices.DeleteFunc(slices.Clone(large), func(int) bool { return rapid.Bool().Draw(t, "drop") })

		first, second := vitrine.Choose(large, u, shock), vitrine.Choose(small, u, shock)
		if first == vitrine.Outside {
			if second != vitrine.Outside {
				t.Fatalf("walks away from %v but takes %d of %v", large, second, small)
			}
			return
		}
		taken := large[first-1]
		if k := slices.Index(small, taken); k >= 0 && second != vitrine.Choice(k+1) {
			t.Fatalf("takes item %d of %v but choice %d of %v", taken, large, second, small)
		}
	})
}

// By hand: item 3 is at position 1 of {3} and at position 2 of {1, 3}, and uses shock[4] in both.
func TestChoiceIsAPosition(t *testing.T) {
	u := []float64{0, 0, 0, 0}
	for _, c := range []struct {
		s     vitrine.Assortment
		shock []float64
		want  vitrine.Choice
	}{
		{vitrine.Assortment{3}, []float64{0, 0, 0, 0, 1}, 1},
		{vitrine.Assortment{1, 3}, []float64{0, 0, 0, 0, 1}, 2},
		{vitrine.Assortment{1, 3}, []float64{0, 9, 0.5, 9, -1}, 1},
		{vitrine.Assortment{1, 3}, []float64{0, 9, -1, 9, -1}, vitrine.Outside},
	} {
		expect.Equal(t, vitrine.Choose(c.s, u, c.shock), c.want, "of", c.s, "with shocks", c.shock, "takes")
	}
}

func TestWrongLengthsPanic(t *testing.T) {
	for name, call := range map[string]func(){
		"Probabilities into as many as u": func() { vitrine.Probabilities(make([]float64, 2), make([]float64, 2)) },
		"Probabilities into too many":     func() { vitrine.Probabilities(make([]float64, 4), make([]float64, 2)) },
		"Choose without the outside":      func() { vitrine.Choose(nil, make([]float64, 2), make([]float64, 2)) },
		"Choose with a shock too many":    func() { vitrine.Choose(nil, make([]float64, 2), make([]float64, 4)) },
	} {
		if panics.Value(call) == nil {
			t.Errorf("%s: no panic", name)
		}
	}
}

func TestKernelDoesNotAllocate(t *testing.T) {
	u, r, shock := make([]float64, 100), make([]float64, 100), make([]float64, 101)
	s, p := vitrine.Assortment{1, 20, 55, 60, 99}, make([]float64, 6)
	for name, call := range map[string]func(){
		"LogSumExp1":      func() { vitrine.LogSumExp1(u) },
		"Probabilities":   func() { vitrine.Probabilities(p, u[:5]) },
		"ExpectedRevenue": func() { vitrine.ExpectedRevenue(s, u, r) },
		"Choose":          func() { vitrine.Choose(s, u, shock) },
	} {
		if got := testing.AllocsPerRun(100, call); got > 0 {
			t.Errorf("%s allocates %v times", name, got)
		}
	}
}

// By hand: exp(u) = (2, 3), revenues (5, 7), and an effect of log ½ from the second place on.
func TestOrderedRevenue(t *testing.T) {
	u := []float64{math.Log(2), math.Log(3)}
	half := []float64{0, math.Log(0.5)}
	for _, c := range []struct {
		order    []int
		gamma, r []float64
		want     float64
	}{
		{[]int{0, 1}, half, []float64{5, 7}, (2*5 + 1.5*7) / 4.5},
		{[]int{1, 0}, half, []float64{5, 7}, (3*7 + 1*5) / 5.},
		{[]int{1, 0}, half, nil, 4. / 5},
		{[]int{1, 0}, half[1:], nil, 2.5 / 3.5},
		{[]int{1, 0}, nil, nil, 5. / 6},
		{nil, half, nil, 0},
	} {
		if got := vitrine.OrderedRevenue(c.order, u, c.gamma, c.r); math.Abs(got-c.want) > 1e-14 {
			t.Errorf("order %v, γ %v, r %v: %v, want %v", c.order, c.gamma, c.r, got, c.want)
		}
	}
}
