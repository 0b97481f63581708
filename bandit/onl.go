package bandit

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment/search"
	"vitrine/internal/fields"
	"vitrine/internal/gram"
	"vitrine/internal/scratch"
	"vitrine/mle"
	"vitrine/utility"
)

// FitOptions configure the warm-up and the estimation of learners of non-linear families.
type FitOptions struct {
	Warmup int `toml:"warmup" range:"[0, inf)" doc:"t_0, the rounds of Phase I, whose offers are uniform; fewer than rounds"`
	// The paper sets λ = c_λ κ^(-5/2) d_w √T with c_λ from a grid search; configure the product.
	Lambda float64 `toml:"lambda" range:"[1e-9, inf)" doc:"λ, the precision of the penalty around the pilot and of V_0"`
	// "adam" is the paper's, "map" uses Levenberg–Marquardt, and "given" takes a model that was fitted before.
	Pilot        string    `toml:"pilot" range:"adam|map|given" doc:"by Adam, by the ridge-penalised maximum, or given as pilot_weights"`
	PilotWeights []float64 `toml:"pilot_weights" doc:"ŵ_0 of pilot = given, with which Phase II begins in the first round"`
	PilotRate    float64   `toml:"pilot_rate" range:"(0, inf)" doc:"the step size of pilot = adam"`
	PilotSteps   int       `toml:"pilot_steps" range:"[0, 100000]" doc:"the number of steps of pilot = adam"`
	PilotRidge   float64   `toml:"pilot_ridge" range:"(0, inf)" doc:"ρ of the penalty (ρ/2)‖w‖² of pilot = map"`
	// "mle" is the paper's; "online" costs the same in every round; greedy with "none" explores, then commits.
	Update    string  `toml:"update" range:"mle|online|none" doc:"how ŵ moves each round: to the minimum of the loss, by one step, or never"`
	Step      float64 `toml:"step" range:"(0, inf)" doc:"η, the step size of update = online"`
	Tolerance float64 `toml:"tolerance" range:"(0, inf)" doc:"the squared Newton decrement at which update = mle stops"`
	// The order of a round's offer says which place each item had.
	PositionEffects bool `toml:"position_effects,omitempty" doc:"whether places sell differently, which is learned: u_i + γ_p, γ_1 = 0"`
}

// maxPilot bounds a given weight, so that utilities stay finite with the largest features.
const maxPilot = 1e6

// DefaultFitOptions returns the options of our realizable panels. The paper gives t_0
// and the options of Adam, and leaves λ to a grid search.
func DefaultFitOptions() FitOptions {
	return FitOptions{
		Warmup: 50, Lambda: 10,
		Pilot: "adam", PilotRate: 1e-4, PilotSteps: 2000, PilotRidge: 1,
		Update: "mle", Step: 1, Tolerance: 1e-6,
	}
}

// ONLOptions are the inputs of Algorithm 1 and the choices that the paper leaves open.
type ONLOptions struct {
	FitOptions
	// β_t = β_T · t/T, where t counts the rounds observed, and goes on growing past T. The paper sets β_t = c_β κ⁻⁴ d_w
	// t/T with c_β from a grid search; configure the product.
	Beta float64 `toml:"beta" range:"[0, inf)" doc:"β_T, the squared confidence radius at the horizon; β_t = β_T t/T"`
	// The term β_t C_h/λ is the same for all items and moves an offer only where revenues differ.
	Curvature float64 `toml:"curvature" range:"[0, inf)" doc:"C_h, the bound on ‖∇²f‖"`
	// The pilot is scaled into the ball, and ŵ_t is the minimiser over it. The paper assumes 𝒲 in the unit ball, but w*
	// is outside in its experiments.
	Ball float64 `toml:"ball" range:"(0, inf)" zero:"no bound" doc:"B, of the minimisers over ‖w‖ ≤ B"`
	// "theory" is the [TheorySchedule], instead of Warmup, Lambda and Beta.
	Schedule      string  `toml:"schedule" range:"configured|theory" doc:"whether t_0, λ and β_t are the options above or the theorem's"`
	Kappa         float64 `toml:"kappa" range:"(0, 0.25]" when:"schedule=theory" doc:"κ of schedule = theory; no p(0)p(i) exceeds 0.25"`
	Mu            float64 `toml:"mu" range:"(0, inf)" when:"schedule=theory" doc:"μ of schedule = theory"`
	Delta         float64 `toml:"delta" range:"(0, 1)" when:"schedule=theory" doc:"δ of schedule = theory, the probability of failure"`
	UtilityBound  float64 `toml:"utility_bound" range:"(0, inf)" when:"schedule=theory" doc:"C_f of schedule = theory, the bound on |f|"`
	GradientBound float64 `toml:"gradient_bound" range:"(0, inf)" when:"schedule=theory" doc:"C_g of schedule = theory, the bound on ‖∇f‖"`
}

