package bandit

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit/bandittest"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/fields"
	"vitrine/utility"
)

func newRand() *rand.Rand { return rand.New(rand.NewPCG(11, 5)) }

// must is for learners with valid options.
func must[L vitrine.Learner](l L, err error) vitrine.Learner {
	if err != nil {
		panic(err)
	}
	return l
}

// learners are all of the package, with a Phase I short enough for the
// battery.
func learners() map[string]func(p Problem) vitrine.Learner {
	onl := func(change func(o *ONLOptions)) func(p Problem) vitrine.Learner {
		return func(p Problem) vitrine.Learner {
			o := DefaultONLOptions()
			o.Warmup, o.PilotSteps = 12, 50
			change(&o)
			return must(NewONL(p, paperModel(), o, newRand()))
		}
	}
	return map[string]func(p Problem) vitrine.Learner{
		"onl-mnl":             onl(func(o *ONLOptions) {}),
		"onl-mnl online":      onl(func(o *ONLOptions) { o.Update, o.Pilot = "online", "map" }),
		"onl-mnl ball":        onl(func(o *ONLOptions) { o.Ball = 0.5 }),
		"onl-mnl ball online": onl(func(o *ONLOptions) { o.Ball, o.Update = 0.5, "online" }),
		"onl-mnl linear": func(p Problem) vitrine.Learner {
			o := DefaultONLOptions()
			o.Warmup = 0
			return must(NewONL(p, utility.NewLinear(p.NumFeatures, true), o, newRand()))
		},
		"greedy": func(p Problem) vitrine.Learner {
			o := DefaultGreedyOptions()
			o.Warmup, o.PilotSteps = 12, 50
			return must(NewGreedy(p, paperModel(), o, newRand()))
		},
		"greedy commits": func(p Problem) vitrine.Learner {
			o := DefaultGreedyOptions()
			o.Warmup, o.PilotSteps, o.Update = 12, 50, "none"
			return must(NewGreedy(p, paperModel(), o, newRand()))
		},
		"ucb-mnl": func(p Problem) vitrine.Learner { return must(NewUCB(p, DefaultUCBOptions())) },
		"ucb-mnl likelihood": func(p Problem) vitrine.Learner {
			return must(NewUCB(p, UCBOptions{LinearOptions: LinearOptions{Constants: "likelihood", Lambda: 1}}))
		},
		"ucb-mnl online": func(p Problem) vitrine.Learner {
			return must(NewUCB(p, UCBOptions{LinearOptions: LinearOptions{Constants: "theory", Lambda: 1}, Update: "online"}))
		},
		"ts-mnl": func(p Problem) vitrine.Learner { return must(NewTS(p, DefaultTSOptions())) },
		"ofu-mnl-plus": func(p Problem) vitrine.Learner {
			return must(NewOFU(p, DefaultOFUOptions()))
		},
		"ofu-mnl-plus published": func(p Problem) vitrine.Learner {
			o := DefaultOFUOptions()
			o.Constants = "published"
			return must(NewOFU(p, o))
		},
		"ucb-mnl quadratic": func(p Problem) vitrine.Learner {
			return must(NewUCBOn(p, utility.NewQuadratic(p.NumFeatures), DefaultUCBOptions()))
		},
		"ts-mnl quadratic": func(p Problem) vitrine.Learner {
			return must(NewTSOn(p, utility.NewQuadratic(p.NumFeatures), DefaultTSOptions()))
		},
		"ofu-mnl-plus quadratic": func(p Problem) vitrine.Learner {
			return must(NewOFUOn(p, utility.NewQuadratic(p.NumFeatures), DefaultOFUOptions()))
		},
		"eps-greedy-mnl": func(p Problem) vitrine.Learner {
			o := DefaultEpsGreedyOptions()
			o.Steps = 20
			return must(NewEpsGreedy(p, paperModel(), o, newRand()))
		},
		"eps-greedy-mnl sets": func(p Problem) vitrine.Learner {
			o := DefaultEpsGreedyOptions()
			o.Steps, o.Explore, o.Schedule = 20, "set", "theory"
			return must(NewEpsGreedy(p, paperModel(), o, newRand()))
		},
		"eps-greedy-mnl online": func(p Problem) vitrine.Learner {
			o := DefaultEpsGreedyOptions()
			o.Oracle = "online"
			return must(NewEpsGreedy(p, paperModel(), o, newRand()))
		},
		"log-barrier-mnl": func(p Problem) vitrine.Learner {
			o := DefaultLogBarrierOptions()
			o.Steps, o.Limit = 20, 100 // the battery asks for 30 items, too
			p.MaxShown, p.Constraint = 2, assortment.AtMost(2)
			return must(NewLogBarrier(p, paperModel(), o, newRand()))
		},
		"log-barrier-mnl theory": func(p Problem) vitrine.Learner {
			o := DefaultLogBarrierOptions()
			o.Steps, o.Limit, o.Constants = 20, 100, "theory"
			p.MaxShown, p.Constraint = 2, assortment.AtMost(2)
			return must(NewLogBarrier(p, paperModel(), o, newRand()))
		},
		"log-barrier-mnl online": func(p Problem) vitrine.Learner {
			o := DefaultLogBarrierOptions()
			o.Oracle = "online"
			p.MaxShown, p.Constraint = 2, assortment.AtMost(2)
			return must(NewLogBarrier(p, paperModel(), o, newRand()))
		},
		"feel-good-ts": func(p Problem) vitrine.Learner {
			o := DefaultFeelGoodOptions()
			o.Moves = 3
			return must(NewFeelGood(p, paperModel(), o, newRand()))
		},
		"feel-good-ts linear": func(p Problem) vitrine.Learner {
			o := DefaultFeelGoodOptions()
			o.Loss, o.Moves, o.FeelGood = "log", 3, 0
			return must(NewFeelGood(p, utility.NewLinear(p.NumFeatures, true), o, newRand()))
		},
		"bma-mnl": func(p Problem) vitrine.Learner {
			o := DefaultBMAOptions()
			o.Candidates = 20
			return must(NewBMA(p, DefaultExperts(p.NumFeatures), o, newRand()))
		},
		"bma-mnl mlp": func(p Problem) vitrine.Learner {
			return must(NewBMA(p, []Expert{{Model: paperModel()}, {Model: paperModel(), MemoryRounds: 30}},
				DefaultBMAOptions(), newRand()))
		},
		"wide": func(p Problem) vitrine.Learner {
			p.Numeric = []int{0}
			return must(NewWide(p, newRand()))
		},
		"uniform": func(p Problem) vitrine.Learner { return must(NewUniform(p)) },
	}
}

