package offer

import (
	"encoding/binary"
	"errors"
	"iter"
	"math"
	"math/bits"
	"slices"

	"vitrine"
	"vitrine/internal/fields"
	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/feature"
	"vitrine/service/shoppers"
)

// Estimates are the part of an answer that an event stores as bytes, in the field Answer:
//
//	version      1 byte    1
//	flags        uvarint   1: estimated, 2: with the policy's own set, 4: which is the set shown,
//	                       8: deferred, 16: the policy was certain, 32: of another set, 64: with a note,
//	                       128: with the law of the set, 256: with candidates from a catalogue,
//	                       512: of a unit of an experiment or a hold-out, 1024: with rules of the request,
//	                       2048: with payloads, 4096: with lower bounds that were not met,
//	                       8192: of a shopper with a history, 16384: with counts of it
//	number       uvarint   of the decision within its placement, from 1 on
//	where estimated, floats of 8 bytes, little endian
//	  p(0|S), R(S), p(i|S) of the items shown in display order
//	  and with the policy's own set S', R(S')
//	of another set: the ids of its items, strings
//	with a note: it, as a string
//	with the law: see Draw
//	of a catalogue: its version and the number of missing candidates as uvarints; strings: the unknown ones;
//	  strings: the unavailable ones; and see FromCatalogue
//	of a unit: the name of its variant as a string, "" for none, and its hash in 8 bytes, little endian
//	with rules: their JSON as a string
//	with payloads: strings, one for each item shown
//	with bounds: their number as a uvarint, and of each the group or number of its limit as a string, "" for min_size, and as
//	  uvarints the bound and the number of items that could be shown
//	of a shopper: the name, as a string of 16 bytes
//	with counts: their number as a uvarint, and of each the item's id as a string, and as uvarints how often the shopper has
//	  seen and bought it
//
// A string is its length as a uvarint, and its bytes; strings are their number, their lengths and then all bytes.
type Estimates struct {
	Number      uint64
	Probability []float64 // nil: not estimated
	Outside     float64
	Expected    float64 // R(S)
	Shadowed    bool    // the policy's own set S' differs in kind from the set shown
	Agrees      bool    // S' = S
	Shadow      float64 // R(S')

	Deferred bool
	Certain  bool
	Own      []string
	Note     string
	Law      *SamplingLaw // nil: not known, or known from the propensity

	Catalogue *FromCatalogue // nil if no candidate may be from a catalogue

	Variant string // of an experiment, or api.Holdout; "" for neither
	Unit    uint64 // the hash of the unit, 0 without an experiment and a hold-out

	Rules string // the request's; "" without rules, or if the log lacks candidates

	Shopper string         // the shopper's name in the log, in a placement that remembers shoppers; "" if unknown
	Past    []feature.Past // of the shopper, for candidates from the catalogue whose rows are not in the log

	Unmet   []api.Unmet
	Payload []string // of the items shown, "" for an item without one; nil if the request does not ask
}

// FromCatalogue names the catalogue version and the missing candidates, and says which items were candidates, after the
// request's own. In bytes, after the others:
//
//	items    uvarint   of the catalogue; 0 ends it: the log does not say which were candidates
//	form     1 byte    0 all, 1 gaps, 2 bits: the shorter one, or gaps; and 4 if the placement records all candidates
//	gaps     their number as a uvarint, and of each how many items are between it and the one before, as a uvarint
//	bits     a bit for each item of the catalogue
type FromCatalogue struct {
	Version              uint64
	Unknown, Unavailable []string // the first of them
	Missing              int

	NumItems int     // of the catalogue; 0 if the log does not say which were candidates
	Slots    []int32 // of the candidates among the items, in increasing order; nil if all are
	All      bool    // whether exports and evaluations get all candidates, not only those shown
}

// Candidates returns how many items of the catalogue were candidates.
func (c *FromCatalogue) Candidates() int {
	if c.Slots == nil {
		return c.NumItems
	}
	return len(c.Slots)
}

// EachSlot iterates over the candidates' slots in increasing order.
func (c *FromCatalogue) EachSlot() iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for k := range c.Candidates() {
			slot := int32(k)
			if c.Slots != nil {
				slot = c.Slots[k]
			}
			if !yield(slot) {
				return
			}
		}
	}
}