// DefaultONLOptions returns the options of the paper's panels.
func DefaultONLOptions() ONLOptions {
	return ONLOptions{
		FitOptions: DefaultFitOptions(), Beta: 10,
		Schedule: "configured", Delta: 0.05, UtilityBound: 1, GradientBound: 1,
	}
}

// theory returns the schedule of the theorem for a problem and d_w parameters.
func (o ONLOptions) theory(p Problem, params int) TheorySchedule {
	return TheorySchedule{
		Rounds: p.Rounds, Size: p.MaxShown, Params: params,
		Kappa: o.Kappa, Mu: o.Mu, Delta: o.Delta,
		Cf: o.UtilityBound, Cg: o.GradientBound, Ch: o.Curvature,
	}
}

// Check returns an error if the options do not suit a learner of the problem with the
// given number of parameters.
func (o ONLOptions) Check(p Problem, params int) error {
	_, err := o.resolve(p, params)
	return err
}

// resolve checks the options and sets those that the schedule determines.
func (o ONLOptions) resolve(p Problem, params int) (ONLOptions, error) {
	if err := p.checkOptions(o); err != nil {
		return o, err
	}
	if o.Schedule == "theory" {
		s := o.theory(p, params)
		if t0 := s.Warmup(); t0 >= float64(p.Rounds) {
			return o, fmt.Errorf("schedule = \"theory\": asks for t_0 = %.4g rounds of Phase I, which must be "+
				"less than rounds = %d: give it more than %.4g rounds, or a smaller utility", t0, p.Rounds,
				s.MinRounds())
		}
		o.Warmup, o.Lambda, o.Beta = int(s.Warmup()), s.Lambda(), s.Radius(p.Rounds)
	}
	switch given := o.Pilot == "given"; {
	case given != (len(o.PilotWeights) > 0):
		return o, errors.New("pilot_weights: go with pilot = \"given\", which needs them")
	case given && len(o.PilotWeights) != params:
		return o, fmt.Errorf("pilot_weights: has %d numbers, the utility has %d parameters", len(o.PilotWeights),
			params)
	case given:
		for j, w := range o.PilotWeights {
			if !(math.Abs(w) <= maxPilot) {
				return o, fmt.Errorf("pilot_weights: number %d is %v, must be finite and at most %v in size", j, w,
					float64(maxPilot))
			}
		}
		o.Warmup = 0
	}
	if o.Warmup >= p.Rounds {
		return o, fmt.Errorf("warmup = %d: must be less than rounds = %d, or Phase II never begins", o.Warmup, p.Rounds)
	}
	return o, nil
}

// ONL is ONL-MNL, Algorithm 1 of Hwang, Kim and Oh (2025): optimistic non-linear
// utilities. After a warm-up of uniform assortments it linearises the family around its
// estimates and adds the confidence bonus of that linear model. Comments of the form
// "line n" name the lines of Algorithm 1.
type ONL struct {
	learner
	o     ONLOptions
	model utility.Model

	phase1 *mle.Choices // lines 2–4, until the pilot is computed
	w0     []float64    // the initial weights, then the pilot ŵ_0
	v      *gram.Matrix // V_t
	est    estimator    // ŵ_t, nil in Phase I
	kappa  float64      // plug-in κ of the data of Phase II; 1 before, above any p(0)p(i) ≤ ¼

	pessimism float64      // of greedy: how many standard errors utilities are lowered by
	sigma     gram.Inverse // covariance of the weights, if pessimism > 0

	tangent tangent   // scratch
	probs   []float64 // scratch
}

// estimator follows the parameters of affine utilities u(w) = a + Gw.
type estimator interface {
	Params() []float64
	observe(a []float64, g *mat.Dense, y vitrine.Choice, more ...vitrine.Choice)
	Fields(*fields.Fields)
}

