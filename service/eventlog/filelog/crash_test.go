package filelog_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"vitrine/internal/fatal"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/filelog"
	"vitrine/service/eventlog/logtest"
)

const crashDir, crashRound = "VITRINE_CRASH_DIR", "VITRINE_CRASH_ROUND"

// Acknowledged entries survive the death of the process.
func TestCrash(t *testing.T) {
	filelog.SetSegmentBytes(t, 20_000)
	checkCrash(t, rand.New(rand.NewPCG(40, 1)), func(s eventlog.Log, round string) {
		appendUntilKilled(t, s, round, 100)
	})
}

// While the oldest entries are constantly removed, entries after a cut are never lost, even if a removal was
// interrupted.
func TestCrashTruncating(t *testing.T) {
	filelog.SetSegmentBytes(t, 200_000)
	checkCrash(t, rand.New(rand.NewPCG(45, 1)), func(s eventlog.Log, round string) {
		go truncateUntilKilled(t, s)
		appendUntilKilled(t, s, round, 3000)
	})
}

// checkCrash runs the calling test again in a child process that appends entries and reports acknowledgements until it
// is killed at a random moment. Then every acknowledged entry must be in the log exactly once, at its sequence, with
// each caller's entries in order. The next child continues from there.
func checkCrash(t *testing.T, rng *rand.Rand, child func(s eventlog.Log, round string)) {
	if dir := os.Getenv(crashDir); dir != "" {
		child(open(t, dir), os.Getenv(crashRound))
	}
	dir := t.TempDir()
	known := &survey{acknowledged: map[uint64]string{}, cut: 1}
	for round := range crashes {
		acks := rng.IntN(300)
		// lifetime of children that die before an acknowledgement
		fate := time.Duration(rng.IntN(60)) * time.Millisecond
		if round%4 != 0 {
			fate = time.Minute
		}
		known.runUntilKilled(t, dir, round, acks, fate)
		s := open(t, dir)
		x, err := s.Extent(t.Context())
		fatal.If(t, err, "round", round)
		entries, err := logtest.Read(s, x.First)
		fatal.If(t, err, "round", round)
		known.check(t, x.First, entries)
		fatal.If(t, s.Close())
	}
	t.Logf("%d rounds, %d entries acknowledged, those before %d removed", crashes, len(known.acknowledged), known.cut)
}

const callers = 8

// appendUntilKilled runs in the child. Each line of its output is a sequence and the entry there.
func appendUntilKilled(t *testing.T, s eventlog.Log, round string, size int) {
	var group sync.WaitGroup
	for c := range callers {
		group.Go(func() {
			pad := make([]byte, size*c*c)
			for i := 0; ; i++ {
				e := fmt.Sprintf("%s/%d/%d", round, c, i)
				last, err := s.Append(t.Context(), append([]byte(e+" "), pad...))
				if err != nil {
					fmt.Println("error", err)
					os.Exit(1)
				}
				fmt.Println(last, e)
			}
		})
	}
	group.Wait()
}

// truncateUntilKilled keeps some of the newest entries. It reports each cut before making it.
func truncateUntilKilled(t *testing.T, s eventlog.Log) {
	for keep := uint64(0); ; keep = (keep + 17) % 60 {
		last, err := s.Append(t.Context())
		if err == nil && last > keep {
			fmt.Println(last-keep, "cut")
			err = s.TruncateBefore(t.Context(), last-keep)
		}
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
	}
}

// survey collects the writers' reports.
type survey struct {
	acknowledged map[uint64]string // by sequence
	cut          uint64            // entries before it may have been removed
}

// runUntilKilled runs a child, kills it after a number of acknowledgements or a time, and records the acknowledgements.
func (k *survey) runUntilKilled(t *testing.T, dir string, round, acks int, fate time.Duration) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v=false")
	child.Env = append(os.Environ(), crashDir+"="+dir, fmt.Sprintf("%s=%d", crashRound, round))
	child.Stderr = os.Stderr
	out := fatal.Or(child.StdoutPipe())(t)
	fatal.If(t, child.Start())
	timer := time.AfterFunc(fate, func() { child.Process.Kill() })
	defer timer.Stop()
	n := 0
	for lines := bufio.NewScanner(out); lines.Scan(); n++ {
		var sequence uint64
		var e string
		if _, err := fmt.Sscan(lines.Text(), &sequence, &e); err != nil {
			t.Errorf("round %d: the child says %q", round, lines.Text())
			child.Process.Kill()
			break
		}
		if e == "cut" {
			k.cut = max(k.cut, sequence)
			continue
		}
		if before, ok := k.acknowledged[sequence]; ok {
			t.Errorf("sequence %d is of %s and of %s", sequence, before, e)
		}
		k.acknowledged[sequence] = e
		if n >= acks {
			child.Process.Kill() // later output is still read
		}
	}
	child.Wait()
	if !child.ProcessState.Exited() { // killed
		return
	}
	t.Fatalf("round %d: the child ended by itself: %v", round, child.ProcessState)
}

// check compares a log from its first entry on with the acknowledgements.
func (k *survey) check(t *testing.T, first uint64, entries [][]byte) {
	t.Helper()
	if first > k.cut {
		t.Errorf("the log begins with entry %d, and was cut at %d", first, k.cut)
	}
	next := map[string]int{} // by round and caller
	for i, bytes := range entries {
		sequence := first + uint64(i)
		var e, caller string
		if _, err := fmt.Sscan(string(bytes), &e); err != nil {
			t.Fatalf("entry %d is %.40q", sequence, bytes)
		}
		if want, ok := k.acknowledged[sequence]; ok && e != want {
			t.Errorf("entry %d is %s, acknowledged was %s", sequence, e, want)
		}
		var round, c, n int
		if _, err := fmt.Sscanf(e, "%d/%d/%d", &round, &c, &n); err != nil {
			t.Fatalf("entry %d is %q", sequence, e)
		}
		caller = fmt.Sprintf("%d/%d", round, c)
		if want, ok := next[caller]; n != want && (ok || first == 1) {
			t.Errorf("entry %d is %s, want the caller's %d", sequence, e, want)
		}
		next[caller] = n + 1
	}
	last := first + uint64(len(entries)) - 1
	for sequence, e := range k.acknowledged {
		if sequence > last {
			t.Errorf("entry %d, %s, was acknowledged, and the log ends at %d", sequence, e, last)
		}
	}
}
