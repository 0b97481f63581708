package eventlog

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"vitrine/internal/fields"
)

// Event is a fact of the decision service. One event is one entry of the log.
type Event struct {
	Time      int64  // Unix nanoseconds
	Placement string // the placement that makes the offers; each has its own learner
	By        string // name of the API key whose holder asked for it; "" without keys, and of events that nobody asks for
	Body      Body
}

// Body is the content of an event: a pointer to one of the types that Bodies lists.
type Body interface {
	fields(*fields.Fields)
}

// checked is a body that can be invalid.
type checked interface{ check() error }

// PlacementPut creates a placement or changes it.
type PlacementPut struct {
	Config []byte // canonical JSON
}

// PlacementDeleted removes a placement and everything it learned.
type PlacementDeleted struct{}

// Offered is a decision, logged before it is answered. It holds everything needed to learn from the decision, to
// evaluate other policies with it, and to repeat the answer to the same request.
type Offered struct {
	Decision    string    // its identity, unique within the placement
	Request     [32]byte  // HighwayHash-256 of the canonical request
	Candidates  int       // N, the number of items in the request
	ItemIDs     []string  // ids of the n rows: all N candidates, or the ones that the engine keeps
	Width       int       // d, the number of features per item
	Features    []float64 // n×d by rows, finite; row i belongs to ItemIDs[i]
	Revenue     []float64 // n, finite and ≥ 0; nil means 1 for every item
	Shown       []int32   // positions in ItemIDs, in display order, each once
	Propensity  float64   // probability of the assortment, in (0, 1]; 0 without a closed form
	PolicyEntry uint64    // number of rounds or snapshots that the policy has seen, as the engine defines
	Mode        uint8     // how the assortment was found, as the engine defines
	Answer      []byte    // rest of the answer, in the engine's encoding
}

// Chosen is a decision's outcome.
type Chosen struct {
	Decision  string
	Choice    int32  // 0 for the outside option, k for the k-th item of Offered.Shown; the first one of a basket
	Basket    Basket // all items taken; nil for no item, and for one unit of one item at its revenue
	Unlearned bool   // whether the learner was too far behind to learn from it
}

// Basket lists the items that were taken from a page, by increasing places.
type Basket []Take

// Take is an item that was taken from a page.
type Take struct {
	Place    int32   // in Offered.Shown, from 1 on
	Quantity int32   // units taken, from 1 to MaxQuantity
	Value    float64 // what all units earned together, finite and ≥ 0
}

// MaxQuantity is the largest number of units of an item in a basket.
const MaxQuantity = 1000

// Earned returns the earnings of all units.
func (b Basket) Earned() (sum float64) {
	for _, t := range b {
		sum += t.Value
	}
	return sum
}

// Check returns an error if the basket does not begin with the choice, or is impossible on a page of the given number
// of items. A nil basket is valid.
func (b Basket) Check(choice int32, shown int) error {
	if b != nil && (len(b) == 0 || b[0].Place != choice) {
		return fmt.Errorf("the basket %v does not begin with the choice, item %d", b, choice)
	}
	last := int32(0)
	for _, t := range b {
		if t.Place <= last || int(t.Place) > shown || t.Quantity < 1 || t.Quantity > MaxQuantity ||
			!(t.Value >= 0 && t.Value <= math.MaxFloat64) {
			return fmt.Errorf("a basket has %d units of item %d of %d, after item %d, for %v", t.Quantity, t.Place,
				shown, last, t.Value)
		}
		last = t.Place
	}
	return nil
}

// Fields encodes or decodes a basket.
func (b *Basket) Fields(f *fields.Fields) {
	fields.List(f, (*[]Take)(b), func(t *Take, f *fields.Fields) {
		f.Place(&t.Place)
		f.Place(&t.Quantity)
		f.Float(&t.Value)
	})
}

// Expired ends the wait for a decision's outcome.
type Expired struct {
	Decision  string
	Unlearned bool // whether the learner was too far behind to learn from it
}

// Evicted ends the wait for a decision's outcome early, because the memory for open decisions is full. Learners ignore
// the decision.
type Evicted struct {
	Decision string
}

// VersionSaved makes a learner keep its state as a version to roll back to.
type VersionSaved struct {
	Version uint64
	Note    string // why; "" if the service keeps one from time to time
}

// LearnerReset changes a placement and restarts its learner. The previous learner's state is kept as a version.
type LearnerReset struct {
	Config []byte // canonical JSON
	Note   string // note for the kept version
}

