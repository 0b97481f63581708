package decision

import (
	"hash/maphash"
	"slices"
	"sync"

	"vitrine/service/eventlog"
	"vitrine/service/offer"
)

// recent has the candidates and the rules of the last decisions. Of these the log keeps only the items shown. It is for
// explanations, not part of the state, and begins with the process. A placement's decisions are in one ring, so that a
// busy placement leaves most of the others theirs.
type recent struct {
	seed  maphash.Seed
	rings [8]recentRing
}

// recentRing has decisions, the oldest first.
type recentRing struct {
	mu      sync.Mutex
	list    []*whole
	numbers int
}

// whole is a decision with all its candidates.
type whole struct {
	placement         string // "" if there is no decision
	born              uint64 // of the placement
	decision          string
	number            uint64
	ids               []string
	features, revenue []float64
	shown             []int32
	rules             string
}

const (
	maxWhole         = 256
	maxRecentNumbers = 1 << 18 // of a ring: 2 MiB
	maxWholeNumbers  = 1 << 13 // of a decision
)

func newRecent() *recent { return &recent{seed: maphash.MakeSeed()} }

func (r *recent) ring(name string) *recentRing {
	return &r.rings[maphash.String(r.seed, name)%uint64(len(r.rings))]
}

func (w *whole) numbers() int { return len(w.features) + len(w.revenue) }

// keep notes a decision in d, unless the log has it whole or its candidates are too many.
func (d *decider) keep(v view, r *request, o *eventlog.Offered, order []int32) {
	w := &d.whole
	w.placement = ""
	n := r.len()
	if r.trial || v.config.Record == "all" || d.short != nil || n*(o.Width+1) > maxWholeNumbers {
		return
	}
	w.placement, w.born, w.decision, w.number, w.rules = v.name, v.born, o.Decision, d.estimates.Number, r.logged(v.config)
	w.ids = slices.Grow(w.ids[:0], n)
	for i := range n {
		w.ids = append(w.ids, r.id(i))
	}
	w.features = append(w.features[:0], d.rows[:n*o.Width]...)
	w.revenue = append(w.revenue[:0], r.revenue...)
	w.shown = append(w.shown[:0], order...)
}

// add adds the decision that was kept. The memory of an older one takes its place.
func (r *recent) add(w *whole) {
	if w.placement == "" {
		return
	}
	ring := r.ring(w.placement)
	ring.mu.Lock()
	defer ring.mu.Unlock()
	added := *w
	*w = whole{}
	ring.list = append(ring.list, &added)
	ring.numbers += added.numbers()
	for len(ring.list) > maxWhole || ring.numbers > maxRecentNumbers {
		*w = *ring.list[0]
		ring.numbers -= w.numbers()
		ring.list = slices.Delete(ring.list, 0, 1)
	}
	w.placement = ""
}

// complete returns an offer with all its candidates and rules. ok is false, and the offer as it was, if they are not here.
func (r *recent) complete(p *placement, o *offer.Offer) (all *offer.Offer, ok bool) {
	ring := r.ring(p.name)
	ring.mu.Lock()
	defer ring.mu.Unlock()
	at := slices.IndexFunc(ring.list, func(w *whole) bool {
		return w.placement == p.name && w.born == p.born && w.decision == o.Decision && w.number == o.Number && len(w.shown) == len(o.Shown)
	})
	if at < 0 {
		return o, false
	}
	w := ring.list[at]
	for k, i := range w.shown {
		if w.ids[i] != o.ItemIDs[o.Shown[k]] {
			return o, false
		}
	}
	offered := *o.Offered
	offered.ItemIDs, offered.Features, offered.Shown = slices.Clone(w.ids), slices.Clone(w.features), slices.Clone(w.shown)
	offered.Revenue = nil
	if len(w.revenue) > 0 {
		offered.Revenue = slices.Clone(w.revenue)
	}
	all = &offer.Offer{Offered: &offered, Estimates: o.Estimates}
	all.Rules = w.rules
	return all, true
}