// NewONL returns a learner at its first round, with initial weights from rng.
func NewONL(p Problem, m utility.Model, o ONLOptions, rng *rand.Rand) (*ONL, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if err := p.checkModel("NewONL", m); err != nil {
		return nil, err
	}
	o, err := o.resolve(p, m.NumParams())
	if err != nil {
		return nil, err
	}
	k := newPlaces(p, o.PositionEffects)
	m = k.family(m)
	l := &ONL{
		o: o, model: m,
		phase1: mle.NewChoices(m.NumFeatures()),
		w0:     make([]float64, m.NumParams()),
		v:      gram.New(m.NumParams(), o.Lambda), // line 6
		kappa:  1,
	}
	l.learner = learner{p: p, self: l, identity: p.identify("onl-mnl", 1, utility.Identity(m), o), places: k}
	m.Init(l.w0, rng)
	clear(l.w0[len(l.w0)-int(k):]) // the pilot stays near its start, where places are alike
	copy(l.w0, o.PilotWeights)
	if o.Warmup == 0 {
		l.begin()
	}
	return l, nil
}

// learn implements algorithm. A round that arrives late is linearised at the estimate of its arrival.
func (l *ONL) learn(r vitrine.Round) {
	if l.rounds <= l.o.Warmup {
		l.explore(r)
	} else {
		l.update(r)
	}
}

// explore collects a round of Phase I, and computes the pilot after the last. If a utility is not finite, the round
// counts as one without items.
func (l *ONL) explore(r vitrine.Round) {
	if l.tangent.at(l.model, l.w0, r) != nil {
		l.phase1.Append(r.Context.Features, r.Offer.Assortment, r.Choice, r.More...)
	} else {
		l.phase1.AppendRows(nil, vitrine.Outside)
	}
	if l.rounds == l.o.Warmup {
		l.fitPilot() // line 5
		l.phase1 = nil
		l.begin()
	}
}

// fitPilot minimises the negative log-likelihood of Phase I from the initial weights. explore found every utility
// finite there, so the likelihood is finite too, and the minimisers report no error.
func (l *ONL) fitPilot() {
	nll := &mle.NLL{Model: l.model, Choices: l.phase1}
	if l.o.Pilot == "adam" {
		mle.Adam{Rate: l.o.PilotRate, Steps: l.o.PilotSteps}.Minimize(nll, l.w0)
		return
	}
	nll.Ridge = l.o.PilotRidge
	_, _ = mle.LevenbergMarquardt{Steps: 100, Tolerance: 1e-6}.Minimize(nll, l.w0)
}

// update updates V and ŵ with a round of Phase II.
func (l *ONL) update(r vitrine.Round) {
	w := l.est.Params()
	if g := l.tangent.at(l.model, w, r); g != nil {
		a := l.tangent.u
		l.measureKappa(a)
		utility.Offsets(a, a, g, w)              // a = f_ŵ − ∇fᵀŵ
		l.tangent.addTo(l.v, g, len(r.More))     // line 12
		l.est.observe(a, g, r.Choice, r.More...) // line 9
	}
}

// measureKappa lowers the plug-in κ to the smallest p(0 | S) p(i | S) of an offered set with utilities u.
func (l *ONL) measureKappa(u []float64) {
	l.probs = scratch.Grow(l.probs, len(u)+1)
	vitrine.Probabilities(l.probs, u)
	for _, p := range l.probs[1:] {
		l.kappa = min(l.kappa, l.probs[0]*p)
	}
}

// freeze implements algorithm: π_t, line 3 in Phase I and lines 10 and 11 in
// Phase II.
func (l *ONL) freeze() vitrine.Policy {
	if l.est == nil {
		return &uniform{l.p}
	}
	beta := l.beta()
	pi := &optimistic{p: l.p, z: search.Optimistic{
		Model:  l.model,
		Params: slices.Clone(l.est.Params()),
		Radius: math.Sqrt(beta),
		Slack:  beta * l.o.Curvature / l.o.Lambda,
	}}
	switch {
	case l.pessimism > 0:
		pi.z.Radius, pi.z.Inverse = -l.pessimism, l.sigma
	case beta > 0:
		pi.z.Inverse = l.v.Inverse()
	}
	return pi.inPlaces(l.places)
}

// beta returns β_t for the coming round t: the theory's, or β_T · t/T.
func (l *ONL) beta() float64 {
	if l.o.Schedule == "theory" {
		return l.o.theory(l.p, l.model.NumParams()).Radius(l.rounds + 1)
	}
	return l.o.Beta * float64(l.rounds+1) / float64(l.p.Rounds)
}

