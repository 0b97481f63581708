package engine

import (
	"fmt"
	"hash/maphash"
	"sync/atomic"
	"time"
	"vitrine/service/page"

	"vitrine/service/api"
	"vitrine/service/earnings"
	"vitrine/service/feature"
	"vitrine/service/learner"
	"vitrine/service/setup"
)

// facts are the part of a placement's state that a snapshot stores unchanged.
type facts struct {
	name      string
	born      uint64 // the entry that created it
	changed   uint64 // the last entry that changed its configuration
	learner   uint64 // the entry since which decisions have the rows of its learner
	canonical []byte // the configuration

	numbers  uint64    // the largest number of a decision
	learned  uint64    // the last entry passed to the learner
	rows     uint64    // the entry since which decisions have the present features
	versions []version // to roll back to, the oldest first
	standing uint64    // the version that is the learner's state, 0 if none is
	past     []string  // the reports of experiments that have ended, as canonical JSON
	earnings earnings.Earnings
	held     learner.Gap // rounds that the learners do not get while an alarm about sales is in force; After 0 holds none
}

// placement is the state of a placement.
type placement struct {
	facts
	charged    int64 // bytes, to the budget
	config     *setup.Config
	open       due
	closed     shelf
	departed   departed
	pace       pace
	sound      earnings.Soundness
	worker     *worker     // the learner that decides
	relearning *relearning // nil if none is under way
	former     []*worker   // those that decided before and have versions, in the order in which they retired
	experiment *experiment // nil if none runs
	items      stock
	upcoming   atomic.Uint64 // of live decisions: the largest number given out
	proposed   atomic.Uint64 // the same while the engine follows, in the numbers of its replica
	latency    latency
	insight    lastInsight
	view       atomic.Pointer[View] // for callers without the engine's lock, who add the current policies
}

// configure gives the placement a configuration, with what its categories have learned.
func (p *placement) configure(c *setup.Config, sequence uint64) {
	before := p.config
	if before == nil || !before.Schema().Equal(c.Schema()) {
		p.rows = sequence
	}
	if before != nil {
		c = c.Inherit(before)
	}
	if w := c.Watch(); before == nil || w != p.earnings.Guard.Watch {
		p.earnings.Watch(w, sequence)
		p.restartGuard(sequence)
	}
	p.config, p.canonical, p.changed, p.worker.config = c, c.Canonical(), sequence, c.Plain()
	p.worker.SetBound(c.Share())
	p.fallBack()
}

// turn begins an era.
func (p *placement) turn(sequence uint64, time int64, began string) {
	experiment := ""
	if p.config.Experiment != nil {
		experiment = p.config.Experiment.Name
	}
	p.earnings.Eras.Begin(sequence, time, began, p.config.Mode, experiment)
}

// see gives values of a category columns of their own.
func (p *placement) see(seen feature.Seen) error {
	c, err := p.config.Learn(seen)
	if err == nil {
		p.config, p.worker.config = c, c.Plain()
	}
	return err
}

// worker is a placement's learner, with the engine's record of it.
type worker struct {
	*learner.Learner
	config *setup.Config // of the placement, while the learner decides
	began  uint64        // the entry that began the learner
}

func newWorker(build learner.Build, c *setup.Config) (*worker, error) {
	l, err := learner.New(build, c)
	if err != nil {
		return nil, err
	}
	return &worker{Learner: l, config: c}, nil
}

// begin notes the entry at which the learner begins, before it has learned.
func (w *worker) begin(sequence uint64) {
	w.began = sequence
	w.Begin(sequence)
}

// all are the learners, the second one, and those of variants.
func (p *placement) all() []*worker { return append(p.lasting(), p.challengers()...) }

// lasting are the learners, and the second one.
func (p *placement) lasting() []*worker {
	if p.relearning != nil {
		return append(p.learners(), p.relearning.worker)
	}
	return p.learners()
}

// revision is the entry that changed the configuration last, or is changing it.
func (p *placement) revision() uint64 {
	if p.relearning != nil {
		return p.relearning.worker.began
	}
	return p.changed
}

