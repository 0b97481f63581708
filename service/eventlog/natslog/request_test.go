package natslog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"vitrine/service/eventlog/natslog"
)

// A follower's requests reach the process that writes the log, also large ones, many at once, and only the last writer.
func TestRequests(t *testing.T) {
	t.Parallel()
	o := natslog.Options{URL: external(t), Standby: true}
	leader := connect(t, o)
	fill(t, leader, 1, 1)
	f := connect(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := f.Ask(ctx, "sum", nil); !errors.Is(err, natslog.ErrNobody) {
		t.Errorf("nobody answers: %v", err)
	}
	answering := func(s *natslog.Store, name string) func() {
		stop, err := s.Answer("sum", func(request []byte) []byte {
			sum := 0
			for _, b := range request {
				sum += int(b)
			}
			return fmt.Appendf(nil, "%s %d %d", name, len(request), sum)
		})
		if err != nil {
			t.Fatal(err)
		}
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

// No number of a replica is given twice, also after the bucket was lost.
func TestReplicasAreNumbered(t *testing.T) {
	t.Parallel()
	o := natslog.Options{URL: external(t), Standby: true}
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
	if len(had) != 20 {
		t.Errorf("%d numbers", len(had))
	}
	if n, err := leader.NewReplica(t.Context()); err != nil || n < uint64(time.Since(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)).Hours()) {
		t.Errorf("%d, %v: a bucket that was lost would give numbers again", n, err)
	}
}