// The forms of the candidates.
const (
	formAll = iota
	formGaps
	formBits
	formRecorded = 4
)

// size returns the form of the candidates, and the bytes that they take in it.
func (c *FromCatalogue) size() (form byte, size int) {
	if c.Slots == nil {
		return formAll, 0
	}
	gaps, last := len(binary.AppendUvarint(nil, uint64(len(c.Slots)))), int32(-1)
	for _, slot := range c.Slots {
		gaps += max(1, (bits.Len32(uint32(slot-last-1))+6)/7)
		last = slot
	}
	if set := (c.NumItems + 7) / 8; set < gaps {
		return formBits, set
	}
	return formGaps, gaps
}

// Size returns the bytes that the candidates take.
func (c *FromCatalogue) Size() int {
	_, size := c.size()
	return size
}

func (c *FromCatalogue) fields(f *fields.Fields) {
	f.Uvarint(&c.Version)
	f.Count(&c.Missing)
	f.Strings(&c.Unknown)
	f.Strings(&c.Unavailable)
	if f.Count(&c.NumItems); c.NumItems == 0 {
		return
	}
	form, _ := c.size()
	if c.All {
		form |= formRecorded
	}
	f.Byte(&form)
	c.All = form&formRecorded != 0
	switch form &^ formRecorded {
	case formAll:
	case formGaps:
		n, last := f.Length(len(c.Slots), 1), int32(-1)
		if f.Reads() {
			c.Slots = make([]int32, n)
		}
		for k := range c.Slots {
			gap := f.Bounded(int(c.Slots[k]-last-1), math.MaxInt32-1-int(max(last, 0)))
			c.Slots[k] = last + 1 + int32(gap)
			last = c.Slots[k]
		}
	case formBits:
		c.bits(f)
	default:
		f.Fail(errEstimates)
	}
	if f.Reads() && f.Err() == nil {
		if again, _ := c.size(); again != form&^formRecorded || len(c.Slots) > 0 &&
			int(c.Slots[len(c.Slots)-1]) >= c.NumItems || c.Slots != nil && len(c.Slots) == c.NumItems {
			f.Fail(errEstimates)
		}
	}
}

// bits are the candidates as bits.
func (c *FromCatalogue) bits(f *fields.Fields) {
	set := make([]byte, (min(c.NumItems, 8*len(f.Rest()))+7)/8)
	if !f.Reads() {
		set = make([]byte, (c.NumItems+7)/8)
		for _, slot := range c.Slots {
			set[slot/8] |= 1 << (slot % 8)
		}
	} else if c.Slots = []int32{}; len(set) < (c.NumItems+7)/8 {
		f.Fail(errEstimates)
	}
	for i := range set {
		f.Byte(&set[i])
		for b := set[i]; f.Reads() && b != 0; b &= b - 1 {
			c.Slots = append(c.Slots, int32(8*i+bits.TrailingZeros8(b)))
		}
	}
}

const (
	flagEstimated = 1 << iota
	flagShadowed
	flagAgrees
	flagDeferred
	flagCertain
	flagOwn
	flagNote
	flagLaw
	flagCatalogue
	flagUnit
	flagRules
	flagPayload
	flagUnmet
	flagShopper
	flagPast
	allFlags = flagPast<<1 - 1
)

// flags returns which fields there are, in the order of the constants.
func (e *Estimates) flags() (flags uint64) {
	for i, is := range [...]bool{
		e.Probability != nil, e.Shadowed, e.Agrees, e.Deferred, e.Certain, e.Own != nil,
		e.Note != "", e.Law != nil, e.Catalogue != nil, e.Variant != "" || e.Unit != 0, e.Rules != "", e.Payload != nil,
		len(e.Unmet) > 0,
		e.Shopper != "", len(e.Past) > 0,
	} {
		if is {
			flags |= 1 << i
		}
	}
	return flags
}

const estimatesVersion = 1

// Append appends the bytes to dst.
func (e *Estimates) Append(dst []byte) []byte {
	f := fields.Writer(dst)
	e.encoded(&f, e.flags(), 0)
	return f.Rest()
}

var errEstimates = errors.New("the bytes are not the estimates of an offer")

