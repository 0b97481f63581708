package logtest

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"vitrine/eventlog"
)

const crashDir, crashRound = "VITRINE_CRASH_DIR", "VITRINE_CRASH_ROUND"

// Crash checks that acknowledged entries survive the death of the process. The
// calling test runs again in a child that appends and reports what is
// acknowledged, until it is killed, wherever it is. Then every
// acknowledged entry must be there, once, at its sequence, and those of a caller in
// their order; the next child goes on. It must be the first call of its test.
func Crash(t *testing.T, rounds int, rng *rand.Rand, open Open) {
	if dir := os.Getenv(crashDir); dir != "" {
		appendUntilKilled(t, open(t, dir), os.Getenv(crashRound))
	}
	dir := t.TempDir()
	acknowledged := map[uint64]string{} // by sequence
	for round := range rounds {
		acks := rng.IntN(300)
		fate := time.Duration(rng.IntN(60)) * time.Millisecond // of those that die before they acknowledge
		if round%4 != 0 {
			fate = time.Minute
		}
		runUntilKilled(t, dir, round, acks, fate, acknowledged)
		s := open(t, dir)
		entries, err := Read(s, 1)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		checkSurvivors(t, entries, acknowledged)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d rounds, %d entries acknowledged", rounds, len(acknowledged))
}

const callers = 8

// appendUntilKilled is the child: each line that it writes is a sequence and
// the entry there.
func appendUntilKilled(t *testing.T, s eventlog.Store, round string) {
	var group sync.WaitGroup
	for c := range callers {
		group.Go(func() {
			pad := make([]byte, 100*c*c)
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

// runUntilKilled runs a child, kills it after so many acknowledgements or so
// much time, and notes the acknowledgements.
func runUntilKilled(t *testing.T, dir string, round, acks int, fate time.Duration, acknowledged map[uint64]string) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v=false")
	child.Env = append(os.Environ(), crashDir+"="+dir, fmt.Sprintf("%s=%d", crashRound, round))
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
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
		if before, ok := acknowledged[sequence]; ok {
			t.Errorf("sequence %d is of %s and of %s", sequence, before, e)
		}
		acknowledged[sequence] = e
		if n == acks {
			child.Process.Kill() // what it has written since is still read
		}
	}
	child.Wait()
	if !child.ProcessState.Exited() { // killed
		return
	}
	t.Fatalf("round %d: the child ended by itself: %v", round, child.ProcessState)
}

// checkSurvivors compares a log with what was acknowledged.
func checkSurvivors(t *testing.T, entries [][]byte, acknowledged map[uint64]string) {
	t.Helper()
	next := map[string]int{} // by round and caller
	for i, bytes := range entries {
		var e, caller string
		if _, err := fmt.Sscan(string(bytes), &e); err != nil {
			t.Fatalf("entry %d is %q", i+1, bytes)
		}
		if want, ok := acknowledged[uint64(i+1)]; ok && e != want {
			t.Errorf("entry %d is %s, acknowledged was %s", i+1, e, want)
		}
		var round, c, n int
		if _, err := fmt.Sscanf(e, "%d/%d/%d", &round, &c, &n); err != nil {
			t.Fatalf("entry %d is %q", i+1, e)
		}
		caller = fmt.Sprintf("%d/%d", round, c)
		if n != next[caller] {
			t.Errorf("entry %d is %s, want the caller's %d", i+1, e, next[caller])
		}
		next[caller] = n + 1
	}
	for sequence, e := range acknowledged {
		if sequence > uint64(len(entries)) {
			t.Errorf("entry %d, %s, was acknowledged, and the log ends at %d", sequence, e, len(entries))
		}
	}
}
