package bandit

import (
	"math"
	"math/bits"
	"math/rand/v2"

	"vitrine"
	"vitrine/internal/fields"
	"vitrine/internal/stream"
	"vitrine/mle"
	"vitrine/utility"
)

// RegressionOptions are the options of the regression oracle of Zhang and Luo (2024),
// which estimates the utilities from the rounds so far.
type RegressionOptions struct {
	Oracle string  `toml:"oracle" range:"offline|online" doc:"training at the end of epochs of 1, 2, 4, … rounds, or one step a round"`
	Rate   float64 `toml:"rate" range:"(0, inf)" doc:"the step size of Adam, the offline oracle"`
	Steps  int     `toml:"steps" range:"[0, 100000]" doc:"the number of steps of Adam at each training"`
	// The paper does not say where a training starts.
	Restart bool    `toml:"restart" doc:"whether an offline training starts from new random weights, not the last ones"`
	Lambda  float64 `toml:"lambda" range:"[1e-9, inf)" doc:"λ of the online oracle, the precision of the penalty"`
	Step    float64 `toml:"step" range:"(0, inf)" doc:"η of the online oracle, the step size"`
}

// DefaultRegressionOptions returns the options of the paper's appendix for the offline oracle, and ONL-MNL's for the
// online one.
func DefaultRegressionOptions() RegressionOptions {
	return RegressionOptions{Oracle: "offline", Rate: 1e-4, Steps: 2000, Lambda: 1, Step: 1}
}

// ErrorOptions describe the error of a regression oracle in the theory's schedules: a bound on its excess log loss
// after n rounds,
//
//	Err(n) = c d_w n^(−a)
type ErrorOptions struct {
	ErrConstant float64 `toml:"err_constant" range:"(0, inf)" doc:"c of the oracle's error Err(n) = c d_w n^(−a) (theory)"`
	ErrRate     float64 `toml:"err_rate" range:"(0, inf)" doc:"a of the oracle's error (theory)"`
}

// DefaultErrorOptions returns the order of the error of maximum likelihood, d_w/n.
func DefaultErrorOptions() ErrorOptions { return ErrorOptions{ErrConstant: 1, ErrRate: 1} }

// regressor is the regression oracle of log loss. Offline, the epochs end after
// the rounds 2ᵏ − 1, and at the end of each
//
//	ŵ ← Adam on −Σ_{s in the epoch} log p(i_s | S_s, w)
//
// Online, each round is linearised at ŵ_t and takes the step of [mle.Online],
//
//	ŵ_{t+1} = ŵ_t − 2η (H_t + η G_t)⁻¹ ∇_t,   H_1 = λI
type regressor struct {
	learner
	o      RegressionOptions
	model  utility.Model
	seed   uint64       // of the weights of later epochs
	w      []float64    // ŵ, of the offline oracle; the initial weights of the online one
	epoch  *mle.Choices // rounds of the current epoch; empty online
	online *mle.Online  // nil offline

	tangent tangent // scratch
}

// newRegressor returns the oracle of a learner with the given position effects that the named constructor makes.
// The constructor sets its identity and self.
func newRegressor(constructor string, p Problem, m utility.Model, k places, o RegressionOptions,
	rng *rand.Rand) (regressor, error) {
	if err := p.check(); err != nil {
		return regressor{}, err
	}
	if err := p.checkModel(constructor, m); err != nil {
		return regressor{}, err
	}
	l := regressor{learner: learner{p: p, places: k}, o: o, model: k.family(m)}
	l.w = make([]float64, l.model.NumParams())
	m.Init(l.w[:m.NumParams()], rng)
	l.seed = rng.Uint64()
	l.start()
	return l, nil
}

// start makes what the oracle needs besides its weights.
func (l *regressor) start() {
	l.epoch = mle.NewChoices(l.p.NumFeatures + int(l.places))
	if l.o.Oracle == "online" {
		l.online = mle.NewOnline(l.o.Lambda, l.w, l.o.Step, 2*l.o.Step)
	}
}

// params returns a copy of ŵ.
func (l *regressor) params() []float64 {
	w := l.w
	if l.online != nil {
		w = l.online.Params()
	}
	return append([]float64(nil), w...)
}

// learn implements algorithm. A round with utilities that are not finite counts as one without items.
func (l *regressor) learn(r vitrine.Round) {
	w := l.w
	if l.online != nil {
		w = l.online.Params()
	}
	g := l.tangent.at(l.model, w, r)
	if l.online == nil {
		if g != nil {
			l.epoch.Append(r.Context.Features, r.Offer.Assortment, r.Choice, r.More...)
		} else {
			l.epoch.AppendRows(nil, vitrine.Outside)
		}
		if l.rounds == l.epochStart() {
			l.train()
		}
	} else if g != nil {
		a := l.tangent.u
		utility.Offsets(a, a, g, w) // a = f_ŵ − ∇fᵀŵ
		l.online.Update(a, g, r.Choice, r.More...)
	}
}

// train fits the utility to the epoch that ends, and begins the next.
func (l *regressor) train() {
	if l.o.Restart {
		l.model.Init(l.w, stream.New(l.seed, l.rounds, stream.Learner))
	}
	nll := &mle.NLL{Model: l.model, Choices: l.epoch}
	mle.Adam{Rate: l.o.Rate, Steps: l.o.Steps}.Minimize(nll, l.w)
	l.epoch.Reset()
}

// epochStart returns the number of rounds before the current epoch.
func (l *regressor) epochStart() int { return epochStart(l.rounds) }

// epochStart returns the largest 2ᵏ − 1 that is not above a number of rounds.
func epochStart(rounds int) int { return 1<<(bits.Len(uint(rounds)+1)-1) - 1 }

// err returns the oracle's error that the theory's schedules assume in the coming round, from the number of rounds
// learned: offline the rounds of the epoch before, 2^{m−2}, and infinite in the first epoch; online Err(T), the mean
// over the horizon of its regret in log loss.
func (l *regressor) err(o ErrorOptions) float64 {
	n := float64(l.p.Rounds)
	if l.online == nil {
		if l.epochStart() == 0 {
			return math.Inf(1)
		}
		n = float64(l.epochStart()+1) / 2
	}
	return o.ErrConstant * float64(len(l.w)) * math.Pow(n, -o.ErrRate)
}

// fields implements algorithm.
func (l *regressor) fields(f *fields.Fields, rounds int) func() {
	n := *l
	f.Uvarint(&n.seed)
	f.Vector(&n.w)
	if f.Reads() {
		if f.Err() != nil {
			return nil
		}
		n.start()
	}
	if n.online != nil {
		n.online.Fields(f)
	} else {
		n.epoch.Fields(f)
		have, want := n.epoch.Rounds(), rounds-epochStart(rounds)
		f.Check(have == want, "%d rounds of the current epoch after %d, want %d", have, rounds, want)
	}
	return func() { *l = n }
}