func TestLearnersKeepTheContract(t *testing.T) {
	for name, learner := range learners() {
		t.Run(name, func(t *testing.T) {
			bandittest.TestLearner(t, paperFeatures, paperSize, 60, func() vitrine.Learner {
				return learner(paperProblem())
			})
		})
	}
}

func TestOptionsAreChecked(t *testing.T) {
	p := paperProblem()
	onl := func(change func(o *ONLOptions)) error {
		o := DefaultONLOptions()
		change(&o)
		_, err := NewONL(p, paperModel(), o, newRand())
		return err
	}
	ucb := func(change func(o *UCBOptions)) error {
		o := DefaultUCBOptions()
		change(&o)
		_, err := NewUCB(p, o)
		return err
	}
	eps := func(change func(o *EpsGreedyOptions)) error {
		o := DefaultEpsGreedyOptions()
		change(&o)
		_, err := NewEpsGreedy(p, paperModel(), o, newRand())
		return err
	}
	barrier := func(change func(o *LogBarrierOptions)) error {
		o := DefaultLogBarrierOptions()
		change(&o)
		_, err := NewLogBarrier(p, paperModel(), o, newRand())
		return err
	}
	good := func(change func(o *FeelGoodOptions)) error {
		o := DefaultFeelGoodOptions()
		change(&o)
		_, err := NewFeelGood(p, paperModel(), o, newRand())
		return err
	}
	bma := func(change func(o *BMAOptions)) error {
		o := DefaultBMAOptions()
		change(&o)
		_, err := NewBMA(p, DefaultExperts(p.NumFeatures), o, newRand())
		return err
	}
	problem := func(change func(p *Problem)) error {
		p := paperProblem()
		change(&p)
		_, err := NewUniform(p)
		return err
	}
	for want, err := range map[string]error{
		"lambda = -1":                                onl(func(o *ONLOptions) { o.Lambda = -1 }),
		"lambda = NaN":                               onl(func(o *ONLOptions) { o.Lambda = math.NaN() }),
		"beta = +Inf":                                onl(func(o *ONLOptions) { o.Beta = math.Inf(1) }),
		"beta = -0.5":                                onl(func(o *ONLOptions) { o.Beta = -0.5 }),
		"ball = -1":                                  onl(func(o *ONLOptions) { o.Ball = -1 }),
		"ball = +Inf":                                onl(func(o *ONLOptions) { o.Ball = math.Inf(1) }),
		"curvature = -1":                             onl(func(o *ONLOptions) { o.Curvature = -1 }),
		"warmup = -1":                                onl(func(o *ONLOptions) { o.Warmup = -1 }),
		"warmup = 120: must be less":                 onl(func(o *ONLOptions) { o.Warmup = paperRounds }),
		`pilot = "sgd": unknown: must be one`:        onl(func(o *ONLOptions) { o.Pilot = "sgd" }),
		"pilot_rate = 0":                             onl(func(o *ONLOptions) { o.PilotRate = 0 }),
		"pilot_ridge = 0":                            onl(func(o *ONLOptions) { o.PilotRidge = 0 }),
		"pilot_steps = -1":                           onl(func(o *ONLOptions) { o.PilotSteps = -1 }),
		`update = "": unknown: must be one`:          onl(func(o *ONLOptions) { o.Update = "" }),
		"step = 0":                                   onl(func(o *ONLOptions) { o.Step = 0 }),
		"tolerance = 0":                              onl(func(o *ONLOptions) { o.Tolerance = 0 }),
		`constants = "guess"`:                        ucb(func(o *UCBOptions) { o.Constants = "guess" }),
		"radius = -1":                                ucb(func(o *UCBOptions) { o.Radius = -1 }),
		`radius = 3: constants = "theory" sets`:      ucb(func(o *UCBOptions) { o.Radius = 3 }),
		`delta = 0.1: constants = "theory" does`:     ucb(func(o *UCBOptions) { o.Delta = 0.1 }),
		`bound = 2: constants = "theory" does`:       ucb(func(o *UCBOptions) { o.Bound = 2 }),
		"lambda = 0":                                 ucb(func(o *UCBOptions) { o.Lambda = 0 }),
		"lambda = 1e-309":                            ucb(func(o *UCBOptions) { o.Lambda = 1e-309 }),
		`explore = "all": unknown: must be one`:      eps(func(o *EpsGreedyOptions) { o.Explore = "all" }),
		`schedule = "ours": unknown: must be one`:    eps(func(o *EpsGreedyOptions) { o.Schedule = "ours" }),
		"err_constant = 0":                           eps(func(o *EpsGreedyOptions) { o.ErrConstant = 0 }),
		"err_rate = NaN":                             eps(func(o *EpsGreedyOptions) { o.ErrRate = math.NaN() }),
		"epsilon = 1.5":                              eps(func(o *EpsGreedyOptions) { o.Epsilon = 1.5 }),
		"decay = NaN":                                eps(func(o *EpsGreedyOptions) { o.Decay = math.NaN() }),
		"floor = -1":                                 eps(func(o *EpsGreedyOptions) { o.Floor = -1 }),
		"rate = 0":                                   eps(func(o *EpsGreedyOptions) { o.Rate = 0 }),
		"steps = -5":                                 eps(func(o *EpsGreedyOptions) { o.Steps = -5 }),
		`oracle = "on": unknown: must be one`:        eps(func(o *EpsGreedyOptions) { o.Oracle = "on" }),
		"lambda = +Inf":                              eps(func(o *EpsGreedyOptions) { o.Lambda = math.Inf(1) }),
		"step = -1":                                  eps(func(o *EpsGreedyOptions) { o.Step = -1 }),
		`constants = "frozen": unknown: must be one`: barrier(func(o *LogBarrierOptions) { o.Constants = "frozen" }),
		"gamma = 0":                                  barrier(func(o *LogBarrierOptions) { o.Gamma = 0 }),
		"limit = 0":                                  barrier(func(o *LogBarrierOptions) { o.Limit = 0 }),
		"ridge = 0":                                  good(func(o *FeelGoodOptions) { o.Ridge = 0 }),
		"at least 1e-06":                             good(func(o *FeelGoodOptions) { o.Ridge = 1e-8 }),
		`loss = "hinge": unknown: must be one`:       good(func(o *FeelGoodOptions) { o.Loss = "hinge" }),
		"eta = 0":                                    good(func(o *FeelGoodOptions) { o.Eta = 0 }),
		"feel_good = -1":                             good(func(o *FeelGoodOptions) { o.FeelGood = -1 }),
		"moves = 0":                                  good(func(o *FeelGoodOptions) { o.Moves = 0 }),
		"items = -1":                                 problem(func(p *Problem) { p.Items = -1 }),
		"features = 0":                               problem(func(p *Problem) { p.NumFeatures = 0 }),
		"size = 9223372036854775807: must be at most": problem(func(p *Problem) { p.MaxShown = assortment.NoLimit }),
		"size = 0":                 problem(func(p *Problem) { p.MaxShown = 0 }),
		"rounds = 0":               problem(func(p *Problem) { p.Rounds = 0 }),
		"no constraint":            problem(func(p *Problem) { p.Constraint = nil }),
		"size = 3: the constraint": problem(func(p *Problem) { p.Constraint = assortment.AtMost(2) }),
		"the utility has 5 features": func() error {
			_, err := NewONL(p, utility.NewLinear(5, false), DefaultONLOptions(), newRand())
			return err
		}(),
		"width = -1":      bma(func(o *BMAOptions) { o.Width = -1 }),
		"anneal = NaN":    bma(func(o *BMAOptions) { o.Anneal = math.NaN() }),
		"growth = 1":      bma(func(o *BMAOptions) { o.Growth = 1 }),
		"candidates = -1": bma(func(o *BMAOptions) { o.Candidates = -1 }),
		"candidates = 10": bma(func(o *BMAOptions) { o.Candidates = 10_000_000 }),
		"sample = 0":      bma(func(o *BMAOptions) { o.Sample = 0 }),
		"samples = -1": func() error {
			o := DefaultTSOptions()
			o.Samples = -1
			_, err := NewTS(p, o)
			return err
		}(),
		"eta = -1": func() error { o := DefaultOFUOptions(); o.Eta = -1; _, err := NewOFU(p, o); return err }(),
	} {
		expect.Part(err)(t, want)
	}
}

