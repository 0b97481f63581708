//go:build unix

package sim

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
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
	plays = flag.Duration("plays", 2*time.Second, "for how much processor time seeds are played")
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

// A seed determines every byte of the trace. Go's scheduler interrupts a goroutine after 10 ms of real time, so on a
// busy machine a play may differ from the others: two short ones of many must be the same, unless other processes had
// more than a tenth of the time.
func TestSame(t *testing.T) {
	defer func(d time.Duration) { *lasts = d }(*lasts)
	*lasts = min(*lasts, 5*time.Second)
	begin, cpu := time.Now(), used()
	for seed := uint64(1); seed <= 2; seed++ {
		first := one(t, seed).text(1 << 30)
		said, seen := "", map[string]bool{first: true}
		for again, same := 0, false; !same; again++ {
			if again == 20 {
				if used()-cpu < time.Since(begin)*9/10 {
					t.Skip("the machine is busy")
				}
				t.Fatalf("seed %d: no two plays are the same: %s", seed, said)
			}
			text := one(t, seed).text(1 << 30)
			same, said, seen[text] = seen[text], difference(first, text), true
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

// TestSimulation plays one seed after another. The same ones each time, so that a finding comes from a change:
// bench/sim.sh and the step sim of .ci/run look for new ones.
func TestSimulation(t *testing.T) {
	first := max(1, *seeds)
	if *fresh {
		first = rand.Uint64N(1e9)
	}
	cpu, decided, virtual, n := used(), 0, time.Duration(0), uint64(0)
	counts := map[string]int{}
	for ; used()-cpu < *plays && !t.Failed(); n++ {
		w := one(t, first+n)
		decided, virtual = decided+w.ledger.decided, virtual+*lasts
		for what, times := range w.counts {
			counts[what] += times
		}
		if t.Failed() {
			t.Logf("found: seed %d, after %v of virtual time, %d decisions and %.0f s of processor time: %s", first+n,
				virtual-*lasts+w.end, decided, (used() - cpu).Seconds(), w.findings[0])
			t.Logf("play it again: go test ./service/sim -run TestSeed -v -seed %d -lasts %v\n%s", first+n, *lasts,
				w.text(60))
		}
	}
	t.Logf("seeds %d to %d: %d decisions in %v of virtual time, %.0f a second of processor time", first, first+n-1,
		decided, virtual, float64(decided)/(used()-cpu).Seconds())
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%8d × %s", counts[what], what)
	}
	for _, what := range occurs {
		if counts[what] == 0 && decided > 2_000_000 && !t.Failed() {
			t.Errorf("never in these seeds: %s", what)
		}
	}
}

// occurs lists what the seeds of ten minutes must contain, next to the kinds of faults.
var occurs = []string{
	"answer: surely fenced", "answer: unknown, but stored", "message: publish lost", "message: publish doubled",
	"message: answer to publish lost",
	"message: answer to publish late", "message: answer to renew lost", "operation: change", "operation: delete",
	"operation: keep", "operation: push",
	"operation: put", "operation: roll back", "entry: Activated", "entry: CategoryValuesAdded", "entry: Chosen",
	"entry: ClockMoved",
	"entry: Corrected", "entry: Expired", "entry: ItemsChanged", "entry: LearnerReset",
	"entry: LearnerRolledBack", "entry: LearnerSwapped", "entry: Offered", "entry: PlacementPut",
	"entry: RelearningBegun", "entry: VersionSaved", "experiment", "entries removed",
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
