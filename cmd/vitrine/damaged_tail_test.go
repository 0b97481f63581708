//go:build unix

package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"vitrine/internal/fatal"
	"vitrine/internal/long"
	"vitrine/service/api"
	"vitrine/service/host"
	"vitrine/service/state"
)

// TestDamagedTail damages the log of a killed service near its end. The service must name the first entry that it
// refuses to read and the last one of the log, and so must check. After the steps of docs/operations.md it must serve again:
// everything before the damage is as it was answered, and all losses are among the named entries.
func TestDamagedTail(t *testing.T) {
	long.Test(t)
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	v := newVictim(t, ctx, 1, "[snapshots]\nevery = \"100ms\"\n")
	v.Shop(ctx, 4, 1)
	for range 5 {
		v.Flows(ctx)
	}
	v.Leave()
	v.Kill()
	before, _ := readLog(t, v.log)
	for name, spoil := range map[string]func([]byte) []byte{
		"cut":   func(log []byte) []byte { return log[:len(log)-2345] },
		"flip":  func(log []byte) []byte { log[len(log)*4/5] ^= 4; return log },
		"zeros": func(log []byte) []byte { clear(log[len(log)-1234:]); return log },
	} {
		t.Run(name, func(t *testing.T) {
			w := &victim{ledger: &ledger{T: t, client: v.client, rounds: v.rounds}}
			w.file, w.data = serviceFile(t, "")
			fatal.If(t, os.CopyFS(w.data, os.DirFS(v.data)))
			spoilLast(t, w.data, spoil)
			w.recovers(ctx, before)
		})
	}
}

// spoilLast changes the last file of a log.
func spoilLast(t *testing.T, data string, spoil func([]byte) []byte) {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(data, host.LogDir, "*.wal"))
	if err != nil || len(segments) != 1 {
		t.Fatalf("%v, %v", segments, err)
	}
	log := fatal.Or(os.ReadFile(segments[0]))(t)
	fatal.If(t, os.WriteFile(segments[0], spoil(log), 0o600))
}

var lostTail = regexp.MustCompile(`the log cannot be read from entry (\d+) on: .* entries up to (\d+) were acknowledged`)

// named returns the first and the last of the entries that a message says are lost.
func named(t *testing.T, text string) (first, last uint64) {
	t.Helper()
	m := lostTail.FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no entry is named:\n%s", text)
	}
	first, _ = strconv.ParseUint(m[1], 10, 64)
	last, _ = strconv.ParseUint(m[2], 10, 64)
	return first, last
}

// refused expects the service to refuse to start, and returns its message.
func (v *victim) refused() string {
	v.Helper()
	v.process = program.Serve(v.T, v.file)
	if code := v.process.Wait(); code != 1 {
		v.Errorf("serve: exit status %d:\n%s", code, v.Said())
	}
	return v.Said()
}

// recovers follows the steps of docs/operations.md.
func (v *victim) recovers(ctx context.Context, before map[string]*inLog) {
	output, code := program.Command(v.T, "check", v.data)
	first, last := named(v.T, output)
	if code != 1 {
		v.Errorf("check: exit status %d", code)
	}
	for range 2 {
		if f, e := named(v.T, v.refused()); f != first || e != last {
			v.Errorf("serve names entries %d to %d, check %d to %d", f, e, first, last)
		}
	}
	fatal.If(v, os.Remove(filepath.Join(v.data, host.LogDir, "mark")))
	snapshot := fatal.Or(os.ReadFile(v.snapshot()))(v)
	at := fatal.Or(state.SnapshotPosition(snapshot))(v)
	if at.Sequence >= first {
		if said := v.refused(); !strings.Contains(said, "the log ends before") {
			v.Errorf("with a snapshot of what is lost:\n%s", said)
		}
		fatal.If(v, os.Remove(v.snapshot()))
	}

	v.start()
	var kept []*acknowledged
	lost, unreported := 0, 0
	for _, a := range v.rounds {
		was := before[a.id]
		switch {
		case was.entry >= first:
			lost++
			if status, answer, _ := v.ask(ctx, "GET", api.DecisionPath(a.placement, a.id), ""); status != 404 {
				v.Errorf("%s of entry %d: %d %s", a.id, was.entry, status, answer)
			}
		case was.closed >= first:
			unreported++
			if status, answer, _ := v.ask(ctx, "GET", api.DecisionPath(a.placement, a.id), ""); status != 200 ||
				!regexp.MustCompile(`"status":"(open|expired)"`).MatchString(answer) {
				v.Errorf("%s with an outcome of entry %d: %d %s", a.id, was.closed, status, answer)
			}
			kept = append(kept, &acknowledged{placement: a.placement, id: a.id, body: a.body, answer: a.answer,
				shown: a.shown})
		default:
			kept = append(kept, a)
		}
	}
	if lost == 0 || len(kept) == 0 || last < first {
		v.Errorf("%d decisions are lost, %d kept, entries %d to %d", lost, len(kept), first, last)
	}
	v.holds(ctx, kept)
	v.Shop(ctx, 2, 2) // more shoppers
	v.Flows(ctx)
	v.Leave()
	v.hangUp()
	v.process.Stop()
	program.Sound(v.T, v.data)
	v.Logf("entries %d to %d are named: %d decisions of %d are lost, and of %d the outcome", first, last, lost,
		len(before), unreported)
}