func TestFamiliesWithoutParametersAreRefused(t *testing.T) {
	p, m := paperProblem(), nothing{}
	_, onl := NewONL(p, m, DefaultONLOptions(), newRand())
	_, greedy := NewGreedy(p, m, DefaultGreedyOptions(), newRand())
	_, eps := NewEpsGreedy(p, m, DefaultEpsGreedyOptions(), newRand())
	_, barrier := NewLogBarrier(p, m, DefaultLogBarrierOptions(), newRand())
	_, good := NewFeelGood(p, m, DefaultFeelGoodOptions(), newRand())
	for name, err := range map[string]error{"onl-mnl": onl, "greedy": greedy, "eps-greedy-mnl": eps,
		"log-barrier-mnl": barrier, "feel-good-ts": good} {
		expect.Part(err)(t, "the utility has no parameters", name)
	}
}

// bursting is a family with a utility that overflows for a first feature above 100.
type bursting struct{ sine }

func (m bursting) Utilities(dst, w []float64, x *mat.Dense) {
	m.sine.Utilities(dst, w, x)
	for i := range dst {
		if x.At(i, 0) > 100 {
			dst[i] = math.Inf(1)
		}
	}
}

// A round with utilities that are not finite is counted and teaches nothing: the learner's estimate is as after an
// empty page.
func TestOverflowTeachesNothing(t *testing.T) {
	p, m := paperProblem(), bursting{sine{paperFeatures}}
	onl := func(warmup int) vitrine.Learner {
		o := DefaultONLOptions()
		o.Warmup = warmup
		return must(NewONL(p, m, o, newRand()))
	}
	eps := func(oracle string) vitrine.Learner {
		o := DefaultEpsGreedyOptions()
		o.Oracle = oracle
		return must(NewEpsGreedy(p, m, o, newRand()))
	}
	good := func(weight float64) vitrine.Learner {
		o := DefaultFeelGoodOptions()
		o.FeelGood = weight
		return must(NewFeelGood(p, m, o, newRand()))
	}
	for name, create := range map[string]func() vitrine.Learner{
		"Phase I":               func() vitrine.Learner { return onl(10) },
		"Phase II":              func() vitrine.Learner { return onl(0) },
		"ε-greedy":              func() vitrine.Learner { return eps("offline") },
		"ε-greedy online":       func() vitrine.Learner { return eps("online") },
		"Feel-Good":             func() vitrine.Learner { return good(0.1) },
		"Feel-Good of weight 0": func() vitrine.Learner { return good(0) },
	} {
		l, idle := create(), create()
		for s := range 25 {
			x := paperContext(s)
			r := vitrine.Round{Context: x, Offer: vitrine.Offer{Assortment: vitrine.Assortment{1, 2}},
				Choice: vitrine.Choice(s % 3)}
			same := r
			if s%5 == 2 {
				x.Features.Set(2, 0, 1000)
				same.Context = &vitrine.Context{Features: paperContext(s).Features, Revenue: x.Revenue}
				same.Offer, same.Choice = vitrine.Offer{}, vitrine.Outside
			}
			fatal.If(t, l.Observe(r), name, "round", s)
			fatal.If(t, idle.Observe(same))
		}
		saved, err := l.(bandittest.Snapshotter).MarshalBinary()
		fatal.If(t, err, name)
		if strings.HasPrefix(name, "Feel-Good") {
			continue // it learns from the items of an empty page
		}
		if want, _ := idle.(bandittest.Snapshotter).MarshalBinary(); !bytes.Equal(saved, want) {
			t.Errorf("%s: the rounds whose utility is not finite changed the estimate", name)
		}
	}
}