// LearnerRolledBack returns to a version. The previous state is kept as a version. Config is the placement's new
// configuration, or empty if the version belongs to the learner that already decides.
type LearnerRolledBack struct {
	Version uint64
	Config  []byte // canonical JSON
	Note    string // note for the kept version
}

// RelearningBegun gives a placement a second learner with another configuration. The second learner catches up on the
// placement's log from an entry on while the first one decides.
type RelearningBegun struct {
	Config []byte // canonical JSON
	From   uint64 // first entry to learn from
	Note   string // note for the version kept of the first learner
}

// LearnerSwapped completes a relearning: the second learner decides from then on, with its configuration. The first
// learner's state is kept as a version.
type LearnerSwapped struct {
	Config []byte // canonical JSON
}

// RelearningEnded abandons a relearning. The first learner continues.
type RelearningEnded struct {
	Reason string
}

// Activated says that a deferred decision's items were shown, so that its outcome can arrive.
type Activated struct {
	Decision string
}

// ItemsDeclined says that some of the shown items were not taken, while others still may be.
type ItemsDeclined struct {
	Decision string
	Items    []int32 // places in Offered.Shown, from 1 on, in increasing order
	Reward   float64 // total of the rewards reported for them, in [0, 1]
}

// Measured reports measurements of a decision that waits for its outcome, for the metrics of an experiment. They
// replace earlier ones of the same names.
type Measured struct {
	Decision string
	List     []Measurement // by name, in increasing order
}

// Measurement is a value of a metric.
type Measurement struct {
	Name  string
	Value float64 // finite
}

// ItemsChanged puts items into a placement's catalogue and deletes others. It also records how to undo the change, so
// that a reader who holds the catalogue can recover earlier versions.
type ItemsChanged struct {
	Put     []string // records in the catalogue's encoding
	Deleted []string // ids of deleted items
	Before  uint64   // entry of the previous change, 0 for an empty catalogue
	Undo    []string // undoes each of Put, then each of Deleted, in the catalogue's encoding; "" for a new item
}

// CategoryValuesAdded gives the next values of a category columns of their own, in order.
type CategoryValuesAdded struct {
	Feature string
	Values  []string
}

// AlarmCleared ends the alarm of a placement's guard. All says that the learner also learns from the decisions in
// doubt.
type AlarmCleared struct{ All bool }

// Corrected changes the recorded earnings of a decision that no longer waits for an outcome: the outcome came too late,
// or the caller corrects it, for example after a return of goods. Learners ignore it. It holds everything that the sums
// need, because the decision may be forgotten and its offer removed from the log.
type Corrected struct {
	Decision   string
	Correction string   // caller's id of the correction; "" for a late outcome
	Entry      uint64   // log entry of the offer
	Made       int64    // time of the offer, in Unix nanoseconds
	Mode       uint8    // mode of the offer
	Variant    string   // experiment variant of the offer; "" without an experiment
	Shopper    string   // name in the log of the offer's shopper; "" if unknown
	Shown      []string // ids in display order
	Choice     int32    // 0 for the outside option, k for the k-th item of Shown; the first one of a basket
	Basket     Basket   // late outcomes only: as in Chosen
	Adds       bool     // corrections only: whether the outcome lacked the item, which counts as taken from now on
	Others     int      // corrections only: number of other items that still count as taken
	Before     float64  // earnings before the correction
	Value      float64  // change of the earnings
	Withdraws  bool     // whether the item now counts as not taken and as earning 0
	Counts     bool     // whether an evicted or withdrawn decision counts as a round again
	Viewed     bool     // whether that decision was deferred, so that only this outcome tells that its page was shown
	InTime     bool     // corrections only: whether the outcome came within the attribution window
	Bound      float64  // with InTime only: most that the decision may count in an experiment, at least its outcome
	Unit       uint64   // with InTime only: hash of the offer's unit, 0 without an experiment and a hold-out
	Segment    string   // with InTime only: the shopper's segment in the experiment, or ""
}

// Takes returns the items whose earnings change, and by how much.
func (c *Corrected) Takes() Basket {
	switch {
	case c.Basket != nil:
		return c.Basket
	case c.Choice == 0:
		return nil
	}
	return Basket{{c.Choice, 1, c.Value}}
}

// Purchases returns the change in the number of pages with a purchase: 1, 0 or -1.
func (c *Corrected) Purchases() int {
	if c.Others > 0 {
		return 0
	}
	return c.Taken()
}

