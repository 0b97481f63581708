//go:build unix

package sim

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"testing/cryptotest"
	"time"
)

var (
	seeds = flag.Uint64("seed", 0, "the seed to play again, or the first of several; 1 if it is 0")
	fresh = flag.Bool("fresh", false, "play seeds that nobody has played")
	lasts = flag.Duration("lasts", 12*time.Second, "the virtual time of a seed")
	plays = flag.Duration("plays", 2*time.Second, "for how long seeds are played")
	logs  = flag.Bool("logs", false, "show what the processes log")
)

// TestSeed plays a seed again, and shows the end of its trace.
func TestSeed(t *testing.T) {
	if *seeds == 0 {
		t.Skip("no -seed")
	}
	w := one(t, *seeds)
	t.Logf("seed %d: %d decisions in %v of virtual time\n%s", *seeds, w.ledger.decided, *lasts, w.text(60))
}

// A seed determines every byte of the trace. Go's scheduler interrupts a goroutine after 10 ms of real time, so on a busy machine a play may
// differ from the others.
func TestSame(t *testing.T) {
	for seed := uint64(1); seed <= 2; seed++ {
		first := one(t, seed).text(1 << 30)
		said, same := "", false
		for again := 0; again < 5 && !same; again++ {
			second := one(t, seed).text(1 << 30)
			same, said = first == second, difference(first, second)
			first = second
		}
		if !same {
			t.Errorf("seed %d: no two plays in a row are the same: %s", seed, said)
		}
	}
}

// difference is where two traces part.
func difference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	n := 0
	for n < min(len(x), len(y)) && x[n] == y[n] {
		n++
	}
	near := func(of []string) string { return strings.Join(of[max(0, n-5):min(len(of), n+3)], "\n") }
	return fmt.Sprintf("line %d of %d\n%s\nand\n%s", n+1, len(x), near(x), near(y))
}

// TestSimulation plays one seed after another. The same ones each time, so that a finding comes from a change: bench/sim.sh and the
// step sim of .ci/run look for new ones.
func TestSimulation(t *testing.T) {
	first := max(1, *seeds)
	if *fresh {
		first = rand.Uint64N(1e9)
	}
	begin, cpu, decided, virtual, n := time.Now(), used(), 0, time.Duration(0), uint64(0)
	for ; time.Since(begin) < *plays && !t.Failed(); n++ {
		w := one(t, first+n)
		decided, virtual = decided+w.ledger.decided, virtual+*lasts
		if t.Failed() {
			t.Logf("found: seed %d, after %v of virtual time and %d decisions: %s", first+n, virtual-*lasts+w.end, decided, w.findings[0])
			t.Logf("play it again: go test ./service/sim -run TestSeed -v -seed %d -lasts %v\n%s", first+n, *lasts, w.text(60))
		}
	}
	t.Logf("seeds %d to %d: %d decisions in %v of virtual time, %.0f a second of processor time", first, first+n-1, decided, virtual, float64(decided)/(used()-cpu).Seconds())
}

// used is the processor time of this process.
func used() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func one(t *testing.T, seed uint64) *world {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	cryptotest.SetGlobalRandom(t, seed)
	w := play(t, seed, *lasts)
	for i, f := range w.findings {
		if i < 10 {
			t.Errorf("seed %d: %s", seed, f)
		}
	}
	return w
}