// A snapshot of one configuration is not read by another.
func TestSnapshotsNameTheirConfiguration(t *testing.T) {
	p := paperProblem()
	all := learners()
	for name := range all {
		saved, ok := all[name](p).(bandittest.Snapshotter)
		if !ok {
			continue
		}
		data := fatal.Or(saved.MarshalBinary())(t)
		for other := range all {
			l, ok := all[other](p).(bandittest.Snapshotter)
			if !ok || name == other {
				continue
			}
			expect.Refused(l.UnmarshalBinary(data))(t, other, "read a snapshot of", name)
		}
	}
}

// A snapshot says which problem, utility and options it is of, and a learner of
// others refuses it.
func TestSnapshotsNameTheirOptions(t *testing.T) {
	data := fatal.Or(learners()["onl-mnl"](paperProblem()).(bandittest.Snapshotter).MarshalBinary())(t)
	o := DefaultONLOptions()
	o.Warmup, o.PilotSteps = 12, 50
	p := paperProblem()
	with := func(change func(p *Problem, o *ONLOptions)) vitrine.Learner {
		p, o := p, o
		change(&p, &o)
		return must(NewONL(p, paperModel(), o, newRand()))
	}
	for want, l := range map[string]vitrine.Learner{
		"ball = 0, want 3":       with(func(_ *Problem, o *ONLOptions) { o.Ball = 3 }),
		"lambda = 10, want 3":    with(func(_ *Problem, o *ONLOptions) { o.Lambda = 3 }),
		"beta = 10, want 3":      with(func(_ *Problem, o *ONLOptions) { o.Beta = 3 }),
		"rounds = 120, want 121": with(func(p *Problem, _ *ONLOptions) { p.Rounds++ }),
		"utility = sigmoid 3-4-1, want tanh 3-4-1": must(
			NewONL(p, utility.NewMLP(paperFeatures, []int{4}, utility.Tanh), o, newRand())),
	} {
		expect.Message(l.(bandittest.Snapshotter).UnmarshalBinary(data))(t, "snapshot is of "+want)
	}
}

