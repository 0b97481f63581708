package bandit

import (
	"bytes"
	"math"
	"runtime"
	"testing"

	"vitrine"
	"vitrine/internal/fatal"
	"vitrine/internal/stream"
	"vitrine/mle"
	"vitrine/utility"
)

// foldingBMA is a learner that keeps at most 64 rounds.
func foldingBMA(t testing.TB, experts []Expert) *BMA {
	l := newBMA(t, paperProblem(), experts)
	l.window = 64
	return l
}

// A learner that folds keeps a bounded number of rounds, and its experts know what a fit to all
// rounds at once knows.
func TestFoldedRoundsAreNotForgotten(t *testing.T) {
	l := foldingBMA(t, []Expert{{Model: utility.NewLinear(paperFeatures, true)},
		{Model: utility.NewQuadratic(paperFeatures)}})
	all := mle.NewChoices(paperFeatures)
	truth := func(x []float64) float64 { return x[0] - x[1] - 1 }
	for s := range 500 {
		play(t, l, truth, s, s+1)
		kept := l.history.Rounds()
		if kept+l.folded != s+1 || kept > 64+2*(s/minLag)+1 {
			t.Fatalf("after round %d: %d rounds are kept and %d are folded", s+1, kept, l.folded)
		}
		last := l.history.Round(kept - 1)
		all.AppendRows(last.Features(), last.Choice(0))
	}
	if l.folded < 300 {
		t.Fatalf("%d rounds are folded", l.folded)
	}
	for i, e := range l.all() {
		fresh := e.twin(l.intercept)
		if err := fresh.restart(); err != nil || !fresh.fit(all.Transformed(l.z.row), nil, nil) {
			t.Fatal(err)
		}
		for j, v := range fresh.posterior.Mode {
			wantNear(t, "a parameter", e.posterior.Mode[j], v, 0.15)
		}
		wantNear(t, "the log evidence", e.posterior.LogEvidence, fresh.posterior.LogEvidence, 2.5)
		if e.anchor == nil {
			t.Errorf("base or expert %d has no anchor", i)
		}
	}
}

// Once rounds are folded a search still finds a wave: its start combines the linear anchor and the prior of the unit.
func TestANewUnitAfterAFold(t *testing.T) {
	l := foldingBMA(t, []Expert{{Model: utility.NewLinear(paperFeatures, true)},
		{Model: utility.NewSpectral(paperFeatures, 1)}})
	play(t, l, func(x []float64) float64 { return x[0] - 1 }, 0, 150)
	if l.folded == 0 {
		t.Fatal("nothing is folded")
	}
	wave := func(x []float64) float64 { return 3 * math.Sin(2.5*x[1]) }
	play(t, l, wave, 150, 600)
	if w := l.Diagnostics()["spectral 3-1"]; w < 0.9 {
		t.Errorf("the weight of the waves is %v", w)
	}
}

// Products with a memory wait until the products hold most of the weight. Then they start from about the same evidence,
// also when rounds are folded, and take the weight over when tastes move.
func TestProductsWithAMemory(t *testing.T) {
	for name, window := range map[string]int{"folded": 64, "kept": maxRounds} {
		t.Run(name, func(t *testing.T) {
			var l *BMA
			begin := func() {
				l = newBMA(t, paperProblem(), DefaultExperts(paperFeatures))
				l.window = window
			}
			find := func(memory float64) *expert {
				for _, e := range l.experts {
					if e.MemoryRounds == memory && utility.Identity(e.Model) == "quadratic" {
						return e
					}
				}
				t.Fatalf("there is no quadratic expert of memory %v", memory)
				return nil
			}
			begin()
			play(t, l, func(x []float64) float64 { return x[0] - 1 }, 0, 250)
			l.wait()
			if e := find(movingRounds); e.wake != waiting || e.posterior.LogEvidence != 0 {
				t.Errorf("when the truth is linear, its wake is %d, and its evidence is %v", e.wake, e.posterior.LogEvidence)
			}
			begin()
			play(t, l, product, 0, 150)
			l.wait()
			late := find(movingRounds)
			late.wake = waiting
			fatal.If(t, late.restart())
			s := 150
			for ; find(movingRounds).wake != 0 && s < 1000; s++ {
				play(t, l, product, s, s+1)
			}
			old, own := find(0).posterior.LogEvidence, find(movingRounds).posterior.LogEvidence
			if own < old-30 || own > old+30 || old > -90 {
				t.Errorf("after %d rounds its evidence is %v, that without a memory %v", s, own, old)
			}
			play(t, l, func(x []float64) float64 { return 0.5*x[2] - product(x) }, s, s+400)
			if w := l.Diagnostics()["quadratic of memory 200"]; w < 0.9 {
				t.Errorf("when tastes moved its weight is %v", w)
			}
		})
	}
}

