package load

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"vitrine/internal/expect"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func scheduled(o Options) *schedule {
	return newSchedule(&o, noon, rand.New(rand.NewPCG(1, 2)))
}

// Decisions are due on time, however late a caller fetches them: a service that stood still kept them waiting.
func TestLoopIsOpen(t *testing.T) {
	s := scheduled(Options{Rate: 10, Decisions: 5})
	for i, asked := range []time.Duration{0, 0, 3 * time.Second, 3 * time.Second, time.Hour} {
		task, ok := s.next(noon.Add(asked))
		if want := noon.Add(time.Duration(i) * 100 * time.Millisecond); !ok || !task.due.Equal(want) ||
			task.round != i || task.decision != "" {
			t.Errorf("%+v, %v, want round %d at %v", task, ok, i, want)
		}
	}
	if task, ok := s.next(noon); ok || s.unsent != 0 {
		t.Errorf("%+v after the last one, %d unsent", task, s.unsent)
	}
}

func TestPoissonArrivals(t *testing.T) {
	const n, rate = 100_000, 1000.0
	s := scheduled(Options{Rate: rate, Poisson: true, Decisions: n})
	last, sum, squares := noon, 0.0, 0.0
	for range n {
		task, _ := s.next(noon)
		gap := task.due.Sub(last).Seconds() * rate
		sum, squares, last = sum+gap, squares+gap*gap, task.due
	}
	// exponential gaps have mean 1, with standard error 1/√n, and variance 1, with standard error √8/√n
	mean := sum / n
	if variance := squares/n - mean*mean; math.Abs(mean-1) > 4/math.Sqrt(n) ||
		math.Abs(variance-1) > 4*math.Sqrt(8.0/n) {
		t.Errorf("gaps of mean %v and variance %v", mean, variance)
	}
}

// Time and number bound a run, and unsent due tasks are counted.
func TestEndOfARun(t *testing.T) {
	for _, c := range []struct {
		name   string
		o      Options
		asked  time.Duration // after the first two
		unsent int
	}{
		{"nobody was free", Options{Rate: 10, Duration: time.Second}, 2 * time.Second, 8},
		{"and there were less", Options{Rate: 10, Duration: time.Second, Decisions: 5}, 2 * time.Second, 3},
		{"a closed loop", Options{Duration: time.Second}, 2 * time.Second, 0},
		{"by number", Options{Decisions: 2}, 0, 0},
		{"the next one is after it", Options{Rate: 1, Duration: 2 * time.Second}, 0, 0},
	} {
		s := scheduled(c.o)
		for i := range 2 {
			if task, ok := s.next(noon); !ok || task.round != i {
				t.Errorf("%s: %+v, %v", c.name, task, ok)
			}
		}
		s.add(task{due: noon.Add(time.Hour), decision: "d"})
		if task, ok := s.next(noon.Add(c.asked)); !ok || task.decision != "d" || s.unsent != c.unsent {
			t.Errorf("%s: %+v, %v, %d unsent, want %d", c.name, task, ok, s.unsent, c.unsent)
		}
		if task, ok := s.next(noon.Add(c.asked)); ok {
			t.Errorf("%s: %+v after the end", c.name, task)
		}
	}
}

// An outcome takes its turn by time.
func TestOutcomesTakeTheirTurn(t *testing.T) {
	for _, rate := range []float64{0, 10} {
		s := scheduled(Options{Rate: rate, Decisions: 3})
		s.next(noon)
		s.add(task{due: noon.Add(50 * time.Millisecond), decision: "a"})
		s.add(task{due: noon.Add(150 * time.Millisecond), decision: "b"})
		var order string
		for now := noon.Add(60 * time.Millisecond); ; now = now.Add(50 * time.Millisecond) {
			task, ok := s.next(now)
			if !ok {
				break
			}
			if order += task.decision; task.decision == "" {
				order += "."
			}
		}
		expect.Equal(t, order, "a.b.", "rate", rate)
	}
}