// Diagnostics returns kappa, the plug-in κ of Phase II: the least p(0|S)p(i|S) over the items offered, at the estimates
// of their rounds. The paper's κ is a minimum over all sets and parameters.
func (l *ONL) Diagnostics() map[string]float64 {
	if l.kappa == 1 {
		return nil
	}
	return map[string]float64{"kappa": l.kappa}
}

// Ellipsoid is the confidence set of a round,
//
//	C_t = {w : ‖w − ŵ_t‖²_{V_t} ≤ β_t}
type Ellipsoid struct {
	Pilot  []float64    // ŵ_0
	Center []float64    // ŵ_t
	Gram   *gram.Matrix // V_t
	Beta   float64      // β_t
	Lambda float64      // λ
}

// Ellipsoid returns the confidence set of the coming round t; ok is false in Phase I.
// It shares the learner's memory: it is valid until the next Observe, and must not be
// changed.
func (l *ONL) Ellipsoid() (e Ellipsoid, ok bool) {
	if l.est == nil {
		return e, false
	}
	return Ellipsoid{l.w0, l.est.Params(), l.v, l.beta(), l.o.Lambda}, true
}

// begin begins Phase II at the pilot, which it scales into the ball.
func (l *ONL) begin() {
	if norm := floats.Norm(l.w0, 2); l.o.Ball > 0 && norm > l.o.Ball {
		floats.Scale(l.o.Ball/norm, l.w0)
	}
	l.est = l.newEstimator()
}

func (l *ONL) newEstimator() estimator {
	switch l.o.Update {
	case "none":
		return committed(l.w0)
	case "online":
		o := mle.NewOnline(l.o.Lambda, l.w0, l.o.Step, 2*l.o.Step)
		o.Radius = l.o.Ball
		return online{o}
	}
	n := mle.NewNewton(l.o.Lambda, l.w0, l.o.Tolerance)
	n.Radius = l.o.Ball
	return newton{n}
}

// checkRounds fails the decoding if the estimator's data contain more rounds than were observed.
func checkRounds(f *fields.Fields, e estimator, rounds int) {
	if n, ok := e.(newton); ok {
		f.Check(n.Loss().Rounds() <= rounds, "data of %d rounds, of which %d are counted", n.Loss().Rounds(), rounds)
	}
}

// newton computes ŵ_t = argmin ℓ_t.
type newton struct{ *mle.Newton }

func (n newton) observe(a []float64, g *mat.Dense, y vitrine.Choice, more ...vitrine.Choice) {
	n.Append(a, g, y, more...)
	n.Minimize()
}

// online takes one step a round,
//
//	ŵ_{t+1} = ŵ_t − (H_t/(2η) + G_t/2)⁻¹ ∇_t = ŵ_t − 2η (H_t + η G_t)⁻¹ ∇_t
type online struct{ *mle.Online }

func (o online) observe(a []float64, g *mat.Dense, y vitrine.Choice, more ...vitrine.Choice) {
	o.Update(a, g, y, more...)
}

// recursive is for utilities Gw.
type recursive struct{ *mle.Recursive }

func (r recursive) observe(_ []float64, g *mat.Dense, y vitrine.Choice, more ...vitrine.Choice) {
	r.Update(g, y, more...)
}

// committed stays at the pilot.
type committed []float64

func (c committed) Params() []float64                                              { return c }
func (committed) observe([]float64, *mat.Dense, vitrine.Choice, ...vitrine.Choice) {}
func (committed) Fields(*fields.Fields)                                            {}

// fields implements algorithm.
func (l *ONL) fields(f *fields.Fields, rounds int) func() {
	n := *l
	f.Vector(&n.w0)
	f.Float(&n.kappa)
	f.Check(n.kappa >= 0 && n.kappa <= 1, "κ = %v", n.kappa)
	inPhase1 := rounds < n.o.Warmup
	if f.Reads() {
		n.v, n.phase1, n.est = gram.New(len(l.w0), l.o.Lambda), nil, nil
		if inPhase1 {
			n.phase1 = mle.NewChoices(n.model.NumFeatures())
		} else if f.Err() == nil {
			n.est = n.newEstimator()
		} else {
			return nil
		}
	}
	if n.v.Fields(f); inPhase1 {
		n.phase1.Fields(f)
		f.Check(n.phase1.Rounds() == rounds, "%d rounds of Phase I, of which %d are counted", n.phase1.Rounds(), rounds)
	} else {
		n.est.Fields(f)
		checkRounds(f, n.est, rounds-n.o.Warmup)
	}
	return func() { *l = n }
}
