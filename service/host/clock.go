package host

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"vitrine/service/eventlog"
)

// steadyClock is the clock of the service. It starts at the time of day, or at the time of the log's
// last event if that is a little later, and then follows the system's monotonic clock. If the time of
// day is stepped, no decisions expire and no entries are removed; the step takes effect at the next
// start.
type steadyClock struct {
	ahead   atomic.Int64         // nanoseconds by which the clock was advanced after its start
	begin   time.Time            // when the clock started
	elapsed func() time.Duration // since begin, by the monotonic clock
	wall    func() time.Time     // the time of day
	skew    time.Duration        // between wall and now, when it was last reported
}

// maxSkew is the difference between the time of day and the service's that is not reported.
const maxSkew = time.Minute

// newClock makes a clock for a log whose last event was at the Unix time last, in nanoseconds, or 0 if
// there is none.
func newClock(last int64, wall func() time.Time, logger *slog.Logger) *steadyClock {
	start := time.Now()
	c := &steadyClock{begin: wall(), elapsed: func() time.Duration { return time.Since(start) }, wall: wall}
	c.begin = c.after(last, logger)
	return c
}

// after returns the time at which the clock starts.
func (c *steadyClock) after(last int64, logger *slog.Logger) time.Time {
	ahead := time.Unix(0, last).Sub(c.begin)
	switch {
	case ahead <= 0:
		return c.begin
	case ahead <= maxSkew:
		return c.begin.Add(ahead)
	}
	logger.Warn("the log's last event is in the future: the clock was ahead then or is behind now", "seconds", int64(ahead.Seconds()))
	return c.begin
}

func (c *steadyClock) now() time.Time {
	return c.begin.Add(c.elapsed() + time.Duration(c.ahead.Load()))
}

// advance advances the clock to the last event of a log, if that is a little later, before this process writes the log.
func (c *steadyClock) advance(last int64) {
	if ahead := time.Unix(0, last).Sub(c.now()); ahead > 0 && ahead <= maxSkew {
		c.ahead.Add(int64(ahead))
	}
}

// watch warns about steps of the time of day, until ctx ends.
func (c *steadyClock) watch(ctx context.Context, every time.Duration, logger *slog.Logger) {
	repeat(ctx, every, func() { c.compare(logger) })
}

// repeat calls f at intervals until ctx ends.
func repeat(ctx context.Context, every time.Duration, f func()) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			f()
		}
	}
}

func (c *steadyClock) compare(logger *slog.Logger) {
	skew := c.wall().Round(0).Sub(c.now().Round(0))
	if (skew - c.skew).Abs() <= maxSkew {
		return
	}
	c.skew = skew
	logger.Warn("the time of day was stepped: the service keeps its own time until it is started again", "seconds", int64(skew.Seconds()))
}

// lastTime returns the time of the last entry of a log, or 0 if the log is empty.
func lastTime(ctx context.Context, store eventlog.Store, last uint64) (int64, error) {
	for entry, err := range store.Entries(ctx, last) {
		if err != nil {
			return 0, err
		}
		e, err := eventlog.Decode(entry)
		return e.Time, err
	}
	return 0, nil
}
