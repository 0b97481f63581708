package bandit

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/expect"
	"vitrine/utility"
)

// Rounds that come while a fit runs, while it learns the rounds since, and after it are learned once each, in their
// order, whether they wait or not.
func TestFitLearnsTheRoundsSince(t *testing.T) {
	for name, expected := range map[string]time.Duration{"on time": time.Nanosecond, "behind": time.Hour,
		"of unknown length": 0} {
		t.Run(name, func(t *testing.T) {
			l := newBMA(t, paperProblem(), []Expert{{Model: utility.NewLinear(paperFeatures, true)}})
			play(t, l, product, 0, 60)
			want := l.beliefs.clone()
			j := newFitJob(60, l.beliefs.clone())
			until := make(chan struct{})
			j.start(expected, 50, func() { <-until })
			for s := range 60 {
				if s == 20 {
					close(until)
				}
				round := l.history.Round(s)
				j.teach(queued{round, l.z})
				want.learn(round, false, new(tangent))
			}
			j.wait()
			expect.List(t, j.result.base.posterior.Mode, want.base.posterior.Mode, "the mode is")
		})
	}
}

// Once a fit has ended, a round waits until the queue is shorter: rounds do not pile up for the last one.
func TestRoundsSinceAFitDoNotPileUp(t *testing.T) {
	l := newBMA(t, paperProblem(), []Expert{{Model: utility.NewLinear(paperFeatures, true)}})
	play(t, l, product, 0, 100)
	j := newFitJob(100, l.beliefs.clone())
	until := make(chan struct{})
	j.start(time.Nanosecond, 100, func() { <-until })
	r := queued{l.history.Round(0), l.z}
	for range 90 {
		j.teach(r)
	}
	close(until)
	<-j.ended
	for k := range 11 {
		j.teach(r)
		j.mu.Lock()
		if left := 90 - (k+1)*maxBacklog; len(j.queue) > max(left, 0)+1 {
			t.Errorf("after %d rounds %d are to be learned", k+1, len(j.queue))
		}
		j.mu.Unlock()
	}
	j.wait()
}

// A round waits for a fit that is behind its pace, but not for long, and for one that takes longer than planned even if
// it was ahead.
func TestPauses(t *testing.T) {
	for _, c := range []struct {
		expected time.Duration
		given    int
		elapsed  time.Duration
		want     time.Duration
	}{
		{240 * time.Millisecond, 10, 38 * time.Millisecond, 2 * time.Millisecond}, // four milliseconds a round
		{240 * time.Millisecond, 10, 10 * time.Millisecond, maxPause},
		{240 * time.Millisecond, 10, 50 * time.Millisecond, -10 * time.Millisecond},
		{240 * time.Millisecond, 10, 299 * time.Millisecond, -259 * time.Millisecond},
		{240 * time.Millisecond, 10, 301 * time.Millisecond, maxPause},
		{0, 10, time.Hour, 30*time.Millisecond - time.Hour}, // of unknown length
	} {
		j := newFitJob(100, nil)
		j.start(c.expected, 100, func() {})
		j.wait()
		j.given = c.given
		expect.Equal(t, j.pause(c.elapsed), c.want, c)
	}
}

// crowded is a family that counts how many fits use it at once.
type crowded struct {
	*utility.Linear
	name         string
	now, maximum *atomic.Int32
}

func (m crowded) String() string { return m.name }

func (m crowded) Gradients(g *mat.Dense, w []float64, x *mat.Dense) {
	n := m.now.Add(1)
	defer m.now.Add(-1)
	for {
		old := m.maximum.Load()
		if n <= old || m.maximum.CompareAndSwap(old, n) {
			break
		}
	}
	runtime.Gosched()
	m.Linear.Gradients(g, w, x)
}

// A fit beside the rounds leaves a processor to them; one for which a round waits uses all.
func TestFitsLeaveAProcessor(t *testing.T) {
	for workers, want := range map[int]int32{1: 1, 3: 3} {
		var now, maximum atomic.Int32
		var experts []Expert
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			experts = append(experts, Expert{Model: crowded{utility.NewLinear(paperFeatures, true), name, &now,
				&maximum}})
		}
		l := newBMA(t, paperProblem(), experts)
		play(t, l, product, 0, 60)
		l.wait()
		maximum.Store(0)
		f := fitting{beliefs: l.beliefs.clone(), o: l.o, rounds: 60, moved: true, workers: workers}
		f.run(l.history, 0)
		if got := maximum.Load(); got > want || got == 0 {
			t.Errorf("%d workers: %d experts are fitted at a time", workers, got)
		}
	}
}

// The evidence of a unit is a second-order estimate beside the linear fit. However large it is, it lets
// no mode rest, and it goes with the linear family.
func TestUnitsLetNoModeRest(t *testing.T) {
	l := newBMA(t, paperProblem(), DefaultExperts(paperFeatures))
	f := fitting{beliefs: l.beliefs, rounds: 100}
	set := func(base, quadratic, unit float64) {
		for _, e := range f.all() {
			e.wake = 0
			p := *e.posterior
			p.LogEvidence = base
			if _, ok := e.Model.(*utility.Expansion); ok {
				p.LogEvidence = quadratic
			}
			e.posterior = &p
			if m, ok := e.additive(); ok {
				for k := range e.unit {
					e.unit[k] = newUnits(m, e.prior, 0, newRand())
					e.unit[k].logMean = unit
				}
			}
		}
	}
	resting := func() (names []string, units bool) {
		for _, e := range f.experts {
			if e.wake > 0 {
				names = append(names, e.String())
			}
			units = units || e.unit[0] != nil || e.unit[1] != nil
		}
		return names, units
	}
	set(-100, -95, 300)
	f.rest(f.rounds)
	if names, units := resting(); len(names) > 0 || !units {
		t.Errorf("beside a unit of evidence 200 %v rest, units %v", names, units)
	}
	set(-790, -478, 330)
	f.rest(f.rounds)
	if names, units := resting(); len(names) != len(f.experts)-4 || units {
		t.Errorf("beside families of products and steps far above the linear family %v rest, want all but them and "+
			"those with a memory; units %v, want none", names, units)
	}
}
