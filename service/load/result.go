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

// Result holds the measurements of a run. Times are in milliseconds unless a field says otherwise.
type Result struct {
	Target      float64 `json:"target_per_second"` // decisions; 0 is a closed loop
	Achieved    float64 `json:"achieved_per_second"`
	Seconds     float64 `json:"seconds"` // from the first request to the last answer
	Decisions   Latency `json:"decisions"`
	Outcomes    Latency `json:"outcomes"`
	Purchases   int     `json:"purchases"`  // among the outcomes
	Repeated    int     `json:"repeated"`   // decisions with a lost first answer
	Retries     int     `json:"retries"`    // without those of net/http, after a connection that closed before an answer
	Unsent      int     `json:"unsent"`     // decisions that were due before the end but found no free connection
	Unreported  int     `json:"unreported"` // outcomes that were not reported before the end
	Unanswered  int     `json:"unanswered"` // requests in progress when the run was interrupted
	Interrupted bool    `json:"interrupted"`

	Errors map[string]int `json:"errors"` // failed requests by kind; latencies exclude them

	Late         Latency `json:"late"`                          // how late the generator sent requests although a connection was free; part of latencies
	GeneratorCPU float64 `json:"generator_cpu_us_per_decision"` // processor time of this process in microseconds, or 0 if unknown
	ServerCPU    float64 `json:"server_cpu_us_per_decision"`    // processor time of the service in microseconds, with outcomes and learning, or 0 if unknown
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

// histogram counts durations up to an hour in microseconds, to three significant digits.
type histogram struct{ *hdrhistogram.Histogram }

func newHistogram() histogram { return histogram{hdrhistogram.New(1, time.Hour.Microseconds(), 3)} }

func (h histogram) add(d time.Duration) {
	_ = h.RecordValue(min(max(d.Microseconds(), 0), time.Hour.Microseconds())) // always in range
}

func (h histogram) latency() Latency {
	at := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) / 1000 }
	if h.TotalCount() == 0 {
		return Latency{}
	}
	return Latency{h.TotalCount(), h.Mean() / 1000, at(50), at(90), at(99), at(99.9), float64(h.Max()) / 1000}
}

// tally counts answers.
type tally struct {
	mu                           sync.Mutex
	decisions, outcomes, late    histogram
	purchases, repeated, retries int
	unanswered                   int
	errors                       map[string]int
	last                         time.Time // of the last answer
}

func newTally() *tally {
	return &tally{decisions: newHistogram(), outcomes: newHistogram(), late: newHistogram(), errors: map[string]int{}}
}

func (t *tally) count(change func(*tally)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(t)
}

// Progress is the state of a run in progress.
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

// kindOf returns a short name for the kind of an error.
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
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF),
		errors.Is(err, io.ErrUnexpectedEOF):
		return "connection broken"
	}
	return "other"
}