// Counts at the ends of their range, and histories shorter than the data, are
// refused where the checksum is right too.
func TestForgedCountsAreRefused(t *testing.T) {
	for name, learner := range learners() {
		l, ok := learner(paperProblem()).(bandittest.Snapshotter)
		if !ok || name == "uniform" {
			continue
		}
		for _, r := range linearHistory(t, 30) {
			fatal.If(t, l.Observe(r))
		}
		data := fatal.Or(l.MarshalBinary())(t)
		kind, f, err := fields.Open(data)
		fatal.If(t, err)
		var rounds int
		if f.Count(&rounds); rounds != 30 {
			t.Fatalf("%s: the first field is %d, want the 30 rounds", name, rounds)
		}
		forged := []uint64{math.MaxInt64, math.MaxInt64 - 1, math.MaxUint64}
		if !strings.Contains(name, "online") && !strings.HasPrefix(name, "ofu-mnl-plus") &&
			name != "greedy commits" { // these keep no data
			forged = append(forged, 0, 12, 29)
		}
		for _, n := range forged {
			w := fields.Snapshot(kind)
			w.Uvarint(&n)
			w.Raw(f.Rest())
			expect.Refused(l.UnmarshalBinary(fatal.Or(w.Seal())(t)))(t, name, n, "rounds")
		}
	}
}