// learners are the one that decides, and the former ones.
func (p *placement) learners() []*worker { return append([]*worker{p.worker}, p.former...) }

// View is a placement as it was after some log entry. A view never changes.
type View struct {
	page        page.View // without the policies, which are newer than the entry
	placement   *placement
	changed     uint64
	worker      *worker
	challengers []*worker // by variant; their configurations never change
	fallback    string    // decides instead of the policy; "" if nothing does
}

// Config returns the placement's configuration. The caller must not change it.
func (v *View) Config() *setup.Config { return v.page.Config }

// CatalogueSize bounds the memory that a request's catalogue candidates take while it is decided: see [page.View.CatalogueSize].
func (v *View) CatalogueSize(r *api.Request) int64 { return v.page.CatalogueSize(r) }

// current returns what a decision sees now: the view with the current policies.
func (v *View) current() *page.View {
	seen := v.page
	decides := v.worker.Current()
	if s := v.worker.Substitute(); s != nil && v.fallback == api.FallbackVersion {
		decides = s
	}
	seen.Policy.Policy, seen.Policy.Entry = decides.Policy, decides.Entry
	if v.challengers != nil {
		seen.Variants = make([]*page.Policy, len(v.challengers))
		for i, w := range v.challengers {
			if w != nil {
				decides := w.Current()
				seen.Variants[i] = &page.Policy{Policy: decides.Policy, Entry: decides.Entry, Config: w.config}
			}
		}
	}
	return &seen
}

// note records signs of an unsound policy in a decision.
func (p *placement) note(made *page.Decision) {
	if made.Clipped > 0 {
		p.sound.Clipped.Add(uint64(made.Clipped))
	}
	if made.Estimated {
		p.sound.Predicted(made.Usable)
	}
}

// tooSmall returns the error of an evicted decision.
func tooSmall(p *placement, id string) error {
	holds := ""
	if s := p.pace.Seconds(p.config.MemoryBytes); s > 0 {
		holds = fmt.Sprintf(" hold %.3g seconds of decisions at the present rate, and", s)
	}
	return fmt.Errorf("decision %q: %w: the %d bytes of %q%s must hold the attribution window of %s: make its memory larger",
		api.Abbreviate(id, setup.MaxDecision), ErrEvicted, p.config.MemoryBytes, p.name, holds, p.config.AttributionWindow)
}

// rememberedSince returns the time of the oldest ended decision in memory, or nil if the placement remembers all decisions.
func (p *placement) rememberedSince() *time.Time {
	if p == nil || len(p.closed.records) == 0 || p.earnings.Counts.Offered == uint64(len(p.open.heap)+len(p.closed.records)) {
		return nil
	}
	return new(time.Unix(0, p.closed.records[0].time).UTC())
}

// unknownDecision returns the error of a decision that is not remembered.
func unknownDecision(id string) error {
	return fmt.Errorf("decision %q: %w", api.Abbreviate(id, setup.MaxDecision), ErrNotFound)
}

// departed are the hashes of the last evicted and forgotten decisions of a placement, as a circle once it is full, so that a
// late outcome gets ErrEvicted. They are not part of the state: without them the error is ErrNotFound.
type departed struct {
	hashes []uint64
	has    map[uint64]bool
	next   int
}

const (
	evictedBytes = 64 // of a name: in the circle and in the map
)

var evictedSeed = maphash.MakeSeed()

// add adds a decision, in place of the oldest one if there are too many for a part of the placement's memory.
func (d *departed) add(id string, memory int) {
	if d.has == nil {
		d.has = map[uint64]bool{}
	}
	h := maphash.String(evictedSeed, id)
	if len(d.hashes) < memory/setup.EvictedShare/evictedBytes {
		d.hashes = append(d.hashes, h)
	} else {
		d.next %= len(d.hashes)
		delete(d.has, d.hashes[d.next])
		d.hashes[d.next] = h
		d.next++
	}
	d.has[h] = true
}

// knows reports whether a decision is known as evicted.
func (d *departed) knows(id string) bool { return d.has[maphash.String(evictedSeed, id)] }
