// Package live measures a process while it serves. Measurements are no part of the state.
package live

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"vitrine/service/api"
)

const (
	firstTook  = 10e-6 // seconds
	growthTook = 1.2
	numTook    = 90 // up to two minutes
)

// Latency counts how long decisions take. Bucket b counts decisions that took at most firstTook·growth^b.
type Latency [numTook]atomic.Uint64

// Add adds a decision.
func (l *Latency) Add(took time.Duration) {
	b := math.Ceil(math.Log(took.Seconds()/firstTook) / math.Log(growthTook))
	l[int(min(max(b, 0), numTook-1))].Add(1)
}

// Report returns nil before the first decision.
func (l *Latency) Report() *api.Latency {
	var counts [numTook]uint64
	total := uint64(0)
	for b := range l {
		counts[b] = l[b].Load()
		total += counts[b]
	}
	if total == 0 {
		return nil
	}
	quantile := func(q float64) float64 {
		left := q * float64(total)
		for b, n := range counts {
			if left -= float64(n); left <= 0 {
				return firstTook * math.Pow(growthTook, float64(b))
			}
		}
		return firstTook * math.Pow(growthTook, numTook-1)
	}
	return &api.Latency{Decisions: total, P50: quantile(0.5), P95: quantile(0.95), P99: quantile(0.99)}
}

// Latencies holds each variant's latency, by name.
type Latencies map[string]*Latency

// NewLatencies returns empty latencies of the named variants.
func NewLatencies(names []string) Latencies {
	l := Latencies{}
	for _, name := range names {
		l[name] = new(Latency)
	}
	return l
}

// keptFor is how long a result of the last calls is given out again, in nanoseconds.
const keptFor = int64(3 * time.Second)

// Last is a result that takes long to compute. Callers who come while it is computed wait for it.
type Last[T any] struct {
	mu   sync.Mutex
	time int64
	has  bool
	made T
}

// At returns the last result, or makes another one if that is too old.
func (l *Last[T]) At(ctx context.Context, now int64, create func() (T, error)) (made T, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.has && now >= l.time && now-l.time < keptFor {
		return l.made, ctx.Err()
	}
	l.made, err = create()
	if l.has = err == nil; l.has {
		l.time = now
	}
	return l.made, err
}

// Pace is the rate of new decisions in bytes a second,
//
//	Σ bytes · exp(−age/τ) / τ(1 − exp(−T/τ)),  τ a minute, T the time since the first one.
//
// It is measured by the times in the log, and is not part of the state.
type Pace struct {
	first, last int64 // Unix nanoseconds
	bytes       float64
}

const paceSeconds = 60 // τ

// Add adds a decision of some bytes.
func (p *Pace) Add(time int64, bytes int) {
	if p.bytes == 0 {
		p.first, p.last = time, time
	}
	if later := float64(time-p.last) / 1e9; later > 0 {
		p.bytes *= math.Exp(-later / paceSeconds)
		p.last = time
	}
	p.bytes += float64(bytes)
}

// Seconds returns the time in which decisions of the given bytes come, 0 if it is not known.
func (p *Pace) Seconds(bytes int) float64 {
	age := float64(p.last-p.first) / 1e9
	if age < 1 {
		return 0
	}
	return float64(bytes) / p.bytes * paceSeconds * -math.Expm1(-age/paceSeconds)
}
