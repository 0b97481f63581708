package host

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// steps is a clock whose time of day and monotonic time a test moves.
func steps(last int64) (c *steadyClock, wall *time.Time, elapsed *time.Duration, said *bytes.Buffer) {
	wall, elapsed, said = new(time.Time), new(time.Duration), new(bytes.Buffer)
	*wall = time.Unix(1_000_000, 0)
	c = &steadyClock{begin: *wall, elapsed: func() time.Duration { return *elapsed }, wall: func() time.Time { return *wall }}
	c.begin = c.after(last, slog.New(slog.NewTextHandler(said, nil)))
	return c, wall, elapsed, said
}

// Setting the time of day does not change the service's time, and each step is reported once.
func TestClockIsStepped(t *testing.T) {
	c, wall, elapsed, said := steps(0)
	logger := slog.New(slog.NewTextHandler(said, nil))
	pass := func(of, day time.Duration) {
		*elapsed += of
		*wall = wall.Add(day)
		c.compare(logger)
		c.compare(logger)
	}
	pass(time.Hour, time.Hour+time.Second)
	if said.Len() > 0 {
		t.Errorf("without a step: %s", said)
	}
	pass(time.Second, 365*24*time.Hour)
	pass(time.Second, time.Second)
	if n := strings.Count(said.String(), "stepped"); n != 1 {
		t.Errorf("a step of a year is reported %d times:\n%s", n, said)
	}
	if got, want := c.now(), time.Unix(1_003_602, 0); !got.Equal(want) {
		t.Errorf("after a step of a year it is %v, want %v", got, want)
	}
	pass(time.Second, -365*24*time.Hour)
	if n := strings.Count(said.String(), "stepped"); n != 2 {
		t.Errorf("after the step back %d were reported:\n%s", n, said)
	}
}

// The service's time does not begin before the log's last event, unless that is far in the future.
func TestClockGoesOnFromTheLog(t *testing.T) {
	for last, want := range map[int64]int64{0: 1_000_000, 999_999: 1_000_000, 1_000_030: 1_000_030, 1_000_061: 1_000_000} {
		c, _, _, said := steps(last * 1e9)
		if got := c.now().Unix(); got != want {
			t.Errorf("after an event at %d it is %d, want %d", last, got, want)
		}
		if warned := said.Len() > 0; warned != (last > 1_000_060) {
			t.Errorf("after an event at %d: %q", last, said)
		}
	}
}
