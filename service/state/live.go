package state

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

// latency counts how long decisions take. Bucket b counts decisions that took at most firstTook·growth^b.
type latency [numTook]atomic.Uint64

// Add adds a decision.
func (l *latency) Add(took time.Duration) {
	b := math.Ceil(math.Log(took.Seconds()/firstTook) / math.Log(growthTook))
	l[int(min(max(b, 0), numTook-1))].Add(1)
}

// Report returns nil before the first decision.
func (l *latency) Report() *api.Latency {
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

// insightAge is how long an insight is given out again, in nanoseconds.
const insightAge = int64(3 * time.Second)

// lastInsight is the last insight of a placement. Callers who come while one is computed wait for it.
type lastInsight struct {
	mu   sync.Mutex
	time int64
	made *api.Insight
}

// At returns the last insight, or makes another one if that is too old.
func (l *lastInsight) At(ctx context.Context, now int64, create func() (*api.Insight, error)) (_ *api.Insight, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.made != nil && now >= l.time && now-l.time < insightAge {
		return l.made, ctx.Err()
	}
	if l.made, err = create(); err != nil {
		l.made = nil
		return nil, err
	}
	l.time = now
	return l.made, nil
}
