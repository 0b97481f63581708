package natslog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/eventlog/natslog"
	"vitrine/service/eventlog/natslog/natstest"
)

// A follower's requests reach the log's writer, even large ones and many at once, and only the latest writer.
func TestRequests(t *testing.T) {
	t.Parallel()
	o := natslog.Options{URL: natstest.URL(t), Standby: true}
	leader := connect(t, o)
	fill(t, leader, 1, 1)
	f := connect(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	expect.Fails(f.Ask(ctx, "sum", nil))(t, natslog.ErrNobody)
	answering := func(s *natslog.Store, name string) func() {
		stop := fatal.Or(s.Answer("sum", func(request []byte) []byte {
			sum := 0
			for _, b := range request {
				sum += int(b)
			}
			return fmt.Appendf(nil, "%s %d %d", name, len(request), sum)
		}))(t)
		return stop
	}
	defer answering(leader, "first")()
	var group sync.WaitGroup
	for n, size := range []int{0, 1, 1000, 1 << 20, 3 << 20, 5_000_000} {
		group.Go(func() {
			request := bytes.Repeat([]byte{byte(n)}, size)
			answer, err := f.Ask(ctx, "sum", request)
			if want := fmt.Sprintf("first %d %d", size, n*size); err != nil || string(answer) != want {
				t.Errorf("%q, %v, want %q", answer, err, want)
			}
		})
	}
	group.Wait()
	over := o
	over.TakeOver = true
	second := connect(t, over)
	defer answering(second, "second")()
	entries, _ := followed(t.Context(), f, 1)
	fill(t, second, 2, 2)
	comes(t, entries, 1, 2)
	if answer, err := f.Ask(ctx, "sum", nil); err != nil || string(answer) != "second 0 0" {
		t.Errorf("%q, %v: want an answer of the second writer", answer, err)
	}
}

// A sender is told why its request got no answer: the answer is too large for a message, or the request's parts are too
// many, incomplete or too late. Other requests are still answered.
func TestRefusedRequests(t *testing.T) {
	defer natslog.SetParts(3*time.Second, 3<<20)()
	o := natslog.Options{URL: natstest.URL(t), Standby: true}
	leader := connect(t, o)
	fill(t, leader, 1, 1)
	f := connect(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stop, err := leader.Answer("double", func(request []byte) []byte { return append(request, request...) })
	fatal.If(t, err)
	defer stop()
	refused := func(err error, why string) {
		t.Helper()
		if !errors.Is(err, natslog.ErrRefused) || !strings.Contains(err.Error(), why) {
			t.Errorf("%v, want a refusal that says %q", err, why)
		}
	}
	_, err = f.Ask(ctx, "double", make([]byte, 1<<20))
	refused(err, "the answer of 2097152 bytes is larger")
	_, err = f.Ask(ctx, "double", make([]byte, 4<<20))
	refused(err, "at most 3145728 fit")
	part := func(header, want string) {
		t.Helper()
		if why, err := natslog.Part(ctx, f, "double", header, []byte("x")); err != nil || want == "" && why != "" ||
			!strings.Contains(why, want) {
			t.Errorf("the part %q: %q, %v, want %q", header, why, err, want)
		}
	}
	part("a 1 0", "")
	part("a 0 1", "")
	part("a 0 1", "part 2 of a request came without those before")
	part("b 2 0", "")
	part("b 0 2", "part 3 of a request came without those before")
	part("b 1 1", "part 2 of a request came without those before")
	part("c 1", "use one release for all")
	part("d 1 0", "")
	time.Sleep(4 * time.Second)
	part("d 0 1", "part 2 of a request came without those before")
	for range 4 { // rejected or forgotten requests take no room
		if answer, err := f.Ask(ctx, "double", make([]byte, 400_000)); err != nil || len(answer) != 800_000 {
			t.Errorf("%d bytes, %v", len(answer), err)
		}
	}
	if _, err := f.Ask(ctx, "double", make([]byte, 3<<20)); !errors.Is(err, natslog.ErrRefused) ||
		!strings.Contains(err.Error(), "it is done") {
		t.Errorf("%v, want a request of all the room, and an answer that is too large", err)
	}
}

// Parts of an unfinished snapshot are removed, unless another process may still be writing it. A process that no longer
// writes the log cannot replace a snapshot.
func TestPartsOfSnapshots(t *testing.T) {
	defer natslog.SetAbandoned(time.Hour)()
	o := natslog.Options{URL: natstest.URL(t), Standby: true}
	s := connect(t, o)
	fill(t, s, 1, 9)
	put := func(s *natslog.Store, sequence uint64) error {
		at := fatal.Or(s.Position(t.Context(), sequence))(t)
		return s.PutSnapshot(t.Context(), at, strings.NewReader("the snapshot"))
	}
	fatal.If(t, put(s, 3))
	js := natstest.JetStream(t, o.URL)
	parts := func() int {
		info := fatal.Or(js.StreamInfo("OBJ_vitrine-snapshots",
			&nats.StreamInfoRequest{SubjectsFilter: "$O.vitrine-snapshots.C.>"}))(t)
		return len(info.State.Subjects)
	}
	fatal.Or(js.Publish("$O.vitrine-snapshots.C.left", []byte("part")))(t)
	if err := put(s, 5); err != nil || parts() != 3 {
		t.Errorf("%v, %d parts: one that was just written is gone", err, parts())
	}
	natslog.SetAbandoned(0)
	if err := put(s, 6); err != nil || parts() != 2 {
		t.Errorf("%v, %d parts, want those of two snapshots", err, parts())
	}
	over := o
	over.TakeOver = true
	heir := connect(t, over)
	fatal.If(t, put(heir, 8))
	natslog.Age(s, time.Minute, time.Minute)
	expect.Refused(put(s, 7))(t, "a process that was fenced puts a snapshot")
	if got, _, err := heir.LastSnapshot(t.Context()); err != nil || got.Sequence != 8 {
		t.Errorf("the last snapshot is of entry %d, %v, want 8", got.Sequence, err)
	}
}

// A replica number is never given twice, even after the bucket was lost.
func TestReplicasAreNumbered(t *testing.T) {
	t.Parallel()
	o := natslog.Options{URL: natstest.URL(t), Standby: true}
	leader := connect(t, o)
	var stores [3]*natslog.Store
	for i := range stores {
		stores[i] = connect(t, o)
	}
	var mu sync.Mutex
	had := map[uint64]bool{}
	take := func(s *natslog.Store) {
		n, err := s.NewReplica(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if had[n] || n == 0 || n >= 1<<23 {
			t.Errorf("%d is given again, or too large", n)
		}
		had[n] = true
	}
	var group sync.WaitGroup
	for _, s := range append(stores[:], leader) {
		group.Go(func() {
			for range 5 {
				take(s)
			}
		})
	}
	group.Wait()
	expect.Equal(t, len(had), 20, "numbers")
	if n, err := leader.NewReplica(t.Context()); err != nil ||
		n < uint64(time.Since(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)).Hours()) {
		t.Errorf("%d, %v: a bucket that was lost would give numbers again", n, err)
	}
}
