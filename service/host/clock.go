package host

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"vitrine/service/eventlog"
)

// steadyClock is the service's clock, which follows the system's monotonic clock. It starts at the time of day, or at
// the time of the log's last event if that is a little later. Stepping the time of day affects it only at the next
// start. While another process writes the log, its entries set the clock, and a process that heard them being written
// keeps following them when it becomes the writer, whatever its time of day.
type steadyClock struct {
	begin   atomic.Int64         // Unix nanoseconds, when elapsed was 0
	elapsed func() time.Duration // by the monotonic clock
	wall    func() time.Time     // the time of day
	last    atomic.Int64         // of the last entry that was heard, Unix nanoseconds
	heard   atomic.Bool          // whether another process's entries set the clock
	held    atomic.Bool          // whether it stands at the last entry
	jump    atomic.Int64         // nanoseconds from the log's last entry to where the clock went on, if that is long
	jumped  atomic.Int64         // when it went on, Unix nanoseconds
	skew    time.Duration        // between wall and now, when it was last reported
}

// maxSkew is the difference between the time of day and the service's that is not reported.
const maxSkew = time.Minute

// newClock makes a clock that starts at the time of day.
func newClock(wall func() time.Time, elapsed func() time.Duration) *steadyClock {
	c := &steadyClock{elapsed: elapsed, wall: wall}
	c.set(wall().UnixNano())
	return c
}

func (c *steadyClock) set(now int64) { c.begin.Store(now - int64(c.elapsed())) }

// running returns the time, even while the clock is held.
func (c *steadyClock) running() int64 { return c.begin.Load() + int64(c.elapsed()) }

func (c *steadyClock) now() time.Time {
	if c.held.Load() {
		return time.Unix(0, c.last.Load())
	}
	return time.Unix(0, c.running())
}

// hear takes the time of another process's entry. If the entry was written just now, its time is at most the present
// time, and the entry that arrives soonest after its writing is the best clock.
func (c *steadyClock) hear(entry int64, justNow bool) {
	c.last.Store(entry)
	if !justNow {
		return
	}
	if ahead := time.Duration(entry - c.running()); ahead > 0 || ahead < -maxSkew || !c.heard.Load() {
		c.set(entry)
		c.heard.Store(true)
	}
}

// hold stops the clock at the last entry that was heard, until resume lets it run: decisions wait for their outcomes
// meanwhile.
func (c *steadyClock) hold() { c.held.Store(true) }

func (c *steadyClock) resume() { c.held.Store(false) }

// goOn returns the time at which the clock goes on after the last event of a log, and by how much that is a gap in the
// log's time: 0 if it is a little one.
func (c *steadyClock) goOn(last int64) (now int64, gap time.Duration) {
	if now = c.running(); last == 0 {
		return now, 0
	}
	gap = time.Duration(now - last)
	switch {
	case gap < -maxSkew || gap > maxSkew:
		return now, gap
	case gap < 0:
		c.set(last)
		now = last
	}
	return now, 0
}

// doubt is how long a jump ahead may be the mistake of a clock.
const doubt = 24 * time.Hour

// sure returns the latest time that is certain: a jump ahead does not count on its first day. Use it for irreversible
// actions.
func (c *steadyClock) sure() time.Time {
	now := c.now()
	if now.UnixNano()-c.jumped.Load() < int64(doubt) {
		return now.Add(-time.Duration(c.jump.Load()))
	}
	return now
}

// compare warns about steps of the time of day.
func (c *steadyClock) compare(logger *slog.Logger) {
	skew := c.ahead()
	if (skew - c.skew).Abs() <= maxSkew {
		return
	}
	c.skew = skew
	if c.heard.Load() {
		logger.Warn("this machine's clock differs from the log's, which the service goes by: check the time "+
			"synchronisation of the machines", "seconds", int64(skew.Seconds()))
		return
	}
	logger.Warn("the time of day was stepped: the service keeps its own time until it is started again", "seconds",
		int64(skew.Seconds()))
}

// ahead returns by how much the time of day is ahead of the clock.
func (c *steadyClock) ahead() time.Duration { return time.Duration(c.wall().UnixNano() - c.running()) }

// lastTime returns the time of the last entry of a log, or 0 if the log is empty.
func lastTime(ctx context.Context, store eventlog.Log, last uint64) (int64, error) {
	for entry, err := range store.Entries(ctx, last) {
		if err != nil {
			return 0, err
		}
		e, err := eventlog.Decode(entry)
		return e.Time, err
	}
	return 0, nil
}
