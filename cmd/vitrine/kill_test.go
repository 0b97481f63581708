//go:build unix

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

	"vitrine/internal/fatal"
	"vitrine/internal/long"
	"vitrine/service/host"
)

var (
	kills     = flag.Int("kills", 20, "how often TestKill kills the service")
	natsKills = flag.Int("nats-kills", 6, "how often TestKillNATS kills the server that holds the log")
)

// patienceFor is the time that so many strikes may take.
func patienceFor(strikes int) time.Duration { return patience + time.Duration(strikes)*time.Minute }

// victim is a service that is killed and started again while shoppers ask it.
type victim struct {
	*ledger
	*process

	file, data string
	log        string // a directory or a URL
	flags      []string
	rng        *rand.Rand
	starting   time.Duration // about the time of a start
}

// newVictim starts a service. more is configuration.
func newVictim(t *testing.T, ctx context.Context, seed uint64, more string, flags ...string) *victim {
	t.Helper()
	v := &victim{ledger: newLedger(t), flags: flags, rng: rand.New(rand.NewPCG(seed, 0))}
	v.file, v.data = serviceFile(t, more)
	v.log = filepath.Join(v.data, host.LogDir)
	v.start()
	v.Open(ctx)
	return v
}

// start starts the service, and sends shoppers to it.
func (v *victim) start() {
	v.Helper()
	begin := time.Now()
	v.process = program.Serve(v.T, v.file, v.flags...)
	v.At(v.Listening())
	v.starting = time.Since(begin)
}

// diesAtStart starts the service and kills it while it starts, or soon after.
func (v *victim) diesAtStart(after time.Duration) {
	v.process = program.Serve(v.T, v.file, v.flags...)
	time.Sleep(after)
	v.Kill()
}

// remembers asks again for some of the rounds that were answered, and for the last one, which was answered just before
// the end.
func (v *victim) remembers(ctx context.Context) {
	v.Helper()
	rounds := v.all()
	if len(rounds) == 0 {
		return
	}
	some := rounds[len(rounds)-1:]
	for range min(len(rounds), 20) {
		some = append(some, rounds[v.rng.IntN(len(rounds))])
	}
	v.holds(ctx, some)
}

// intact fails after n strikes if an answer was wrong.
func (v *victim) intact(n int) {
	v.Helper()
	if v.Failed() {
		v.Fatalf("after %d strikes, seed %d:\n%s", n+1, *killSeed, v.Said())
	}
}

// accounts sends the shoppers away, ends the service, and compares the answers to the shoppers with the service, with its
// log, and with a replay. It returns the verdict.
func (v *victim) accounts(ctx context.Context, snapshots ...string) string {
	v.Helper()
	v.Leave()
	v.Holds(ctx)
	learned := map[string]learning{}
	for name := range placements {
		learned[name] = v.settled(ctx, name)
	}
	v.process.Stop()
	if v.log != filepath.Join(v.data, host.LogDir) {
		program.Sound(v.T, v.log, append(snapshots, v.snapshot())...)
	} else {
		program.Sound(v.T, v.data, snapshots...)
	}
	of, waits := v.IsIn(v.log)
	for name, l := range learned {
		l.once(v.T, name, of[name], waits[name])
	}
	return fmt.Sprintf("%v, none lost, changed, doubled or learned twice, %d twins, %d retries, %d expired, the "+
		"longest wait %d ms",
		v.ledger, v.twins, v.retries.Load(), learned["brief"].Expired, v.slowest.Load())
}

func (v *victim) snapshot() string { return filepath.Join(v.data, host.SnapshotFile) }

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

