package state

import (
	"sync/atomic"

	"vitrine/service/api"
	"vitrine/service/earnings"
	"vitrine/service/earnings/abtest"
	"vitrine/service/expiry"
	"vitrine/service/feature"
	"vitrine/service/learner"
	"vitrine/service/live"
	"vitrine/service/past"
	"vitrine/service/setup"
)

// facts are the part of a placement's state that a snapshot stores unchanged.
type persisted struct {
	Name      string
	born      uint64 // the entry that created it
	Changed   uint64 // the last entry that changed its configuration
	Learner   uint64 // the entry since which its learner's rows are in decisions
	canonical []byte // the configuration

	lastLogged     uint64    // the largest number of a decision
	learnedThrough uint64    // the last entry passed to the learner
	Rows           uint64    // the entry since which decisions use the present features
	versions       []version // to roll back to, the oldest first
	currentVersion uint64    // the version equal to the learner's state, or 0
	past           []string  // reports of ended experiments, canonical JSON
	Earnings       earnings.Earnings
	held           learner.Gap      // rounds withheld from the learners during an alarm about sales; After 0: no rounds
	outages        []learner.Outage // since Rows, the oldest first; it is replaced at each change
	changes        []uint64         // the last entries that changed it for an operator, or ended such a change, the oldest first
	alarms         earnings.Alarms
}

// Placement is the state of a placement.
type Placement struct {
	persisted
	Charged    int64 // bytes, to the budget
	Config     *setup.Config
	Open       expiry.Queue[*Record]
	closed     closedRecords
	evictedIDs live.IDs     // of the last decisions evicted and forgotten, so that a late outcome gets ErrEvicted; not part of the state
	memory     *past.Memory // of shoppers; nil without
	pace       live.Pace
	sound      earnings.Soundness
	Worker     *Worker            // the learner that decides
	Relearning *relearning        // nil outside a relearning
	former     []*Worker          // learners that decided before and still have versions, in the order of retirement
	Experiment *experiment        // nil outside an experiment
	Holdout    *abtest.Experiment // the comparison with the shoppers who are held out; nil without any
	divided    *setup.Config      // the last configuration of the hold-out
	Items      stock
	LastIssued atomic.Uint64 // of live decisions: the largest number given out
	Proposed   atomic.Uint64 // the same while the engine follows, in the numbers of its replica
	Latency    live.Latency
	Insight    live.Last[*api.Insight]
	Typical    live.Last[[]float64] // a row with the columns of the mean shopper lately; nil if unknown
	View       atomic.Pointer[View] // for callers without the engine's lock, which add the current policies
}

// turn begins an era.
func (p *Placement) turn(sequence uint64, time int64, began string) {
	experiment := ""
	if p.Config.Experiment != nil {
		experiment = p.Config.Experiment.Name
	}
	p.Earnings.Eras.Begin(sequence, time, began, p.Config.Mode, experiment)
}

// see gives values of a category columns of their own.
func (p *Placement) addValues(seen feature.Seen) error {
	c, err := p.Config.Learn(seen)
	if err == nil {
		p.Config, p.Worker.Config = c, c.Plain()
	}
	return err
}

// Revision is the entry that changed the configuration last, or is changing it.
func (p *Placement) Revision() uint64 {
	if p.Relearning != nil {
		return p.Relearning.Worker.began
	}
	return p.Changed
}

// all returns the placement's learner, its second learner and the variants' learners.
func (p *Placement) all() []*Worker { return append(p.lasting(), p.challengers()...) }

// lasting are the learners, and the second one.
func (p *Placement) lasting() []*Worker {
	if p.Relearning != nil {
		return append(p.Learners(), p.Relearning.Worker)
	}
	return p.Learners()
}

// Learners are the one that decides, and the former ones.
func (p *Placement) Learners() []*Worker { return append([]*Worker{p.Worker}, p.former...) }
