package confseq

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mathext"

	"vitrine/internal/precise"
)

// The boundary matches the paper's: Equation 2 of the paper is the case c → 0, and gives the constants for η = 2 and
// s = 1.4.
func TestStitchedBoundary(t *testing.T) {
	if want := mathext.Zeta(power, 1); math.Abs(zeta-want) > 1e-12 {
		t.Errorf("ζ(s) is %v, want %v", zeta, want)
	}
	for _, alpha := range []float64{0.05, 1e-4} {
		for _, v := range []float64{1e12, 1e15} { // where c = 1 is negligible
			want := 1.7 * math.Sqrt(v*(math.Log(math.Log(2*v))+0.72*math.Log(5.2/alpha)))
			if have := stitched(v, 1, alpha); math.Abs(have/want-1) > 0.005 {
				t.Errorf("S(%v) is %v, want %v", v, have, want)
			}
		}
	}
	if a, b := stitched(0.5, 1, 0.05), stitched(1, 1, 0.05); a != b {
		t.Errorf("the boundary is %v below v = c², want %v", a, b)
	}
}

// The intervals are numbers even if the square of a bound is 0 in floating point, and they contain the mean.
func TestTinyBounds(t *testing.T) {
	for _, bound := range []float64{5e-324, 1e-310, 1e-170, 1e-150} {
		b := new(Mean).Begin()
		b.Add(bound, bound)
		b.Add(0, bound)
		m := new(Mean)
		m.Add(&b)
		if low, high := m.Interval(0.05); !(low < m.Average() && m.Average() < high && high < 1e-140) {
			t.Errorf("bound %v: an interval from %v to %v around %v", bound, low, high, m.Average())
		}
	}
}

// play draws observations until end, and reports whether a bound was ever on the wrong side of the average mean.
func play(
	rng *rand.Rand, alpha float64, end, block int, draw func(t int, rng *rand.Rand) (x, mean, bound float64),
) (low, high bool, m Mean) {
	truth := 0.0
	for n := 0; n < end; {
		b := m.Begin()
		for range block {
			x, mean, bound := draw(n, rng)
			b.Add(x, bound)
			truth += mean
			n++
		}
		m.Add(&b)
		low = low || m.Low(alpha) > truth/float64(n)
		high = high || m.High(alpha) < truth/float64(n)
	}
	return low, high, m
}

// The bounds hold at all times simultaneously with the stated probability: for rare sales, drifting means, and revenues
// with a bound that grows on the way, observed one by one and in blocks.
func TestCoverage(t *testing.T) {
	const alpha, runs = 0.1, 400
	worlds := map[string]func(int, *rand.Rand) (x, mean, bound float64){
		"rare sales": func(_ int, rng *rand.Rand) (float64, float64, float64) {
			return sale(rng, 0.02, 1), 0.02, 1
		},
		"drift": func(t int, rng *rand.Rand) (float64, float64, float64) {
			p := 0.5 + 0.4*math.Sin(float64(t)/100)
			return sale(rng, p, 3), 3 * p, 3
		},
		"bounds grow": func(t int, rng *rand.Rand) (float64, float64, float64) {
			price := 1 + float64(t/200)
			return sale(rng, 0.3, price), 0.3 * price, price
		},
		"depends on the past": func() func(int, *rand.Rand) (float64, float64, float64) {
			last := 0.0
			return func(_ int, rng *rand.Rand) (float64, float64, float64) {
				p := 0.2 + 0.6*last
				last = sale(rng, p, 1)
				return last, p, 1
			}
		}(),
	}
	for name, world := range worlds {
		for _, block := range []int{1, 50} {
			lows, highs := 0, 0
			for seed := range uint64(runs) {
				low, high, _ := play(rand.New(rand.NewPCG(seed, 7)), alpha, 1000, block, world)
				if low {
					lows++
				}
				if high {
					highs++
				}
			}
			if most := alpha*runs + 3*math.Sqrt(alpha*(1-alpha)*runs); float64(lows) > most || float64(highs) > most {
				t.Errorf("%s in blocks of %d: of %d runs %d had a low and %d a high bound on the wrong side, at "+
					"most %.0f may", name, block, runs, lows, highs, most)
			}
		}
	}
}

func sale(rng *rand.Rand, p, price float64) float64 {
	if rng.Float64() < p {
		return price
	}
	return 0
}