// Decode reads the estimates of an offer that shows the given number of items.
func Decode(data []byte, shown int) (Estimates, error) {
	var e Estimates
	f := fields.Reader(data)
	f.In("the answer of an offer")
	flags := e.encoded(&f, 0, shown)
	if err := f.Close(); err != nil {
		return Estimates{}, err
	}
	if e.flags() != flags || !e.valid() {
		return Estimates{}, errEstimates
	}
	return e, nil
}

// encoded writes the fields of the flags, or reads the fields and the flags.
func (e *Estimates) encoded(f *fields.Fields, flags uint64, shown int) uint64 {
	f.Version("the answer of an offer", estimatesVersion)
	f.Uvarint(&flags)
	if flags&^allFlags != 0 {
		f.Fail(errEstimates)
	}
	has := func(flag uint64) bool { return flags&flag != 0 && f.Err() == nil }
	f.Uvarint(&e.Number)
	e.Shadowed, e.Agrees, e.Deferred, e.Certain = has(flagShadowed), has(flagAgrees), has(flagDeferred),
		has(flagCertain)
	if has(flagEstimated) {
		f.Float(&e.Outside, &e.Expected)
		if f.Reads() {
			e.Probability = make([]float64, shown)
		}
		for i := range e.Probability {
			f.Float(&e.Probability[i])
		}
		if e.Shadowed {
			f.Float(&e.Shadow)
		}
	}
	if has(flagOwn) {
		list(f, &e.Own)
	}
	if has(flagNote) {
		f.String(&e.Note)
	}
	if has(flagLaw) {
		if f.Reads() {
			e.Law = new(SamplingLaw)
		}
		e.Law.fields(f)
	}
	if has(flagCatalogue) {
		if f.Reads() {
			e.Catalogue = new(FromCatalogue)
		}
		e.Catalogue.fields(f)
	}
	if has(flagUnit) {
		f.String(&e.Variant)
		f.Fixed64(&e.Unit)
	}
	if has(flagRules) {
		f.String(&e.Rules)
	}
	if has(flagPayload) {
		if list(f, &e.Payload); f.Reads() && len(e.Payload) != shown {
			f.Fail(errEstimates)
		}
	}
	if has(flagUnmet) {
		n := f.Length(len(e.Unmet), 4)
		if f.Reads() {
			e.Unmet = make([]api.Unmet, n)
		}
		for i := range e.Unmet {
			u := &e.Unmet[i]
			f.String(&u.Rule, &u.On)
			f.Count(&u.Min, &u.Reached)
		}
	}
	if has(flagShopper) {
		f.String(&e.Shopper)
	}
	if has(flagPast) {
		fields.List(f, &e.Past, PastFields)
	}
	return flags
}

// PastFields encodes or decodes how often a shopper has seen and bought an item.
func PastFields(p *feature.Past, f *fields.Fields) {
	f.String(&p.ID)
	seen, bought := f.Bounded(int(p.Seen), math.MaxInt32), f.Bounded(int(p.Bought), math.MaxInt32)
	if f.Reads() {
		p.Seen, p.Bought = uint32(seen), uint32(bought)
	}
}

// list is a list that there is, even if it is empty.
func list(f *fields.Fields, v *[]string) {
	if f.Strings(v); *v == nil {
		*v = []string{}
	}
}

// valid reports whether the numbers are possible probabilities and revenues.
func (e *Estimates) valid() bool {
	for _, p := range e.Probability {
		if !(p >= 0 && p <= 1) {
			return false
		}
	}
	const maximum = 2 * vitrine.MaxRevenue // a mean of revenues, plus rounding
	return (e.Shopper == "" || len(e.Shopper) == shoppers.NameSize) && e.Outside >= 0 && e.Outside <= 1 &&
		e.Expected >= 0 && e.Expected <= maximum && e.Shadow >= 0 && e.Shadow <= maximum &&
		(e.Shadowed || !e.Agrees) && !slices.ContainsFunc(e.Unmet, func(u api.Unmet) bool {
		return u.Reached >= u.Min
	}) && (e.Law == nil || e.Law.valid())
}

// IsDeferred reports whether an offer of this program waits to be activated.
func IsDeferred(o *eventlog.Offered) bool {
	e, err := Decode(o.Answer, len(o.Shown))
	return err == nil && e.Deferred
}
