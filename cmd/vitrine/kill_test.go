package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"vitrine/internal/long"
	"vitrine/service/eventlog/natslog"
)

var (
	kills     = flag.Int("kills", 20, "how often TestKill kills the service")
	natsKills = flag.Int("nats-kills", 6, "how often TestKillNATS kills the server that has the log")
	killSeed  = flag.Uint64("kill-seed", 1, "of the moments at which they do")
)

// The moments of a kill.
const (
	atWork     = iota // some time after it listens
	inStart           // while it starts
	inReplay          // while it replays the whole log, its snapshot is gone
	inSnapshot        // while a snapshot is written
	atTheEnd          // while it ends
	deaths
)

var deathNames = [deaths]string{"at work", "at start", "in a replay", "in a snapshot", "at its end"}

// victim is a service that is killed and started again.
type victim struct {
	*testing.T
	file, data string
	rng        *rand.Rand
	ledger     *ledger
	starting   time.Duration // about the time of a start
	died       [deaths]int   // ways
	copies     []string      // of snapshots
}

// Acknowledged entries survive SIGKILL at any moment, any number of times: every decision and outcome is in
// the log once, as it was answered; nothing is learned twice; and the final state equals that of a full
// replay, bit for bit.
func TestKill(t *testing.T) {
	long.Test(t)
	t.Parallel()
	file, data := serviceFile(t, "[snapshots]\nevery = \"30ms\"\nkeep_every = \"250ms\"\n")
	v := &victim{T: t, file: file, data: data, rng: rand.New(rand.NewPCG(*killSeed, 0)), ledger: newLedger(t)}
	ctx, cancel := context.WithTimeout(t.Context(), patience+time.Duration(*kills)*time.Minute)
	defer cancel()
	p := v.live(ctx)
	v.ledger.open(ctx)
	wait := v.ledger.shop(ctx, 16, *killSeed)
	for n := range *kills {
		v.die(p, n)
		p = v.live(ctx)
		if t.Failed() {
			t.Fatalf("after %d kills, -kill-seed %d:\n%s", n+1, *killSeed, p.said())
		}
	}
	v.ledger.leaving.Store(true)
	wait()
	v.ledger.holds(ctx, v.ledger.all())
	home, brief := v.ledger.settled(ctx, "home"), v.ledger.settled(ctx, "brief")
	p.stop(t)

	sound(t, data, v.copies...)
	decisions, of := readLog(t, natslog.Options{Dir: filepath.Join(data, "log")})
	v.ledger.isIn(decisions)
	home.once(t, "home", of["home"])
	brief.once(t, "brief", of["brief"])
	if left, _ := filepath.Glob(filepath.Join(data, ".*")); left != nil {
		t.Errorf("left behind: %v", left)
	}
	report := fmt.Sprintf("-kill-seed %d: %d kills:", *killSeed, *kills)
	for death, n := range v.died {
		report += fmt.Sprintf(" %d %s,", n, deathNames[death])
	}
	if t.Failed() {
		return
	}
	t.Logf("verdict: %s %d decisions and %d outcomes acknowledged, none lost, changed, doubled or learned twice, %d twins, %d retries, %d expired, the longest wait %d ms, %d snapshots compared",
		report, len(v.ledger.rounds), v.ledger.reported, v.ledger.twins, v.ledger.retries.Load(), brief.Expired, v.ledger.slowest.Load(), len(v.copies)+1)
}

// live starts the service, and requests some of its earlier answers again.
func (v *victim) live(ctx context.Context) *process {
	v.Helper()
	begin := time.Now()
	p := serve(v.T, v.file)
	url := p.listening(v.T)
	v.starting = time.Since(begin)
	v.ledger.url.Store(&url)
	v.ledger.holds(ctx, v.some())
	return p
}

// some returns some of the rounds that were answered, and the last one, which was answered just before the end.
func (v *victim) some() (some []*acknowledged) {
	rounds := v.ledger.all()
	if len(rounds) == 0 {
		return nil
	}
	for range min(len(rounds), 20) {
		some = append(some, rounds[v.rng.IntN(len(rounds))])
	}
	return append(some, rounds[len(rounds)-1])
}

// die kills a service that listens; the later deaths of a start and of a replay need one of their own.
func (v *victim) die(p *process, n int) {
	v.Helper()
	time.Sleep(within(v.rng, 150*time.Millisecond))
	death := (n + int(*killSeed)) % deaths
	v.died[death]++
	switch death {
	case inSnapshot:
		v.awaitSnapshot()
	case atTheEnd:
		if err := p.Process.Signal(syscall.SIGTERM); err != nil {
			v.Fatal(err)
		}
		time.Sleep(within(v.rng, 20*time.Millisecond))
	}
	p.kill()
	v.checkDeath(p, death)
	v.copySnapshot(n)
	if death == inReplay {
		if err := os.RemoveAll(v.snapshot()); err != nil {
			v.Fatal(err)
		}
	}
	if death == inStart || death == inReplay {
		p := serve(v.T, v.file)
		time.Sleep(within(v.rng, v.starting))
		p.kill()
		v.checkDeath(p, death)
	}
}

// checkDeath checks that only the kill has ended the process.
func (v *victim) checkDeath(p *process, death int) {
	v.Helper()
	if !p.killed() && (death != atTheEnd || p.ProcessState.ExitCode() != 0) {
		v.Fatalf("the service ended by itself, %v:\n%s", p.ProcessState, p.said())
	}
}

func (v *victim) snapshot() string { return filepath.Join(v.data, "state.snapshot") }

// awaitSnapshot waits until a snapshot is being written.
func (v *victim) awaitSnapshot() {
	v.Helper()
	for deadline := time.Now().Add(patience); ; {
		if unfinished, _ := filepath.Glob(filepath.Join(v.data, ".state.snapshot.*")); unfinished != nil {
			return
		}
		if time.Now().After(deadline) {
			v.Fatal("no snapshot is written")
		}
	}
}

// copySnapshot keeps some of the snapshots that a killed service leaves.
func (v *victim) copySnapshot(n int) {
	v.Helper()
	if n%max(*kills/5, 1) != 0 {
		return
	}
	data, err := os.ReadFile(v.snapshot())
	if errors.Is(err, fs.ErrNotExist) { // it has not lived long enough
		return
	}
	if err != nil {
		v.Fatal(err)
	}
	to := filepath.Join(v.TempDir(), "state.snapshot")
	if err := os.WriteFile(to, data, 0o600); err != nil {
		v.Fatal(err)
	}
	v.copies = append(v.copies, to)
}