// A learner refuses a snapshot with a right checksum and any contents, or goes on to learn and decide.
func FuzzUnmarshal(f *testing.F) {
	all := learners()
	names := slices.Sorted(maps.Keys(all))
	for k, name := range names {
		l, ok := all[name](paperProblem()).(bandittest.Snapshotter)
		if !ok {
			continue
		}
		for s, r := range linearHistory(f, 30) {
			if s%14 == 0 {
				data := fatal.Or(l.MarshalBinary())(f)
				f.Add(uint8(k), data)
			}
			fatal.If(f, l.Observe(r))
		}
	}
	history := linearHistory(f, 4)
	f.Fuzz(func(t *testing.T, k uint8, data []byte) {
		l, ok := all[names[int(k)%len(names)]](paperProblem()).(bandittest.Snapshotter)
		if !ok || len(data) < 4 {
			return
		}
		body := data[:len(data)-4]
		data = binary.LittleEndian.AppendUint32(bytes.Clone(body), crc32.Checksum(body,
			crc32.MakeTable(crc32.Castagnoli)))
		if err := l.UnmarshalBinary(data); err != nil {
			return
		}
		for _, r := range history {
			_ = l.Observe(r)
			offer := l.Policy().Offer(r.Context, newRand())
			expect.Error(t, offer.Assortment.Check(r.Context.NumItems()), nil)
		}
	})
}
