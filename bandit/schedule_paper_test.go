package bandit

import (
	"math"
	"testing"

	"vitrine/assortment"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/utility"
)

// Theorem "Regret Bound": t_0 = ⌈κ^(−3/2) d_w √T⌉, with κ^(−3/2) = 8 at κ = 1/4
// and 1000 at κ = 1/100.
func TestTheoremWarmup(t *testing.T) {
	for _, c := range []struct {
		rounds, params int
		kappa          float64
		want           float64
	}{
		{1000, 16, 0.25, 4048}, // 8·16·31.6228 = 4047.7
		{10_000, 4, 0.25, 3200},
		{10_000, 4, 0.01, 400_000},
	} {
		s := TheorySchedule{Rounds: c.rounds, Params: c.params, Kappa: c.kappa}
		// κ^(−3/2) is not exact, so that the ceiling may take the next number.
		if got := s.Warmup(); got != c.want && got != c.want+1 {
			t.Errorf("%+v: t_0 = %v", c, got)
		}
	}
	// t_0 < T from there on.
	s := TheorySchedule{Params: 4, Kappa: 0.25}
	wantNear(t, "the horizon that t_0 equals", s.MinRounds(), 1024, 1e-12)
}

// λ and β_t, every factor written out with numbers: T = 10 000, K = 2, d_w = 4,
// κ = 1/4, μ = 1/2, δ = e⁻², C_f = 2, C_g = 1, C_h = 3, so that t_0 = 3200.
func TestTheoremRadius(t *testing.T) {
	s := TheorySchedule{Rounds: 10_000, Size: 2, Params: 4, Kappa: 0.25, Mu: 0.5, Delta: math.Exp(-2), Cf: 2, Cg: 1,
		Ch: 3}
	const c0 = 359.88225099390855         // 4(1+6√2)² = 4(73 + 12√2)
	zeta := math.Ln2 * math.Log(3200) * 2 // log K log(t_0 C_g) log(1/δ)
	log := 2 + 8*math.Ln10 + 2*math.Log(math.Pi)
	zeta1 := math.Log(2501) * log // log(1 + T/d_w) log(T²π²/δ)
	a := c0 * 4 * 3 * zeta        // C_0 C_f² C_h ζ
	// κ^(−5/2) = 32, κ⁴ = 2⁻⁸, κ⁷μ² = 2⁻¹⁶
	lambda := 100 * 2 * c0 * 3 * 4 * 32 * (a + math.Sqrt(a*a/256+zeta1/65536)) / 0.5
	wantNear(t, "C_0", confidence0, c0, 1e-14)
	wantNear(t, "λ", s.Lambda(), lambda, 1e-12)
	for _, round := range []int{1, 3201, 10_000} {
		alpha := 4 * math.Log(1+10_000/(4*lambda)) * (2 + 2*math.Log(float64(round)*math.Pi))
		// κ⁻⁴ = 256, d_w³ = 64, C_f⁴ = 16, C_h² = 9, (μ t_0)² = 1600²
		linearised := 9. * 256 * 64 * 16 * zeta * zeta * float64(round) / (1600 * 1600)
		pilot := lambda * 16 * 4 * 4 * zeta / 1600
		wantNear(t, "β_t", s.Radius(round), c0*4*(alpha+linearised+pilot), 1e-12)
	}

	// Without curvature λ is the least that the proof supposes, C_g².
	s.Ch, s.Cg = 0, 3
	wantNear(t, "λ of a linear utility", s.Lambda(), 9, 1e-15)
	// With K = 1 the logarithm ζ is 0, and only α_t is left.
	s.Size = 1
	wantNear(t, "β of single items", s.Radius(5), c0*4*4*math.Log(1+10_000*9/(4*9.0))*(2+2*math.Log(5*math.Pi)), 1e-12)
}

// The learner takes t_0, λ and β_t from the schedule.
func TestScheduleIsOfTheTheorem(t *testing.T) {
	p := Problem{NumFeatures: 1, MaxShown: 2, Rounds: 300, Constraint: assortment.AtMost(2)}
	m := utility.NewLinear(1, true) // d_w = 2: t_0 = ⌈16·17.32⌉ = 278
	o := DefaultONLOptions()
	o.Schedule, o.Kappa, o.Mu, o.Curvature = "theory", 0.25, 1, 0.5
	l := fatal.Or(NewONL(p, m, o, newRand()))(t)
	s := TheorySchedule{Rounds: 300, Size: 2, Params: 2, Kappa: 0.25, Mu: 1, Delta: 0.05, Cf: 1, Cg: 1, Ch: 0.5}
	expect.Equal(t, l.o.Warmup, 278, "t_0")
	wantNear(t, "λ", l.o.Lambda, s.Lambda(), 1e-15)
	l.rounds = 279
	wantNear(t, "β_280", l.beta(), s.Radius(280), 1e-15)
}

func TestScheduleIsChecked(t *testing.T) {
	for want, change := range map[string]func(*ONLOptions){
		`schedule = "paper": unknown: must be one of`:   func(o *ONLOptions) { o.Schedule = "paper" },
		"kappa = 0: must be above 0 and at most 0.25":   func(o *ONLOptions) { o.Kappa = 0 },
		"kappa = 0.3: must be above 0 and at most 0.25": func(o *ONLOptions) { o.Kappa = 0.3 },
		"kappa = NaN: must be above 0":                  func(o *ONLOptions) { o.Kappa = math.NaN() },
		"mu = 0":                                        func(o *ONLOptions) { o.Mu = 0 },
		"delta = 1: must be between 0 and 1":            func(o *ONLOptions) { o.Delta = 1 },
		"utility_bound = -1":                            func(o *ONLOptions) { o.UtilityBound = -1 },
		"gradient_bound = +Inf": func(o *ONLOptions) {
			o.GradientBound = math.Inf(1)
		},
		"curvature = -1": func(o *ONLOptions) { o.Curvature = -1 },
		"asks for t_0 = 1841 rounds of Phase I, which must be less than": func(o *ONLOptions) {},
		"more than 2.822e+04 rounds":                                     func(o *ONLOptions) {},
		"asks for t_0 = 2.3e+17":                                         func(o *ONLOptions) { o.Kappa = 1e-10 },
	} {
		o := DefaultONLOptions()
		o.Schedule, o.Kappa, o.Mu = "theory", 0.25, 1
		change(&o)
		// The paper's network of four units: d_w = 21, and T = 120.
		expect.Part(NewONL(paperProblem(), paperModel(), o, newRand()))(t, want)
	}
}