// The bounds are useful: they tell 0.3 from 0.2 within 2,000 observations, and become as narrow as √(log log n / n)
// allows.
func TestPower(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	_, _, m := play(rng, 0.01, 2000, 1, func(_ int, rng *rand.Rand) (float64, float64, float64) {
		return sale(rng, 0.2, 1), 0.2, 1
	})
	if high := m.High(0.01); high > 0.27 {
		t.Errorf("after 2000 sales at a rate of 0.2 the upper bound is %v", high)
	}
	low, high := m.Interval(0.02)
	if low != m.Low(0.01) || high != m.High(0.01) {
		t.Errorf("the interval is [%v, %v], want [%v, %v]", low, high, m.Low(0.01), m.High(0.01))
	}
	for range 8 {
		m.Join(&Mean{N: m.N, Sum: m.Sum, Squares: m.Squares})
	}
	if width := m.High(0.01) - m.Average(); width > 3.5*math.Sqrt(0.16/float64(m.N))*1.6 {
		t.Errorf("after %d observations the width is %v", m.N, width)
	}
}

// The bounds for a few sales, by the formula: c = 4 is the smallest power of two times the first bound that reaches the
// largest bound, 3. So k = 2, and the sequence uses 1/12 of the error.
func TestBoundsByHand(t *testing.T) {
	var m Mean
	first := m.Begin()
	for _, x := range []float64{1, 0, 1} {
		first.Add(x, 1)
	}
	m.Add(&first)
	second := m.Begin() // around 2/3
	second.Add(0, 2)
	second.Add(3, 3)
	m.Add(&second)
	v := 2 + math.Pow(3-2.0/3, 2) + math.Pow(2.0/3, 2)
	const c, alpha = 4.0, 0.05
	v = max(v, c*c)
	l := 1.4*math.Log(math.Log2(v/(c*c))+1) + math.Log(mathext.Zeta(1.4, 1)/(alpha/12))
	a, b := (math.Pow(2, 0.25)+math.Pow(2, -0.25))/math.Sqrt2, (math.Sqrt2+1)/2
	width := (math.Sqrt(a*a*v*l+b*b*c*c*l*l) + b*c*l) / 5
	if low, high := m.Low(alpha), m.High(alpha); math.Abs(low-(1-width)) > 1e-12 || math.Abs(high-(1+width)) > 1e-12 {
		t.Errorf("the bounds are %v and %v, want %v and %v", low, high, 1-width, 1+width)
	}
	if want := 2 + math.Pow(3-2.0/3, 2) + math.Pow(2.0/3, 2); math.Abs(m.Squares.Value()-want) > 1e-12 {
		t.Errorf("V is %v, want %v", m.Squares.Value(), want)
	}
}

// The bounds scale with the currency.
func TestScale(t *testing.T) {
	var a, b Mean
	x, y := a.Begin(), b.Begin()
	for t := range 100 {
		x.Add(float64(t%3), 2+float64(t%5))
		y.Add(1024*float64(t%3), 1024*(2+float64(t%5)))
	}
	a.Add(&x)
	b.Add(&y)
	if 1024*a.Low(0.05) != b.Low(0.05) || 1024*a.High(0.05) != b.High(0.05) {
		t.Errorf("[%v, %v] and [%v, %v]", a.Low(0.05), a.High(0.05), b.Low(0.05), b.High(0.05))
	}
}

// Without observations there are no bounds. If all observations were certain, the bounds equal their mean.
func TestEmpty(t *testing.T) {
	var m Mean
	if low, high := m.Interval(0.05); !math.IsInf(low, -1) || !math.IsInf(high, 1) {
		t.Errorf("[%v, %v] without observations", low, high)
	}
	b := m.Begin()
	b.Add(0, 0)
	m.Add(&b)
	if low, high := m.Interval(0.05); low != 0 || high != 0 {
		t.Errorf("[%v, %v] of a certain 0", low, high)
	}
	c := m.Begin()
	c.Add(0, 1)
	m.Add(&c)
	if low, high := m.Interval(0.05); !(low < 0) || !(high > 0) {
		t.Errorf("[%v, %v] of an uncertain 0", low, high)
	}
}