// TestKill kills the service at any moment. Every acknowledged decision and outcome must be in the log once, as it was
// answered, must be learned at most once, and the final state must equal a full replay's, bit for bit.
func TestKill(t *testing.T) {
	long.Test(t)
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patienceFor(*kills))
	defer cancel()
	v := newVictim(t, ctx, *killSeed, "[snapshots]\nevery = \"30ms\"\nkeep_every = \"250ms\"\n")
	v.Shop(ctx, 16, *killSeed)
	var died [deaths]int
	var copies []string // of snapshots
	for n := range *kills {
		death := (n + int(*killSeed)) % deaths
		died[death]++
		v.dies(death)
		if n%max(*kills/5, 1) == 0 {
			copies = append(copies, v.keepSnapshot()...)
		}
		if death == inReplay {
			fatal.If(t, os.RemoveAll(v.snapshot()))
		}
		if death == inStart || death == inReplay {
			v.diesAtStart(within(v.rng, v.starting))
			v.checkDeath(death)
		}
		v.start()
		v.remembers(ctx)
		v.intact(n)
	}
	said := v.accounts(ctx, copies...)
	if left, _ := filepath.Glob(filepath.Join(v.data, ".*")); left != nil {
		t.Errorf("left behind: %v", left)
	}
	report := ""
	for death, n := range died {
		report += fmt.Sprintf(" %d %s,", n, deathNames[death])
	}
	held(t, fmt.Sprintf("seed %d: %d kills:%s %s, %d snapshots compared", *killSeed, *kills, report, said, len(copies)+1))
}

// dies kills a service that listens.
func (v *victim) dies(death int) {
	v.Helper()
	time.Sleep(within(v.rng, 150*time.Millisecond))
	switch death {
	case inSnapshot:
		for deadline := time.Now().Add(patience); ; {
			if unfinished, _ := filepath.Glob(filepath.Join(v.data, ".state.snapshot.*")); unfinished != nil {
				break
			}
			if time.Now().After(deadline) {
				v.Fatal("no snapshot is written")
			}
		}
	case atTheEnd:
		v.Signal(syscall.SIGTERM)
		time.Sleep(within(v.rng, 20*time.Millisecond))
	}
	v.Kill()
	v.checkDeath(death)
}

// checkDeath checks that only the kill ended the process.
func (v *victim) checkDeath(death int) {
	v.Helper()
	if !v.killed() && (death != atTheEnd || v.ProcessState.ExitCode() != 0) {
		v.Fatalf("the service ended by itself, %v:\n%s", v.ProcessState, v.Said())
	}
}

// keepSnapshot copies a killed service's snapshot, if it lived long enough to write one.
func (v *victim) keepSnapshot() (copied []string) {
	v.Helper()
	data, err := os.ReadFile(v.snapshot())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	to := filepath.Join(v.TempDir(), host.SnapshotFile)
	fatal.If(v, errors.Join(err, os.WriteFile(to, data, 0o600)))
	return []string{to}
}

// TestKillNATS kills the server that holds the log under the service, sometimes together with the service. The service must
// wait for the server and continue without loss.
func TestKillNATS(t *testing.T) {
	long.Test(t)
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patienceFor(*natsKills))
	defer cancel()
	nats := startNATS(t)
	v := newVictim(t, ctx, *killSeed, fmt.Sprintf("[log]\nurl = %q\n[snapshots]\nevery = \"50ms\"\n", nats.URL()))
	v.Shop(ctx, 8, *killSeed)
	v.log = nats.URL()
	var away time.Duration
	for n := range *natsKills {
		time.Sleep(within(v.rng, 150*time.Millisecond))
		begin := time.Now()
		nats.Kill()
		together := n%4 == 3
		if together {
			v.Kill()
		}
		time.Sleep(within(v.rng, 200*time.Millisecond))
		nats.Start()
		if together {
			v.start()
		}
		v.Flows(ctx)
		away += time.Since(begin)
		v.intact(n)
	}
	held(t, fmt.Sprintf("seed %d: %d kills of the log's server, %d of them with the service, %v a kill until it "+
		"works again: %s",
		*killSeed, *natsKills, *natsKills/4, (away/time.Duration(max(*natsKills, 1))).Round(time.Millisecond), v.accounts(ctx)))
}
