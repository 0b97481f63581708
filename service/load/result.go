package load

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"vitrine/service/api"
)

// Result is what was measured. Times are in milliseconds.
type Result struct {
	Asked       float64 `json:"asked_per_second"` // decisions; 0 is as fast as it goes: then latencies are those of a closed loop
	Achieved    float64 `json:"achieved_per_second"`
	Seconds     float64 `json:"seconds"` // from the first request to the last answer
	Decisions   Latency `json:"decisions"`
	Outcomes    Latency `json:"outcomes"`
	Purchases   int     `json:"purchases"` // among the outcomes
	Repeated    int     `json:"repeated"`  // decisions that were answered before, to an attempt whose answer was lost
	Retries     int     `json:"retries"`
	Unsent      int     `json:"unsent"`     // decisions that were due before the end, and found no connection
	Untold      int     `json:"untold"`     // outcomes that the end came before
	Unanswered  int     `json:"unanswered"` // requests that were under way when the run was interrupted
	Interrupted bool    `json:"interrupted"`

	Errors map[string]int `json:"errors"` // requests that failed, by kind: latencies are without them

	Late         Latency `json:"late"`                          // how late requests were sent for which a connection waited: the generator's own part of latencies
	GeneratorCPU float64 `json:"generator_cpu_us_per_decision"` // microseconds, with all that is asked beside; 0 where it is not known
	ServerCPU    float64 `json:"server_cpu_us_per_decision"`    // with outcomes and learning; 0 where the service does not tell
}

// Latency is a distribution of times in milliseconds.
type Latency struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p99_9"`
	Max   float64 `json:"max"`
}

// histogram has microseconds up to an hour, with three digits.
type histogram struct{ *hdrhistogram.Histogram }

func newHistogram() histogram { return histogram{hdrhistogram.New(1, time.Hour.Microseconds(), 3)} }

func (h histogram) add(d time.Duration) {
	_ = h.RecordValue(min(max(d.Microseconds(), 0), time.Hour.Microseconds())) // is in its range
}

func (h histogram) latency() Latency {
	at := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) / 1000 }
	if h.TotalCount() == 0 {
		return Latency{}
	}
	return Latency{h.TotalCount(), h.Mean() / 1000, at(50), at(90), at(99), at(99.9), float64(h.Max()) / 1000}
}

// tally counts what comes back.
type tally struct {
	mu                           sync.Mutex
	decisions, outcomes, late    histogram
	purchases, repeated, retries int
	unanswered                   int
	errors                       map[string]int
	last                         time.Time // answer
}

func newTally() *tally {
	return &tally{decisions: newHistogram(), outcomes: newHistogram(), late: newHistogram(), errors: map[string]int{}}
}

func (t *tally) decided(d time.Duration, now time.Time, repeated bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.decisions.add(d)
	t.last = now
	if repeated {
		t.repeated++
	}
}

func (t *tally) told(d time.Duration, bought bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.outcomes.add(d)
	if bought {
		t.purchases++
	}
}

func (t *tally) sentLate(d time.Duration) {
	t.mu.Lock()
	t.late.add(d)
	t.mu.Unlock()
}

func (t *tally) retried() {
	t.mu.Lock()
	t.retries++
	t.mu.Unlock()
}

func (t *tally) failed(err error) {
	t.mu.Lock()
	t.errors[kindOf(err)]++
	t.mu.Unlock()
}

func (t *tally) brokenOff() {
	t.mu.Lock()
	t.unanswered++
	t.mu.Unlock()
}

// Progress is how far a run is.
type Progress struct {
	Elapsed   time.Duration
	Decisions int64   // answered
	Failed    int     // requests
	P99       float64 // of decisions, milliseconds
}

func (t *tally) progress(elapsed time.Duration) Progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := Progress{Elapsed: elapsed, Decisions: t.decisions.TotalCount(), P99: t.decisions.latency().P99}
	for _, n := range t.errors {
		p.Failed += n
	}
	return p
}

// kindOf says what kind an error is, in few words.
func kindOf(err error) string {
	var p *api.Problem
	var timeout net.Error
	switch {
	case errors.As(err, &p) && p.Kind() != "":
		return strconv.Itoa(p.Status) + " " + p.Kind()
	case errors.As(err, &p):
		return strconv.Itoa(p.Status)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "connection broken"
	}
	return "other"
}
