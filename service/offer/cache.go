package offer

import (
	"hash/maphash"
	"slices"
	"sync"
)

// CandidateCache holds the candidates and rules of the last decisions for which the log keeps only the items shown. It
// serves explanations, is not part of the state, and begins with the process. Each placement gets a ring of its own, so
// that a busy placement leaves room for the others.
type CandidateCache struct {
	seed  maphash.Seed
	rings [8]recentRing
}

// recentRing holds decisions, the oldest first.
type recentRing struct {
	mu      sync.Mutex
	list    []*Candidates
	numbers int
}

// Candidates is a decision with all its candidates.
type Candidates struct {
	Placement         string // "" if there is no decision
	Born              uint64 // of the placement
	Decision          string
	Number            uint64
	IDs               []string // with Features, Revenue and Shown empty if only the rules are kept
	Features, Revenue []float64
	Shown             []int32
	Rules             string
}

const (
	maxRecent        = 256
	maxRecentNumbers = 1 << 18 // of a ring: 2 MiB

	// MaxCandidates bounds the numbers in a decision's rows and revenues.
	MaxCandidates = 1 << 13
)

// NewCandidateCache returns an empty cache.
func NewCandidateCache() *CandidateCache { return &CandidateCache{seed: maphash.MakeSeed()} }

func (r *CandidateCache) ring(name string) *recentRing {
	return &r.rings[maphash.String(r.seed, name)%uint64(len(r.rings))]
}

func (w *Candidates) numbers() int { return len(w.Features) + len(w.Revenue) + len(w.Rules)/8 }

// Add adds the decision that was kept. The memory of an older one takes its place.
func (r *CandidateCache) Add(w *Candidates) {
	if w.Placement == "" {
		return
	}
	ring := r.ring(w.Placement)
	ring.mu.Lock()
	defer ring.mu.Unlock()
	added := *w
	*w = Candidates{}
	ring.list = append(ring.list, &added)
	ring.numbers += added.numbers()
	for len(ring.list) > maxRecent || ring.numbers > maxRecentNumbers {
		*w = *ring.list[0]
		ring.numbers -= w.numbers()
		ring.list = slices.Delete(ring.list, 0, 1)
	}
	w.Placement = ""
}

// Complete returns an offer with all its candidates and rules. Otherwise ok is false, and the offer is as before,
// except for rules that were kept without candidates.
func (r *CandidateCache) Complete(placement string, born uint64, o *Offer) (all *Offer, ok bool) {
	ring := r.ring(placement)
	ring.mu.Lock()
	defer ring.mu.Unlock()
	at := slices.IndexFunc(ring.list, func(w *Candidates) bool {
		return w.Placement == placement && w.Born == born && w.Decision == o.Decision && w.Number == o.Number &&
			(len(w.IDs) == 0 || len(w.Shown) == len(o.Shown))
	})
	if at < 0 {
		return o, false
	}
	w := ring.list[at]
	if len(w.IDs) == 0 {
		all = &Offer{Offered: o.Offered, Estimates: o.Estimates}
		all.Rules = w.Rules
		return all, false
	}
	for k, i := range w.Shown {
		if w.IDs[i] != o.ItemIDs[o.Shown[k]] {
			return o, false
		}
	}
	offered := *o.Offered
	offered.ItemIDs, offered.Features, offered.Shown = slices.Clone(w.IDs), slices.Clone(w.Features),
		slices.Clone(w.Shown)
	offered.Revenue = nil
	if len(w.Revenue) > 0 {
		offered.Revenue = slices.Clone(w.Revenue)
	}
	all = &Offer{Offered: &offered, Estimates: o.Estimates}
	all.Rules = w.Rules
	return all, true
}
