package host

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/eventlog/natslog/natstest"
)

// steps returns a clock whose time of day and monotonic time a test moves.
func steps(last int64) (c *steadyClock, wall *time.Time, elapsed *time.Duration, said *bytes.Buffer) {
	wall, elapsed, said = new(time.Time), new(time.Duration), new(bytes.Buffer)
	*wall = time.Unix(1_000_000, 0)
	c = &steadyClock{elapsed: func() time.Duration { return *elapsed }, wall: func() time.Time { return *wall }}
	c.set(wall.UnixNano())
	c.goOn(last)
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

// The service's time does not begin before the log's last event, unless that is far in the future. More than a minute
// between them is a gap.
func TestClockGoesOnFromTheLog(t *testing.T) {
	for last, want := range map[int64]struct{ now, gap int64 }{
		0: {1_000_000, 0}, 999_999: {1_000_000, 0}, 999_940: {1_000_000, 0}, 999_939: {1_000_000, 61},
		1_000_030: {1_000_030, 0}, 1_000_061: {1_000_000, -61},
	} {
		c, _, _, _ := steps(last * 1e9)
		now, gap := c.goOn(last * 1e9)
		if now != want.now*1e9 || c.now().Unix() != want.now || gap != time.Duration(want.gap)*time.Second {
			t.Errorf("after an event at %d it is %d, or %v, with a gap of %v, want %+v", last, now, c.now(), gap, want)
		}
	}
}

// A process that follows the log takes the time of the entries that it hears being written, whatever its time of day,
// and keeps it. Entries that arrive late, or are only read, do not set it back; a writer with another time does.
func TestClockFollowsTheEntries(t *testing.T) {
	c, wall, elapsed, said := steps(0)
	logger := slog.New(slog.NewTextHandler(said, nil))
	is := func(want int64) {
		t.Helper()
		expect.Equal(t, c.now().Unix(), want, "it is")
	}
	hear := func(entry int64, justNow bool) { c.hear(entry*1e9, justNow) }
	hear(500_000, false)
	is(1_000_000)
	hear(500_000, true)
	is(500_000)
	*elapsed += 10 * time.Second
	*wall = wall.Add(10 * time.Second)
	is(500_010)
	hear(500_005, true)
	is(500_010)
	hear(500_012, true)
	is(500_012)
	c.compare(logger)
	c.compare(logger)
	if n := strings.Count(said.String(), "this machine's clock differs from the log's"); n != 1 {
		t.Errorf("a clock that is 5 days ahead of the log's is reported %d times: %s", n, said)
	}
	c.hold()
	*elapsed += time.Second
	is(500_012)
	c.resume()
	is(500_013)
	hear(400_000, false)
	is(500_013)
	hear(400_000, true)
	is(400_000)
}

// withClock returns options of a service with a wrong time of day.
func withClock(off time.Duration) Options {
	return Options{Wall: func() time.Time { return time.Now().Round(0).Add(off) }}
}

// clocked makes decisions with windows of half an hour, under ids that begin with a word.
func (r *running) clocked(word string) {
	r.Helper()
	for i := range 20 {
		r.ask(201, "POST", "/v1/placements/home/decisions",
			fmt.Sprintf(`{"decision_id":"%s-%d","items":[{"id":"a","features":{"x":1}}]}`, word, i))
	}
}

// expires waits until a decision of the last placement expires, and so all other overdue ones.
func (r *running) expires(id string) {
	r.Helper()
	r.ask(201, "POST", "/v1/placements/short/decisions",
		fmt.Sprintf(`{"decision_id":"%s","items":[{"id":"a","features":{"x":1}}]}`, id))
	r.until("a decision with a window of a millisecond expires", func() bool {
		return strings.Contains(r.ask(200, "GET", "/v1/placements/short/decisions/"+id, ""), `"expired"`)
	})
}

// waiting checks how many decisions are open and held, and that no decision expired.
func (r *running) waiting(pending, held int) {
	r.Helper()
	s := new(api.Stats)
	fatal.If(r, json.Unmarshal([]byte(r.ask(200, "GET", "/v1/placements/home/stats", "")), s))
	if s.Held == nil {
		s.Held = new(api.Held)
	}
	if s.Expired+s.ExpiredEarly > 0 || s.Pending != pending || s.Held.Decisions != held {
		r.Errorf("%d have expired, %d are open and %d held, want %d and %d", s.Expired+s.ExpiredEarly, s.Pending,
			s.Held.Decisions, pending, held)
	}
}

func (r *running) places() {
	r.Helper()
	for name, window := range map[string]string{"home": "30m", "short": "1ms"} {
		r.ask(201, "PUT", "/v1/placements/"+name,
			fmt.Sprintf(`{"max_size":1,"features":[{"name":"x","kind":"number"}],"attribution_window":"%s"}`, window))
	}
}

const waitsOn = "decisions wait for their outcomes although their attribution windows are over"

// A service that is started while the time of day is a day ahead, and again when it is right, or after a day in which
// it was down, expires no decision before an outcome could be reported for as long as its window. It says so.
func TestNothingExpiresByAWrongClock(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	young := func(c *Config) { c.Retention.Age.Duration = 12 * time.Hour } // removes what a clock ahead takes for old
	r := runsWith(t, "", data, withClock(0), young)
	r.places()
	r.clocked("a")
	r.stop()
	for _, c := range []struct {
		off     time.Duration
		pending int
	}{{24 * time.Hour, 20}, {0, 39}, {-24 * time.Hour, 58}, {0, 77}} {
		r = runsWith(t, "", data, withClock(c.off), young)
		r.expires(fmt.Sprint("short", c.pending))
		r.waiting(c.pending, c.pending)
		expect.Equal(t, r.said(waitsOn), c.pending == 20 || c.pending == 77, "with the clock at", c.off,
			"it said otherwise")
		if text := r.ask(200, "GET", "/metrics", ""); !strings.Contains(text,
			fmt.Sprintf("\nvitrine_held_decisions{placement=\"home\"} %d\n", c.pending)) ||
			!strings.Contains(text, "\nvitrine_clock_skew_seconds ") {
			t.Error("/metrics does not say how many decisions are held, or how the clock is")
		} else {
			expect.Contains(t, text, "\nvitrine_log_first_entry 1\n",
				"entries are removed for an age that the clock may be wrong about")
		}
		expect.Contains(t, r.ask(200, "GET", "/v1/overview", ""), "The clock moved ", "its health")
		r.ask(204, "POST", fmt.Sprintf("/v1/placements/home/decisions/a-%d/outcome", c.pending%20), `{"choice":"a"}`)
		r.clocked(fmt.Sprint("after", c.pending))
		r.stop()
	}
}

// A service that stops after quiet hours, and starts again, takes the hours for no outage: no decision waits longer.
func TestQuietBeforeARestart(t *testing.T) {
	t.Parallel()
	data, start := t.TempDir(), time.Now()
	var quiet atomic.Int64
	options := Options{
		Wall:    func() time.Time { return time.Now().Round(0).Add(time.Duration(quiet.Load())) },
		Elapsed: func() time.Duration { return time.Since(start) + time.Duration(quiet.Load()) },
	}
	r := runsWith(t, "", data, options, nil)
	r.places()
	r.clocked("a")
	quiet.Store(int64(20 * time.Minute))
	r.stop()
	r = runsWith(t, "", data, options, nil)
	r.waiting(20, 0)
	r.stop()
	quiet.Add(int64(20 * time.Minute)) // an outage
	r = runsWith(t, "", data, options, nil)
	r.waiting(20, 20)
	r.stop()
}

// A process that follows the log while its time of day is a day ahead leads with the log's time, and expires no
// decision. If it heard no entry being written, it goes by its time of day, and the decisions wait on.
func TestFollowerHasAWrongClock(t *testing.T) {
	t.Parallel()
	for _, hears := range []bool{true, false} {
		t.Run(fmt.Sprint(hears), func(t *testing.T) {
			t.Parallel()
			log := natstest.URL(t)
			leader := runsWith(t, log, t.TempDir(), withClock(0), nil)
			leader.places()
			if !hears {
				leader.clocked("a")
			}
			follower := runsWith(t, log, t.TempDir(), withClock(24*time.Hour), nil)
			follower.until("it follows", func() bool { status, _ := follower.get("/readyz"); return status == 200 })
			if hears {
				leader.clocked("a")
				follower.until("it warns", func() bool {
					return follower.said("this machine's clock differs from " +
						"the log's")
				})
			}
			leader.stop()
			follower.until("it leads", func() bool { return follower.said("this process writes the log now") })
			follower.expires("again")
			held := 0
			if !hears {
				held = 20
			}
			follower.waiting(20, held)
			if follower.said(waitsOn) == hears {
				t.Error("it said otherwise")
			}
			follower.ask(204, "POST", "/v1/placements/home/decisions/a-7/outcome", `{"choice":"a"}`)
			d := new(api.Decision)
			fatal.If(t, json.Unmarshal([]byte(follower.ask(200, "GET", "/v1/placements/short/decisions/again", "")), d))
			if ahead := time.Until(d.Time); (ahead.Abs() < time.Hour) != hears {
				t.Errorf("its decisions are %v ahead", ahead)
			}
		})
	}
}
