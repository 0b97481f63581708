package state

import (
	"math"
)

// pace is the rate of new decisions in bytes a second,
//
//	Σ bytes · exp(−age/τ) / τ(1 − exp(−T/τ)),  τ a minute, T the time since the first one.
//
// It is measured by the times in the log, and is not part of the state.
type pace struct {
	first, last int64 // Unix nanoseconds
	bytes       float64
}

const paceSeconds = 60 // τ

// Add adds a decision of some bytes.
func (p *pace) Add(time int64, bytes int) {
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
func (p *pace) Seconds(bytes int) float64 {
	age := float64(p.last-p.first) / 1e9
	if age < 1 {
		return 0
	}
	return float64(bytes) / p.bytes * paceSeconds * -math.Expm1(-age/paceSeconds)
}
