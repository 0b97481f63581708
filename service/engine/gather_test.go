package engine_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
)

// disk is a log that takes a millisecond for an append, and remembers the sizes of its appends.
type disk struct {
	memlog.Store
	appends []int
}

func (d *disk) Append(ctx context.Context, entries ...[]byte) (uint64, error) {
	time.Sleep(time.Millisecond)
	d.appends = append(d.appends, len(entries))
	return d.Store.Append(ctx, entries...)
}

func TestGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(disk)
		e := opened(t, engine.Options{Store: log, Gather: 200 * time.Microsecond})
		put(t, e, "home", `{"max_size":2,"features":`+numbers(1)+`,"policy":{"name":"uniform"}}`)
		made := 0
		// decide sends callers at these times, in microseconds, and returns when the last one has its answer.
		decide := func(at ...int) int {
			begin := time.Now()
			var callers sync.WaitGroup
			for _, us := range at {
				made++
				r := stock("d"+strconv.Itoa(made), 4)
				callers.Go(func() {
					time.Sleep(time.Duration(us) * time.Microsecond)
					if _, err := e.Decide(t.Context(), "home", r, 0); err != nil {
						t.Error(err)
					}
				})
			}
			callers.Wait()
			return int(time.Since(begin).Microseconds())
		}
		log.appends = nil
		for _, c := range []struct {
			at   []int
			last int
			each []int
		}{
			{[]int{0}, 1000, []int{1}},
			{[]int{0}, 1000, []int{1}},                   // alone: no wait
			{[]int{0, 100, 200}, 2000, []int{1, 2}},      // two came while the first was written
			{[]int{0, 100, 150, 300}, 2400, []int{3, 1}}, // the next ones wait for each other
			{[]int{0}, 1000, []int{1}},
		} {
			if took := decide(c.at...); took != c.last || !slices.Equal(log.appends, c.each) {
				t.Errorf("callers at %v µs: the last one has its answer at %d in appends of %v, want %d and %v", c.at,
					took, log.appends, c.last, c.each)
			}
			log.appends = nil
		}
	})
}
