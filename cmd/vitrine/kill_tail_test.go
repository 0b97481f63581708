package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"vitrine/internal/long"
	"vitrine/service/decision"
	"vitrine/service/eventlog/natslog"
)

// The log of a killed service is damaged near its end. The service names the first entry that it refuses to
// read and the last one of the log, and so does check. After the steps of docs/operations.md it serves again:
// everything before the damage is as it was answered, and all losses are among the named entries.
func TestDamagedTail(t *testing.T) {
	long.Test(t)
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	file, data := serviceFile(t, "[snapshots]\nevery = \"100ms\"\n")
	l := newLedger(t)
	p := serve(t, file)
	url := p.listening(t)
	l.url.Store(&url)
	l.open(ctx)
	wait := l.shop(ctx, 4, 1)
	for range 5 {
		l.flows(ctx)
	}
	l.leaving.Store(true)
	wait()
	p.kill()
	for name, spoil := range map[string]func([]byte) []byte{
		"cut":   func(log []byte) []byte { return log[:len(log)-2345] },
		"flip":  func(log []byte) []byte { log[len(log)*4/5] ^= 4; return log },
		"zeros": func(log []byte) []byte { clear(log[len(log)-1234:]); return log },
	} {
		t.Run(name, func(t *testing.T) {
			file, damaged := serviceFile(t, "")
			if err := os.CopyFS(damaged, os.DirFS(data)); err != nil {
				t.Fatal(err)
			}
			before, _ := readLog(t, natslog.Options{Dir: copied(t, filepath.Join(damaged, "log"))})
			spoilLast(t, damaged, spoil)
			l := &ledger{T: t, client: l.client, rounds: l.rounds}
			l.recover(ctx, file, damaged, before)
		})
	}
}

func copied(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// spoilLast changes the last file of a log.
func spoilLast(t *testing.T, data string, spoil func([]byte) []byte) {
	t.Helper()
	blocks, err := filepath.Glob(filepath.Join(data, "log", "jetstream", "$G", "streams", "vitrine", "msgs", "*.blk"))
	if err != nil || len(blocks) != 1 {
		t.Fatalf("%v, %v", blocks, err)
	}
	log, err := os.ReadFile(blocks[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(blocks[0], spoil(log), 0o600); err != nil {
		t.Fatal(err)
	}
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

// recover follows the steps of docs/operations.md.
func (l *ledger) recover(ctx context.Context, file, data string, before map[string]*inLog) {
	output, code := command(l.T, "check", data)
	first, last := named(l.T, output)
	if code != 1 {
		l.Errorf("check: exit status %d", code)
	}
	for range 2 {
		p := serve(l.T, file)
		if code := p.wait(l.T); code != 1 {
			l.Errorf("serve: exit status %d:\n%s", code, p.said())
		}
		if f, e := named(l.T, p.said()); f != first || e != last {
			l.Errorf("serve names entries %d to %d, check %d to %d", f, e, first, last)
		}
	}
	if err := os.Remove(filepath.Join(data, "log", "mark")); err != nil {
		l.Fatal(err)
	}
	if snapshot := filepath.Join(data, "state.snapshot"); isOf(l.T, snapshot) >= first {
		p := serve(l.T, file)
		if code := p.wait(l.T); code != 1 || !strings.Contains(p.said(), "the log ends before") {
			l.Errorf("with a snapshot of what is lost: exit status %d:\n%s", code, p.said())
		}
		if err := os.Remove(snapshot); err != nil {
			l.Fatal(err)
		}
	}

	p := serve(l.T, file)
	url := p.listening(l.T)
	l.url.Store(&url)
	var kept []*acknowledged
	lost, unreported := 0, 0
	for _, a := range l.rounds {
		was := before[a.id]
		switch {
		case was.entry >= first:
			lost++
			if status, answer, _ := l.ask(ctx, "GET", "/v1/decisions/"+a.id, ""); status != 404 {
				l.Errorf("%s of entry %d: %d %s", a.id, was.entry, status, answer)
			}
		case was.closed >= first:
			unreported++
			if status, answer, _ := l.ask(ctx, "GET", "/v1/decisions/"+a.id, ""); status != 200 || !regexp.MustCompile(`"status":"(open|expired)"`).MatchString(answer) {
				l.Errorf("%s with an outcome of entry %d: %d %s", a.id, was.closed, status, answer)
			}
			kept = append(kept, &acknowledged{placement: a.placement, id: a.id, body: a.body, answer: a.answer, shown: a.shown})
		default:
			kept = append(kept, a)
		}
	}
	if lost == 0 || len(kept) == 0 || last < first {
		l.Errorf("%d decisions are lost, %d kept, entries %d to %d", lost, len(kept), first, last)
	}
	l.holds(ctx, kept)
	l.again(ctx)
	p.stop(l.T)
	sound(l.T, data)
	l.Logf("entries %d to %d are named: %d decisions of %d are lost, and of %d the outcome", first, last, lost, len(l.rounds), unreported)
}

// again has shoppers come for a while.
func (l *ledger) again(ctx context.Context) {
	l.Helper()
	more := newLedger(l.T)
	more.url.Store(l.url.Load())
	wait := more.shop(ctx, 2, 2)
	more.flows(ctx)
	more.leaving.Store(true)
	wait()
	more.hangUp()
}

// isOf returns the last entry of a snapshot.
func isOf(t *testing.T, path string) uint64 {
	t.Helper()
	snapshot, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at, err := decision.SnapshotPosition(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	return at.Sequence
}
