package demo

import (
	"context"
	"sync"
	"time"
)

// Speeds are multiples of real time, in which one shopper comes a second. 0 closes the door.
const (
	startSpeed = 50
	maxSpeed   = 1000
)

// maxDebt bounds how many shoppers come at once after a delay: those of this time.
const maxDebt = 100 * time.Millisecond

// pace is how many shoppers come a second, and how many were served.
type pace struct {
	mu      sync.Mutex
	speed   float64
	changed chan struct{} // closed when speed changes
	served  [numBins]bin
}

// bin counts the shoppers who were served in a quarter of a second.
type bin struct {
	at int64 // since 1970, in widths of a bin
	n  int
}

const (
	numBins  = 9 // of which one is in progress
	binWidth = 250 * time.Millisecond
)

func (p *pace) set(speed float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.speed = speed
	if p.changed != nil {
		close(p.changed)
	}
	p.changed = make(chan struct{})
}

func (p *pace) get() (speed float64, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.speed, p.changed
}

// count notes that a shopper was served.
func (p *pace) count() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now().UnixNano() / int64(binWidth)
	b := &p.served[now%numBins]
	if b.at != now {
		*b = bin{at: now}
	}
	b.n++
}

// real returns the speed of the last two seconds.
func (p *pace) real() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, n := time.Now().UnixNano()/int64(binWidth), 0
	for _, b := range p.served {
		if b.at < now && b.at >= now-(numBins-1) {
			n += b.n
		}
	}
	return float64(n) / ((numBins - 1) * binWidth.Seconds())
}

// arrivals sends the rounds from first on at the pace, until ctx ends.
func (p *pace) arrivals(ctx context.Context, first int, rounds chan<- int) {
	last := time.Now()
	for round := first; ; round++ {
		for {
			at, ok := p.wait(ctx, last)
			if ctx.Err() != nil {
				return
			}
			if last = at; ok {
				break
			}
		}
		select {
		case rounds <- round:
		case <-ctx.Done():
			return
		}
	}
}

// wait waits until the shopper after the one who came last, and returns the time when it was due; ok is false if the
// speed changed meanwhile.
func (p *pace) wait(ctx context.Context, last time.Time) (due time.Time, ok bool) {
	speed, changed := p.get()
	now := time.Now()
	var ready <-chan time.Time
	if speed > 0 {
		if due = last.Add(time.Duration(float64(time.Second) / speed)); due.Before(now.Add(-maxDebt)) {
			due = now.Add(-maxDebt)
		}
		timer := time.NewTimer(due.Sub(now))
		defer timer.Stop()
		ready = timer.C
	}
	select {
	case <-ready:
		return due, true
	case <-changed:
	case <-ctx.Done():
	}
	return time.Now(), false
}
