package state

import (
	"sync/atomic"

	"vitrine"
	"vitrine/service/api"
	"vitrine/service/budget"
	"vitrine/service/catalogue"
	"vitrine/service/earnings"
	"vitrine/service/earnings/abtest"
	"vitrine/service/eventlog"
	"vitrine/service/expiry"
	"vitrine/service/feature"
	"vitrine/service/learner"
	"vitrine/service/live"
	"vitrine/service/offer"
	"vitrine/service/page"
	"vitrine/service/past"
	"vitrine/service/setup"
)

// State is the fold of the log's entries. Only its single writer may call methods that change it. Readers take its
// lock, or use the published views.
type State struct {
	Build      func(setup.Spec) (vitrine.Learner, error)
	Published  atomic.Pointer[map[string]*Placement] // placements, for callers without the engine's lock
	Position   eventlog.Position                     // after the last entry applied
	machines   []string                              // kinds of machines that learned it, sorted: see SnapshotMachines
	BeginAgain bool                                  // learners with an unreadable saved state begin again
	Placements map[string]*Placement
	decisions  index              // the remembered decisions of all placements
	Offers     offer.Recent       // of the last of them
	run        func(learn func()) // starts a learner, which learns until it is stopped
	Log        eventlog.Log       // from which second learners learn; nil in audits
	First      atomic.Uint64      // the log's first entry when last asked for; not part of the state
	relearned  []relearned        // the second learners that there were

	Size        func(setup.Spec) (setup.Size, error) // of a learner; nil is unknown
	Budget      *budget.Budget
	Ready       *Prepared         // prepared for the next PlacementPut; if nil, put prepares it
	Refit       *catalogue.Refit  // made for the next change of features
	Lost        bool              // whether the log lacks entries that the next RelearningBegun reads
	Staged      *catalogue.Staged // the next ItemsChanged, already applied to the catalogue; if nil, Apply applies it
	pendingWake []*Worker         // workers with new rounds that have not been woken yet
}

// Named returns the placement of a name, or ErrNotFound.
func (s *State) Named(name string) (*Placement, error) {
	if p := s.Placements[name]; p != nil {
		return p, nil
	}
	return nil, UnknownPlacement(name)
}

// persisted is the part of a placement's state that a snapshot stores unchanged.
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

// Worker is a placement's learner, with the engine's record of it.
type Worker struct {
	*learner.Learner
	Config *setup.Config // of the placement, while the learner decides
	began  uint64        // the entry that began the learner
}

// version is a state of a learner to roll back to. The learner keeps the state itself.
type version struct {
	number  uint64 // the last entry that the learner was given
	learner *Worker
	routine bool // whether it was kept by the clock: such versions are dropped first
	note    string
	time    int64   // when it was kept
	taught  uint64  // see earnings.Guard.Taught
	rounds  uint64  // the placement's decisions that ended until then
	revenue float64 // their earnings
}

// relearning is a second learner of a placement, which learns from the log while the first one decides.
type relearning struct {
	Worker *Worker
	note   string // of the version of the first learner
	time   int64  // when it began
	lost   bool   // whether the log lost entries that it learns from
}

// relearned is a second learner that began with an entry, and learned from the log from another one on.
type relearned struct{ begun, from uint64 }

// experiment is a placement's experiment, and its learners.
type experiment struct {
	*abtest.Experiment
	owner   *Worker        // the placement's learner
	workers []*Worker      // by variant; nil for a variant without its own learner
	took    live.Latencies // of the decisions of each variant, in this process
}

// stock is the catalogue of a placement.
type stock struct {
	Of      *catalogue.Catalogue // nil before the first configuration
	schema  *feature.Schema      // of the configuration that it was last compared with
	charged int64                // bytes, to the budget
}

// Record is a remembered decision. Its offer is in the log, and is read when it is needed.
type Record struct {
	placement *Placement
	id        string
	Entry     uint64 // of the offer
	time      int64
	twin      *Record       // in the index
	extras    *recordExtras // fields of few decisions, usually nil; it does not change
	at        int           // in the expiry queue
	shown     uint16        // K
	choice    int16         // 0 or a position on the page, from 1 on; the first one of a basket
	Status    status
	mode      uint8                       // of the offer, until it ends
	marks     [numComparisons]abtest.Mark // in [Placement.comparisons], until it ends
}

// recordExtras holds the fields that few decisions need.
type recordExtras struct {
	passed   []bool  // which items shown are reported as not taken, or nil
	reported float64 // the sum of their rewards

	measured []eventlog.Measurement // for the metrics of an experiment, while it waits

	basket      eventlog.Basket // the outcome, unless it is just a choice
	corrections []correction    // of its outcome, in their order
}

// correction is a correction of a decision's outcome.
type correction struct {
	id        string
	place     int16   // of the item
	value     float64 // its contribution to the revenue
	withdraws bool    // the item counts as not taken
	adds      bool    // the outcome lacked the item, which counts as taken
}

type status uint8

const (
	open status = iota
	chosen
	expired
	Deferred  // waits to be activated
	withdrawn // not activated in time: teaches nothing
	evicted   // the memory was full: teaches nothing
	late      // its outcome came after the end: teaches nothing more
)

// closedRecords are the closed decisions of a placement, the one that closed first at its front.
type closedRecords struct {
	records []*Record
	bytes   int
}

// decisionKey names a decision.
type decisionKey struct {
	placement *Placement
	id        string
}

// index finds remembered decisions. Several placements may use the same id.
type index map[string]*Record // by id: the first of a chain of decisions with one id

// View is a placement as it was after some log entry. A view never changes.
type View struct {
	Page        page.View // without the policies, which are newer than the entry
	Placement   *Placement
	Changed     uint64
	Worker      *Worker
	Challengers []*Worker      // by variant; their configurations never change
	fallback    string         // decides instead of the policy, or ""
	took        live.Latencies // nil without an experiment
}

// Prepared is the learner and the memory of a PlacementPut, made before the writer runs.
type Prepared struct {
	Placement *Placement       // the changed placement, nil for a new one
	Changed   uint64           // the entry of its last change
	Worker    *Worker          // nil if the placement's learner goes on
	Variants  []*Worker        // of an experiment that begins: see BuildVariants
	Held      int64            // bytes reserved in the budget
	Refit     *catalogue.Refit // nil if the features of the items stay
	Spare     int64            // bytes reserved for the catalogue before Refit
	claimed   atomic.Bool
}