// If 0 of 10 events happened, q satisfies (1 − q)^10 >= alpha. Swapping events and non-events mirrors the bounds.
func TestShare(t *testing.T) {
	low, high := Share(0, 10, 0.05)
	if want := 1 - math.Pow(0.05, 0.1); low != 0 || math.Abs(high-want) > 1e-9 {
		t.Errorf("0 of 10: [%v, %v], want up to %v", low, high, want)
	}
	low, high = Share(3, 10, 0.05)
	other, another := Share(7, 10, 0.05)
	if math.Abs(low-(1-another)) > 1e-9 || math.Abs(high-(1-other)) > 1e-9 || low > 0.3 || high < 0.3 {
		t.Errorf("3 of 10: [%v, %v], 7 of 10: [%v, %v]", low, high, other, another)
	}
	if d := 0.3*math.Log(0.3/low) + 0.7*math.Log(0.7/(1-low)); math.Abs(10*d-math.Log(20)) > 1e-6 {
		t.Errorf("the bound %v of 3 of 10 has the divergence %v", low, d)
	}
	if low, high = Share(0, 0, 0.05); low != 0 || high != 1 {
		t.Errorf("of nothing: [%v, %v]", low, high)
	}
}

// Until is the first number of observations whose interval is narrow enough, if V_n grows on as it did.
func TestUntil(t *testing.T) {
	m := Mean{N: 100, Sum: precise.Of(30), Squares: precise.Of(21), First: 1, Bound: 3}
	for _, half := range []float64{0.5, 0.1, 0.02} {
		n := m.Until(0.05, half)
		width := func(n float64) float64 {
			at := Mean{N: uint64(n), Sum: precise.Of(0.3 * n), Squares: precise.Of(0.21 * n), First: 1, Bound: 3}
			low, high := at.Interval(0.05)
			return (high - low) / 2
		}
		if n > 100 && width(n-1) <= half || width(n) > half || n != math.Floor(n) {
			t.Errorf("with %v observations the half-width is %v, with one less %v, want %v",
				n, width(n), width(n-1), half)
		}
	}
	if n := m.Until(0.05, 1e9); n != 100 {
		t.Errorf("a wide interval needs %v observations", n)
	}
	if n := m.Until(0.05, 0); !math.IsInf(n, 1) {
		t.Errorf("an interval without a width needs %v observations", n)
	}
}

// Of experiments with a planned number of observations, the planned part has an interval above zero at the end, within
// the error of the simulation. At half that number far fewer do: the plan asks for no more than it needs.
func TestPlan(t *testing.T) {
	const alpha, power, runs = 0.05, 0.8, 200
	for name, c := range map[string]struct {
		gain, rate, price float64
	}{
		"rare sales":     {gain: 0.01, rate: 0.05, price: 1},
		"frequent sales": {gain: 0.05, rate: 0.5, price: 1},
		"expensive":      {gain: 1, rate: 0.1, price: 40},
	} {
		// one of two ways is drawn with 1/2, the second of which sells gain more; D of both, around 0
		bound := 2 * c.price
		more := c.rate + c.gain/c.price
		square := 2 * c.price * c.price * (c.rate + more)
		n := int(Plan(alpha, power, c.gain, square, bound))
		half, end := 0, 0
		for seed := range uint64(runs) {
			rng := rand.New(rand.NewPCG(seed, 5))
			var m Mean
			b := m.Begin()
			for k := range n {
				x := 0.0
				if rng.IntN(2) == 0 {
					x = 2 * sale(rng, more, c.price)
				} else {
					x = -2 * sale(rng, c.rate, c.price)
				}
				b.Add(x, bound)
				if k == n/2 || k == n-1 {
					at := m
					if at.Add(&b); at.Low(alpha/2) > 0 {
						if k == n-1 {
							end++
						} else {
							half++
						}
					}
				}
			}
		}
		wrong := 4 * math.Sqrt(power*(1-power)*runs)
		if math.Abs(float64(end)-power*runs) > wrong+0.05*runs || half > end/2 {
			t.Errorf("%s: of %d experiments with %d observations %d have shown the gain at the end, and %d "+
				"half-way; planned are %.0f", name, runs, n, end, half, power*runs)
		}
	}
	if n := Plan(alpha, power, 0, 1, 1); !math.IsInf(n, 1) {
		t.Errorf("no gain is seen after %v observations", n)
	}
}

// The first bound of observations bounded by 0 is the first larger bound that they get later.
func TestWiden(t *testing.T) {
	var b Block
	b.Add(0, 0)
	for _, bound := range []float64{1, 3, 2} {
		b.Sums.Widen(bound)
	}
	if m := b.Sums; m.First != 1 || m.Bound != 3 || math.Abs(m.width(0.05)-stitched(0, 4, 0.05/12)) > 1e-12 {
		t.Errorf("%+v with the width %v", m, m.width(0.05))
	}
}
