package host

import (
	"context"
	"log/slog"
	"time"

	"vitrine/service/eventlog"
)

// steadyClock is the service's time. It begins with the time of day, or with that of the log's last event where
// the log is a little ahead, and goes on as the system's monotonic clock does. So a step of the time of
// day expires no decisions and removes no entries; it counts from the next start on.
type steadyClock struct {
	begin   time.Time            // of the service's time
	elapsed func() time.Duration // since then, by the monotonic clock
	wall    func() time.Time     // the time of day
	skew    time.Duration        // the last one that was told
}

// largestSkew is how far the time of day may be from the service's without a word.
const largestSkew = time.Minute

// newClock makes a clock that goes on from the log's last event at a time, 0 for none. wall is the time of day.
func newClock(last int64, wall func() time.Time, logger *slog.Logger) *steadyClock {
	start := time.Now()
	c := &steadyClock{begin: wall(), elapsed: func() time.Duration { return time.Since(start) }, wall: wall}
	c.begin = c.after(last, logger)
	return c
}

// after returns when the service's time begins.
func (c *steadyClock) after(last int64, logger *slog.Logger) time.Time {
	ahead := time.Unix(0, last).Sub(c.begin)
	switch {
	case ahead <= 0:
		return c.begin
	case ahead <= largestSkew:
		return c.begin.Add(ahead)
	}
	logger.Warn("the log's last event is in the future: the clock was ahead then, or is behind now", "seconds", int64(ahead.Seconds()))
	return c.begin
}

func (c *steadyClock) now() time.Time { return c.begin.Add(c.elapsed()) }

// watch warns about steps of the time of day, until ctx ends.
func (c *steadyClock) watch(ctx context.Context, every time.Duration, logger *slog.Logger) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			c.compare(logger)
		}
	}
}

func (c *steadyClock) compare(logger *slog.Logger) {
	skew := c.wall().Round(0).Sub(c.now().Round(0))
	if (skew - c.skew).Abs() <= largestSkew {
		return
	}
	c.skew = skew
	logger.Warn("the time of day was stepped: the service keeps its own time until it is started again", "seconds", int64(skew.Seconds()))
}

// lastTime returns the time of the last entry of a log, 0 of an empty one.
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
