package demo

import (
	"context"
	"math"
	"sync"
	"time"

	"vitrine/internal/wait"
)

// Speeds are multiples of real time, in which one shopper comes a second. 0 closes the door.
const (
	startSpeed = 50
	maxSpeed   = 1000
)

const (
	tick    = 10 * time.Millisecond  // how often shoppers come, several at once if the speed asks for it
	maxDebt = 100 * time.Millisecond // after a delay, at most the shoppers of this time come at once
	recent  = 2 * time.Second        // over which the speed is averaged, with exponential weights
)

// pace is how many shoppers come a second, and how many were served.
type pace struct {
	mu     sync.Mutex
	speed  float64
	served int     // since the last tick
	mean   float64 // a second, lately
}

func (p *pace) set(speed float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.speed = speed
}

// get returns the speed, and the one at which shoppers were served lately.
func (p *pace) get() (speed, served float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.speed, p.mean
}

// count notes that a shopper was served.
func (p *pace) count() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.served++
}

// advance returns how many shoppers are owed after some time, given those owed before.
func (p *pace) advance(owed float64, took time.Duration) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mean += (float64(p.served)/took.Seconds() - p.mean) * -math.Expm1(-took.Seconds()/recent.Seconds())
	p.served = 0
	return min(owed+p.speed*took.Seconds(), 1+p.speed*maxDebt.Seconds())
}

// arrivals sends the rounds from first on at the pace, until ctx ends.
func (p *pace) arrivals(ctx context.Context, first int, rounds chan<- int) {
	round, owed, last := first, 0.0, time.Now()
	for now := range wait.Every(ctx, tick) {
		if took := now.Sub(last); took > 0 {
			owed, last = p.advance(owed, took), now
		}
		for ; owed >= 1; owed-- {
			select {
			case rounds <- round:
				round++
			case <-ctx.Done():
				return
			}
		}
	}
}
