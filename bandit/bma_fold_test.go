package bandit

import (
	"bytes"
	"math"
	"runtime"
	"testing"

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
	l := foldingBMA(t, []Expert{{Model: utility.NewLinear(paperFeatures, true)}, {Model: utility.NewQuadratic(paperFeatures)}})
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
	for i, e := range l.experts {
		fresh := e.twin(l.intercept)
		if err := fresh.restart(); err != nil || !fresh.fit(all.Standardised(l.z.shift, l.z.scale), nil, nil) {
			t.Fatal(err)
		}
		for j, v := range fresh.posterior.Mode {
			wantNear(t, "a parameter", e.posterior.Mode[j], v, 0.15)
		}
		wantNear(t, "the log evidence", e.posterior.LogEvidence, fresh.posterior.LogEvidence, 2.5)
		if e.anchor == nil {
			t.Errorf("expert %d has no anchor", i)
		}
	}
}

// Once rounds are folded a search still finds a wave: its start has the linear anchor and the
// prior of the unit.
func TestANewUnitAfterAFold(t *testing.T) {
	l := foldingBMA(t, []Expert{{Model: utility.NewLinear(paperFeatures, true)}, {Model: utility.NewSpectral(paperFeatures, 1)}})
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

// A learner that is saved and restored while a fit runs, or between, learns the same bytes as one
// that is not, whatever the number of processors: the round that takes a fit is counted.
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
			data, err := l.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			l = foldingBMA(t, DefaultExperts(paperFeatures))
			if err := l.UnmarshalBinary(data); err != nil {
				t.Fatal(err)
			}
		}
		if every == 1 && running < 20 {
			t.Errorf("a fit ran after %d of the rounds", running)
		}
		data, err := l.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	want := run(1, 0)
	for _, c := range [][2]int{{8, 0}, {2, 1}, {1, 7}} {
		if !bytes.Equal(run(c[0], c[1]), want) {
			t.Errorf("%d processors, restored every %d rounds: other bytes", c[0], c[1])
		}
	}
}