// A learner that is saved and restored while a fit runs, or between fits, learns the same bytes as without, for any
// number of processors: the round that takes a fit is counted.
func TestFitsBesideObserveReplay(t *testing.T) {
	run := func(processors, every int) []byte {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
		l := foldingBMA(t, DefaultExperts(paperFeatures))
		running := 0
		for s := range 220 {
			play(t, l, product, s, s+1)
			if every == 0 || s%every != 0 {
				continue
			}
			if l.job != nil {
				running++
			}
			data := fatal.Or(l.MarshalBinary())(t)
			l = foldingBMA(t, DefaultExperts(paperFeatures))
			fatal.If(t, l.UnmarshalBinary(data))
		}
		if every == 1 && running < 20 {
			t.Errorf("a fit ran after %d of the rounds", running)
		}
		data := fatal.Or(l.MarshalBinary())(t)
		return data
	}
	want := run(1, 0)
	for _, c := range [][2]int{{8, 0}, {2, 1}, {1, 7}} {
		if !bytes.Equal(run(c[0], c[1]), want) {
			t.Errorf("%d processors, restored every %d rounds: other bytes", c[0], c[1])
		}
	}
}

// Effects of places are learned beside the family that contains the truth, through folds and snapshots, and the
// families are told apart as without places.
func TestPlacesBesideAWave(t *testing.T) {
	p := paperProblem()
	o := DefaultBMAOptions()
	o.PositionEffects = true
	create := func() *BMA {
		l := fatal.Or(NewBMA(p, []Expert{{Model: utility.NewLinear(paperFeatures, true)},
			{Model: utility.NewSpectral(paperFeatures, 1)}}, o, newRand()))(t)
		l.window = 400
		return l
	}
	l := create()
	gamma := []float64{0, -1.2}
	for s := range 900 {
		x := paperContext(s)
		n := x.NumItems()
		u, shock := make([]float64, n), make([]float64, n+1)
		for i := range u {
			u[i] = 3 * math.Sin(2.5*x.Features.At(i, 1))
		}
		rng := stream.New(4, s, stream.Customers)
		offer := l.Policy().Offer(x, rng)
		if err := offer.Check(n); err != nil || len(offer.Order) != len(offer.Assortment) {
			t.Fatalf("order %v of %v: %v", offer.Order, offer.Assortment, err)
		}
		for place, i := range offer.Order {
			u[i] += vitrine.PlaceEffect(gamma, place)
		}
		vitrine.DrawShocks(shock, rng)
		fatal.If(t, l.Observe(vitrine.Round{Context: x, Offer: offer, Choice: vitrine.Choose(offer.Assortment, u,
			shock)}))
		if s%300 == 250 {
			data := fatal.Or(l.MarshalBinary())(t)
			l = create()
			fatal.If(t, l.UnmarshalBinary(data))
		}
	}
	if l.folded == 0 {
		t.Error("nothing is folded")
	}
	if w := l.Diagnostics()["spectral 3-1"]; w < 0.9 {
		t.Errorf("the weight of the waves is %v", w)
	}
	got := l.Policy().(*mixture).PlaceEffects()
	if len(got) != p.MaxShown || got[0] != 0 || math.Abs(got[1]-gamma[1]) > 0.4 {
		t.Errorf("effects %v, want %v", got, gamma)
	}
}

// A fit that began at an eighth of the window makes the room for all rounds that are ever kept.
func TestFitsMakeRoomForTheHistory(t *testing.T) {
	l := newBMA(t, paperProblem(), DefaultExperts(paperFeatures))
	l.window = 128
	play(t, l, product, 0, 12)
	if l.history.HasRoom(l.window + maxLag) {
		t.Fatal("there is room before")
	}
	play(t, l, product, 12, 40)
	if !l.history.HasRoom(l.window + maxLag) {
		t.Error("there is no room for the history")
	}
}