// Taken returns how many times more each item of Takes counts as taken: 1, 0 or -1.
func (c *Corrected) Taken() int {
	switch {
	case c.Withdraws:
		return -1
	case c.Adds, c.Correction == "" && c.Choice > 0:
		return 1
	}
	return 0
}

// LearnerAdopted ends an experiment: the learner of one of its variants decides from then on. The state of the
// placement's own learner is kept as a version.
type LearnerAdopted struct {
	Config  []byte // canonical JSON
	Variant string
	Note    string // note for the kept version
}

// ClockMoved records a gap between the service's clock and the log's last entry: the service was down, so that outcomes
// could not be reported, or the clock is or was wrong. The attribution windows of the placement's open decisions move
// with the clock. A service that stops after a quiet time records 0 in one placement: until then it ran, so that the
// quiet time is no gap.
type ClockMoved struct {
	By int64 // nanoseconds; negative if the clock was moved back
}

// bodies creates an empty body of each kind, the byte for an event type. Kinds are never reused.
var bodies = [...]func() Body{
	1:  func() Body { return new(PlacementPut) },
	2:  func() Body { return new(PlacementDeleted) },
	3:  func() Body { return new(Offered) },
	4:  func() Body { return new(Chosen) },
	5:  func() Body { return new(Expired) },
	6:  func() Body { return new(Evicted) },
	7:  func() Body { return new(Activated) },
	8:  func() Body { return new(ItemsDeclined) },
	9:  func() Body { return new(Measured) },
	10: func() Body { return new(Corrected) },
	11: func() Body { return new(ItemsChanged) },
	12: func() Body { return new(VersionSaved) },
	13: func() Body { return new(LearnerReset) },
	14: func() Body { return new(LearnerRolledBack) },
	15: func() Body { return new(RelearningBegun) },
	16: func() Body { return new(LearnerSwapped) },
	17: func() Body { return new(RelearningEnded) },
	18: func() Body { return new(LearnerAdopted) },
	19: func() Body { return new(CategoryValuesAdded) },
	20: func() Body { return new(AlarmCleared) },
	21: func() Body { return new(ClockMoved) },
}

// kinds maps each body type to its kind.
var kinds = func() map[reflect.Type]byte {
	m := map[reflect.Type]byte{}
	for k, body := range bodies[1:] {
		m[reflect.TypeOf(body())] = byte(k + 1)
	}
	return m
}()

// IsCommand reports whether an operator asked for the event, so that its entry says who did.
func IsCommand(b Body) bool {
	switch b := b.(type) {
	case *VersionSaved:
		return b.Note != ""
	case *PlacementPut, *PlacementDeleted, *LearnerReset, *LearnerRolledBack, *RelearningBegun, *LearnerAdopted,
		*AlarmCleared, *ItemsChanged:
		return true
	}
	return false
}

// Name returns the name of an event's kind, such as "Offered".
func Name(b Body) string { return strings.TrimPrefix(fmt.Sprintf("%T", b), "*eventlog.") }

// Word returns the name of an event's kind on the wire, such as "placement-put".
func Word(b Body) string { return words[reflect.TypeOf(b)] }

var words = func() map[reflect.Type]string {
	m, inner := map[reflect.Type]string{}, regexp.MustCompile(`\B[A-Z]`)
	for _, b := range Bodies() {
		m[reflect.TypeOf(b)] = strings.ToLower(inner.ReplaceAllString(Name(b), "-$0"))
	}
	return m
}()

// Bodies returns an empty body of each event type, in the order of their kinds.
func Bodies() (all []Body) {
	for _, body := range bodies[1:] {
		all = append(all, body())
	}
	return all
}

// Check returns an error if the event must not enter a log. Encode and Decode call it.
func (e *Event) Check() error {
	if e.Placement == "" {
		return errors.New("an event without a placement")
	}
	if e.Body == nil {
		return errors.New("an event without a body")
	}
	if e.By != "" && !IsCommand(e.Body) {
		return fmt.Errorf("an event of the kind %s says who asked for it", Name(e.Body))
	}
	if b, ok := e.Body.(checked); ok {
		return b.check()
	}
	return nil
}

func (p *PlacementPut) check() error { return checkConfig(p.Config) }

// Configuration returns the placement's new configuration, or nil if the event does not change it.
func (e *Event) Configuration() []byte {
	switch b := e.Body.(type) {
	case *PlacementPut:
		return b.Config
	case *LearnerReset:
		return b.Config
	case *LearnerSwapped:
		return b.Config
	case *LearnerRolledBack:
		return b.Config
	case *LearnerAdopted:
		return b.Config
	}
	return nil
}

