package decision

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"vitrine"
	"vitrine/bandit"
	"vitrine/service/api"
)

// What follows is not part of the state: it begins with the process.

// latency counts how long decisions take. Bucket b has those of at most firstTook·growth^b.
type latency [numTook]atomic.Uint64

const (
	firstTook  = 10e-6 // seconds
	growthTook = 1.2
	numTook    = 90 // up to two minutes
)

func (l *latency) add(took time.Duration) {
	b := math.Ceil(math.Log(took.Seconds()/firstTook) / math.Log(growthTook))
	l[int(min(max(b, 0), numTook-1))].Add(1)
}

// report returns nil before the first decision.
func (l *latency) report() *api.Latency {
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

// averaging is a policy that averages utility families.
type averaging interface{ Families() []bandit.Weight }

// familyPast has the weights of the families after some rounds. Of too many points every other one is dropped, and from then
// on only half as many are noted.
type familyPast struct {
	mu     sync.Mutex
	next   uint64 // rounds after which a point is noted
	stride uint64
	points []familyPoint
}

type familyPoint struct {
	learned uint64
	weights []bandit.Weight
}

const maxFamilyPoints = 128

// note notes the weights of a policy that has learned some rounds.
func (f *familyPast) note(pi vitrine.Policy, learned uint64) {
	a, ok := pi.(averaging)
	if !ok {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.points); n > 0 && learned < f.points[n-1].learned { // after a roll back
		f.next = learned
	}
	if learned < f.next {
		return
	}
	if f.stride = max(f.stride, 1); len(f.points) == maxFamilyPoints {
		for i := range maxFamilyPoints / 2 {
			f.points[i] = f.points[2*i]
		}
		f.points, f.stride = f.points[:maxFamilyPoints/2], 2*f.stride
	}
	f.points = append(f.points, familyPoint{learned, a.Families()})
	f.next = learned + f.stride
}

// report returns the weights by family.
func (f *familyPast) report() (list []api.FamilyHistory) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := map[string]int{}
	for _, p := range f.points {
		for _, w := range p.weights {
			i, ok := at[w.Family]
			if !ok {
				i = len(list)
				at[w.Family] = i
				list = append(list, api.FamilyHistory{Family: w.Family})
			}
			list[i].Points = append(list[i].Points, api.FamilyPoint{Learned: p.learned, Weight: w.Weight})
		}
	}
	return list
}
