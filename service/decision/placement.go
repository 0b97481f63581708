package decision

import (
	"fmt"
	"hash/maphash"
	"sync/atomic"

	"vitrine/service/api"
	"vitrine/service/catalogue"
	"vitrine/service/feature"
	"vitrine/service/guard"
	"vitrine/service/tally"
	"vitrine/service/variants"
)

// placement is the state of a placement.
type placement struct {
	name      string
	born      uint64 // the entry that created it
	changed   uint64 // the last entry that changed its configuration
	charged   int64  // bytes, to the budget
	learner   uint64 // the entry since which decisions have the rows of its learner
	config    *Config
	canonical []byte

	numbers    uint64    // the largest number of a decision
	learned    uint64    // the last entry passed to the learner
	rows       uint64    // the entry since which decisions have the present features
	versions   []version // to roll back to, the oldest first
	standing   uint64    // the version that is the learner's state, 0 if none is
	open       due
	closed     shelf
	tally      tally.Tally
	pace       pace
	sound      guard.Soundness
	guard      guard.Guard
	worker     *worker     // the learner that decides
	relearning *relearning // nil if none is under way
	former     []*worker   // those that decided before and have versions, in the order in which they retired
	experiment *experiment // nil if none runs
	past       []string    // the reports of experiments that have ended, as canonical JSON
	items      stock
	upcoming   atomic.Uint64 // of live decisions: the largest number given out
	proposed   atomic.Uint64 // the same while the engine follows, in the numbers of its replica
	latency    latency
	insight    lastInsight
}

// configure gives the placement a configuration, with what its categories have learned.
func (p *placement) configure(c *Config, sequence uint64) {
	before := p.config
	if before == nil || !before.schema.Equal(c.schema) {
		p.rows = sequence
	}
	if before != nil {
		c = c.Inherit(before)
	}
	if w := c.watch(); before == nil || w != p.guard.Watch {
		p.guard.Watch = w
		p.restartGuard(sequence)
	}
	p.config, p.canonical, p.changed, p.worker.config = c, c.Canonical(), sequence, c.plain()
	p.worker.queue.setBound(c.share())
	p.fallBack()
}

// turn begins an era.
func (p *placement) turn(sequence uint64, time int64, began string) {
	experiment := ""
	if p.config.Experiment != nil {
		experiment = p.config.Experiment.Name
	}
	p.tally.Eras.Begin(sequence, time, began, p.config.Mode, experiment)
}

// see gives values of a category columns of their own.
func (p *placement) see(seen feature.Seen) error {
	c, err := p.config.Learn(seen)
	if err == nil {
		p.config, p.worker.config = c, c.plain()
	}
	return err
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

// view is a placement at the time that a decision is computed.
type view struct {
	*placement
	config      *Config
	changed     uint64
	worker      *worker
	items       *catalogue.Catalogue // nil if the placement that shares its own is not there
	routes      *variants.Routes     // nil without an experiment
	challengers []*worker            // by variant

	fallback string // that decides; "" for the policy

	follows bool   // whether what is decided is proposed to the leader
	replica uint64 // of the engine, if it follows
}

// number returns the number of a new decision.
func (v *view) number() uint64 {
	if v.follows {
		return v.replica<<replicaShift | v.proposed.Add(1)
	}
	return v.upcoming.Add(1)
}

// tooSmall returns the error of an evicted decision.
func tooSmall(p *placement, id string) error {
	holds := ""
	if s := p.pace.seconds(p.config.Memory); s > 0 {
		holds = fmt.Sprintf(" hold %.3g seconds of decisions at the present rate, and", s)
	}
	return fmt.Errorf("decision %q: %w: the %d bytes of %q%s must hold the attribution window of %s: make its memory larger",
		api.Abbreviate(id, maxDecision), ErrEvicted, p.config.Memory, p.name, holds, p.config.AttributionWindow)
}

// unknownDecision returns the error of a decision that is not remembered.
func unknownDecision(id string) error {
	return fmt.Errorf("decision %q: %w", api.Abbreviate(id, maxDecision), ErrNotFound)
}

// evictions are the names of the last evicted and forgotten decisions of each placement, so that a late
// outcome gets ErrEvicted. They are not part of the state: without them the error is ErrNotFound.
type evictions struct {
	seed maphash.Seed
	of   map[*placement]*ring
}

// ring holds the hashes of one placement, as a circle once it is full.
type ring struct {
	hashes []uint64
	has    map[uint64]bool
	next   int
}

const (
	evictedBytes = 64 // of a name: in the ring and in the map
	evictedShare = 16 // of the placement's memory
)

func newEvictions() evictions {
	return evictions{maphash.MakeSeed(), map[*placement]*ring{}}
}

func (v *evictions) add(p *placement, id string) {
	r := v.of[p]
	if r == nil {
		r = &ring{has: map[uint64]bool{}}
		v.of[p] = r
	}
	h := maphash.String(v.seed, id)
	if maximum := p.config.Memory / evictedShare / evictedBytes; len(r.hashes) < maximum {
		r.hashes = append(r.hashes, h)
	} else {
		r.next %= len(r.hashes)
		delete(r.has, r.hashes[r.next])
		r.hashes[r.next] = h
		r.next++
	}
	r.has[h] = true
}

// has reports whether a placement's decision is known as evicted.
func (v *evictions) has(p *placement, id string) bool {
	r := v.of[p]
	return r != nil && r.has[maphash.String(v.seed, id)]
}

func (v *evictions) forget(p *placement) { delete(v.of, p) }