func checkConfig(config []byte) error {
	if len(config) == 0 {
		return errors.New("a placement without its configuration")
	}
	return nil
}

func checkDecision(what, decision string) error {
	if decision == "" {
		return errors.New(what + " without a decision's identity")
	}
	return nil
}

// maxSide bounds N and d, so that their product does not overflow.
const maxSide = math.MaxInt32

func (o *Offered) check() error {
	n := len(o.ItemIDs)
	switch {
	case o.Decision == "":
		return errors.New("an offer without a decision's identity")
	case o.Candidates < n || o.Candidates > maxSide:
		return fmt.Errorf("offer %q has %d rows of %d candidates", o.Decision, n, o.Candidates)
	case o.Width < 0 || o.Width > maxSide || int64(len(o.Features)) != int64(n)*int64(o.Width):
		return fmt.Errorf("offer %q has %d features, want %d rows of %d", o.Decision, len(o.Features), n, o.Width)
	case o.Revenue != nil && (len(o.Revenue) != n || n == 0):
		return fmt.Errorf("offer %q has %d revenues of %d items", o.Decision, len(o.Revenue), n)
	case !(o.Propensity >= 0 && o.Propensity <= 1):
		return fmt.Errorf("offer %q has the propensity %v, want one in [0, 1]", o.Decision, o.Propensity)
	}
	for i, x := range o.Features {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("offer %q, item %d: feature %d is %v", o.Decision, i/o.Width, i%o.Width, x)
		}
	}
	for i, r := range o.Revenue {
		if !(r >= 0 && r <= math.MaxFloat64) {
			return fmt.Errorf("offer %q, item %d: revenue is %v, want a finite one of at least 0", o.Decision, i, r)
		}
	}
	return o.checkShown()
}

// checkShown looks for duplicates. For few items it needs no map.
func (o *Offered) checkShown() error {
	seen := slices.Clone(o.Shown)
	slices.Sort(seen)
	for i, p := range seen {
		if p < 0 || int(p) >= len(o.ItemIDs) {
			return fmt.Errorf("offer %q shows item %d of %d", o.Decision, p, len(o.ItemIDs))
		}
		if i > 0 && p == seen[i-1] {
			return fmt.Errorf("offer %q shows item %d twice", o.Decision, p)
		}
	}
	return nil
}

func (c *Chosen) check() error {
	if c.Decision == "" {
		return errors.New("a choice without a decision's identity")
	}
	if c.Choice < 0 {
		return fmt.Errorf("the choice of decision %q is %d, want 0 for the outside option or the place of an "+
			"item, from 1 on", c.Decision, c.Choice)
	}
	if err := c.Basket.Check(c.Choice, math.MaxInt32); err != nil {
		return fmt.Errorf("decision %q: %w", c.Decision, err)
	}
	return nil
}

func (e *Expired) check() error { return checkDecision("an expiry", e.Decision) }

func (e *Evicted) check() error { return checkDecision("an eviction", e.Decision) }

func (v *CategoryValuesAdded) check() error {
	if v.Feature == "" || len(v.Values) == 0 {
		return fmt.Errorf("feature %q has %d new values, want a feature and at least one value",
			v.Feature, len(v.Values))
	}
	return nil
}

func (l *LearnerReset) check() error { return checkConfig(l.Config) }

func (r *RelearningBegun) check() error {
	if r.From == 0 {
		return errors.New("a relearning from no entry on")
	}
	return checkConfig(r.Config)
}

func (l *LearnerSwapped) check() error { return checkConfig(l.Config) }

func (l *LearnerAdopted) check() error {
	if l.Variant == "" {
		return errors.New("the learner of no variant is adopted")
	}
	return checkConfig(l.Config)
}

