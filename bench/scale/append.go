package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"vitrine/service/eventlog/natslog"
)

// appends measures the service that callers get when writing to several services' logs.
type appends struct {
	entries  int
	frames   int           // number of appends, each with all waiting entries
	took     time.Duration // total time
	p50, p99 time.Duration // of a caller's wait
	used     float64       // this process's microseconds per entry
}

// appendTo writes to several streams on NATS servers, as the leaders of as many services do, and prints the callers'
// waits. A stream's callers write the entries of rounds, and wait for each. One writer per stream appends all waiting
// entries together.
func appendTo(ctx context.Context, out io.Writer, url string, args []string) error {
	var numbers [3]int // streams, callers per stream, seconds
	for i := range numbers {
		var err error
		if numbers[i], err = strconv.Atoi(args[i]); err != nil || numbers[i] < 1 {
			return fmt.Errorf("append: %q: must be a positive number", args[i])
		}
	}
	recorded, err := record(ctx, "uniform", 2000)
	if err != nil {
		return err
	}
	var entries [][]byte
	for entry, err := range recorded.Entries(ctx, 2) { // the first entry creates the placement
		if err != nil {
			return err
		}
		entries = append(entries, entry)
	}
	var stores []*natslog.Store
	for i := range numbers[0] {
		s, err := natslog.Open(ctx, natslog.Options{URL: url, Stream: fmt.Sprintf("vitrine-%d", i+1)})
		if err != nil {
			return err
		}
		defer s.Close()
		stores = append(stores, s)
	}
	a, err := appendFor(ctx, stores, entries, numbers[1], time.Duration(numbers[2])*time.Second)
	if err != nil {
		return err
	}
	milliseconds := func(d time.Duration) float64 { return float64(d) / 1e6 }
	fmt.Fprintf(out, "%.0f\t%.1f\t%.2f\t%.2f\t%.2f\n",
		float64(a.entries)/a.took.Seconds(), float64(a.entries)/float64(a.frames), milliseconds(a.p50),
		milliseconds(a.p99), a.used)
	return nil
}

// appendFor lets callers write entries to stores for a while.
func appendFor(ctx context.Context, stores []*natslog.Store, entries [][]byte, callers int,
	d time.Duration) (a appends, err error) {
	var (
		mu     sync.Mutex
		waits  []time.Duration
		failed error
		all    sync.WaitGroup
	)
	fail := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		failed = err
	}
	before, begin := used(), time.Now()
	for _, s := range stores {
		wanted := make(chan write, callers)
		var asking sync.WaitGroup
		for c := range callers {
			asking.Go(func() {
				var own []time.Duration
				done := make(chan struct{}, 1)
				for n := c * len(entries) / callers; time.Since(begin) < d; n++ {
					asked := time.Now()
					wanted <- write{entries[n%len(entries)], done}
					<-done
					own = append(own, time.Since(asked))
				}
				mu.Lock()
				defer mu.Unlock()
				waits = append(waits, own...)
			})
		}
		all.Go(func() {
			frames, err := writeAll(ctx, s, wanted)
			if err != nil {
				fail(err)
			}
			mu.Lock()
			defer mu.Unlock()
			a.frames += frames
		})
		all.Go(func() {
			asking.Wait()
			close(wanted)
		})
	}
	all.Wait()
	a.entries, a.took = len(waits), time.Since(begin)
	a.used = (used() - before) / float64(max(a.entries, 1))
	slices.Sort(waits)
	a.p50, a.p99 = waits[len(waits)/2], waits[len(waits)*99/100]
	return a, failed
}

// write is an entry that a caller wants to append.
type write struct {
	entry []byte
	done  chan<- struct{}
}

// writeAll appends entries as they arrive, all waiting ones at once, until the channel is closed. After an error it
// stops appending.
func writeAll(ctx context.Context, s *natslog.Store, wanted <-chan write) (frames int, err error) {
	var group []write
	var entries [][]byte
	for w := range wanted {
		group, entries = append(group[:0], w), append(entries[:0], w.entry)
		for more := len(wanted); more > 0; more-- {
			w := <-wanted
			group, entries = append(group, w), append(entries, w.entry)
		}
		if err == nil {
			_, err = s.Append(ctx, entries...)
			frames++
		}
		for _, w := range group {
			w.done <- struct{}{}
		}
	}
	return frames, err
}