func (c *Corrected) check() error {
	seen := map[string]bool{}
	for _, id := range c.Shown {
		if id == "" || seen[id] {
			return fmt.Errorf("a correction of decision %q shows item %q twice, or it has no id", c.Decision, id)
		}
		seen[id] = true
	}
	after := c.Before + c.Value
	if err := c.Basket.Check(c.Choice, len(c.Shown)); err != nil {
		return fmt.Errorf("a correction of decision %q: %w", c.Decision, err)
	}
	switch {
	case c.Decision == "":
		return errors.New("a correction without a decision's identity")
	case c.Entry == 0:
		return fmt.Errorf("a correction of decision %q without the entry of its offer", c.Decision)
	case c.Choice < 0 || int(c.Choice) > len(c.Shown):
		return fmt.Errorf("a correction of item %d of the %d of decision %q", c.Choice, len(c.Shown), c.Decision)
	case math.IsNaN(after) || math.IsInf(after, 0):
		return fmt.Errorf("a correction of decision %q by %v, after it had earned %v", c.Decision, c.Value, c.Before)
	case c.Others < 0, c.Others > 0 && c.Others >= len(c.Shown):
		return fmt.Errorf("a correction of decision %q, which shows %d items, leaves %d others", c.Decision,
			len(c.Shown), c.Others)
	case !c.InTime && (c.Bound != 0 || c.Unit != 0 || c.Segment != ""):
		return fmt.Errorf("a correction of decision %q, whose outcome was late, is of unit %d and segment %q, and bounded "+
			"by %v", c.Decision, c.Unit, c.Segment, c.Bound)
	case !(c.Bound >= 0 && c.Bound <= math.MaxFloat64):
		return fmt.Errorf("a correction of decision %q, which counts at most %v", c.Decision, c.Bound)
	case c.Correction == "":
		return c.checkLate()
	case c.Basket != nil:
		return fmt.Errorf("correction %q of decision %q has the basket %v of a late outcome", c.Correction, c.Decision,
			c.Basket)
	case c.Choice == 0 || c.Counts || c.Viewed || c.Withdraws && c.Others == 0 && after != 0 ||
		c.Adds && (c.Withdraws || c.Value < 0):
		return fmt.Errorf("correction %q of decision %q is of item %d, by %v, after it had earned %v",
			c.Correction, c.Decision, c.Choice, c.Value, c.Before)
	}
	return nil
}

// checkLate validates an outcome that came after the deadline.
func (c *Corrected) checkLate() error {
	switch {
	case c.Before != 0 || c.Withdraws || c.InTime || c.Choice == 0 && c.Value != 0:
		return fmt.Errorf("a late outcome of decision %q that earns %v, after it had earned %v",
			c.Decision, c.Value, c.Before)
	case c.Viewed && !c.Counts:
		return fmt.Errorf("a late outcome of decision %q tells that its page was shown, and it counted before",
			c.Decision)
	case c.Others != 0 || c.Adds || c.Basket != nil && c.Value != c.Basket.Earned():
		return fmt.Errorf("a late outcome of decision %q earns %v with the basket %v and %d other items", c.Decision,
			c.Value, c.Basket, c.Others)
	}
	return nil
}

func (i *ItemsChanged) check() error {
	if len(i.Put)+len(i.Deleted) == 0 {
		return errors.New("a change of no items")
	}
	if slices.Contains(i.Put, "") || slices.Contains(i.Deleted, "") {
		return errors.New("a change of items with an empty record or id")
	}
	if len(i.Undo) != len(i.Put)+len(i.Deleted) {
		return fmt.Errorf("a change of %d items carries undo data for %d", len(i.Put)+len(i.Deleted), len(i.Undo))
	}
	return nil
}

func (a *Activated) check() error { return checkDecision("an activation", a.Decision) }

func (m *Measured) check() error {
	if m.Decision == "" || len(m.List) == 0 {
		return fmt.Errorf("%d measurements of decision %q", len(m.List), m.Decision)
	}
	for k, v := range m.List {
		if math.IsNaN(v.Value) || math.IsInf(v.Value, 0) || v.Name == "" || k > 0 && m.List[k-1].Name >= v.Name {
			return fmt.Errorf("the measurements of decision %q are %v, want finite ones of names that increase",
				m.Decision, m.List)
		}
	}
	return nil
}

func (p *ItemsDeclined) check() error {
	switch {
	case p.Decision == "":
		return errors.New("passed items without a decision's identity")
	case len(p.Items) == 0:
		return fmt.Errorf("no items of decision %q are passed", p.Decision)
	case !(p.Reward >= 0 && p.Reward <= 1):
		return fmt.Errorf("passed items of decision %q have the reward %v, want one in [0, 1]", p.Decision, p.Reward)
	}
	last := int32(0)
	for _, i := range p.Items {
		if i <= last {
			return fmt.Errorf("the passed items of decision %q are %v, want places from 1 on that increase",
				p.Decision, p.Items)
		}
		last = i
	}
	return nil
}
