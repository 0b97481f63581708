package decision

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/go-json-experiment/json"

	"vitrine"
	"vitrine/service/eventlog"
)

// The ways to find an assortment: [eventlog.Offered.Mode].
const (
	ByPolicy   uint8 = 1 + iota
	ByChance         // drawn uniformly from the nonempty sets
	ByBaseline       // the caller's
	ByImport         // in the log of another program
)

// Answer is the answer to a request.
type Answer struct {
	Decision      string
	Placement     string
	Shown         []string  // ids in display order
	Probability   []float64 // p(i|S) of each, estimated; nil if the policy has no estimate
	Outside       float64   // p(0|S)
	Revenue       float64   // the expected revenue R(S)
	Propensity    float64   // of the set, in (0, 1]; 0 if it has no closed form
	PolicyVersion uint64    // the last entry of the log that the policy had learned from
	By            uint8     // ByPolicy, ByChance, ByBaseline or ByImport
	Repeated      bool      // the request was answered before, and this is that answer

	Deferred bool     // as the request asks: the outcome can come after [Engine.Activate]
	Certain  bool     // for a request with slots: whether the policy's set was not drawn
	Own      []string // the policy's set if it was not drawn, and chance showed another one
	Slots    []string // the ids of its slots, in the order of Shown; nil if they have none

	Variant string // of an experiment; "" without one

	CatalogueVersion     uint64   // the last entry that had changed the catalogue; 0 if no candidate may be from one
	Unknown, Unavailable []string // the first candidates that the catalogue does not have, and the first that may not be shown now
	Missing              int      // the number of both
	Payload              []string // the stored payloads of what is shown, "" where there is none; nil if the request does not ask for them
}

// estimates are the part of an answer that is not in the offer. The log keeps them in the field Answer of an
// event:
//
//	version      1 byte    6 with a flag from 1024 on, else 5 with flag 512, 4 with flag 256, 3 with flag 128, 2 with a flag from 8 on, else 1
//	flags        1 byte, from version 4 on a uvarint
//	                       1: estimated, 2: with the policy's own set, 4: which is the set shown,
//	                       8: deferred, 16: the policy was certain, 32: of another set, 64: with a note,
//	                       128: with the law of the set, 256: with candidates from a catalogue,
//	                       512: of a variant of an experiment, 1024: with rules of the request
//	number       uvarint   of the decision within its placement, from 1 on
//	where estimated, floats of 8 bytes, little endian
//	  p(0|S), R(S), p(i|S) of the items shown in display order
//	  and with the policy's own set S', R(S')
//	of another set: its number of items as a uvarint, and their ids as strings
//	with a note: it, as a string
//	with the law: see Draw
//	of a catalogue: its version and the number of missing candidates as uvarints; of the unknown and of the
//	  unavailable ones the number as a uvarint and the ids as strings
//	of a variant: its name as a string, and the hash of the unit in 8 bytes, little endian
//	with rules: their JSON as a string, see rules
//
// A string is its length as a uvarint, and its bytes.
type estimates struct {
	number      uint64
	probability []float64 // nil: not estimated
	outside     float64
	revenue     float64
	shadowed    bool // the policy's own set S' differs in kind from the set shown
	agrees      bool // S' = S
	shadow      float64

	deferred bool
	certain  bool
	own      []string
	note     string
	law      *Draw // nil: not known, or known from the propensity

	catalogue *fromCatalogue // nil if no candidate may be from a catalogue

	variant string // of an experiment; "" without one
	unit    uint64 // and the hash of the unit that is shown it: see [variants.Unit]

	rules string // of the request; "" if it has none, or if the log has not all candidates
}

// fromCatalogue says of which catalogue the candidates were, and which were missing.
type fromCatalogue struct {
	version              uint64
	unknown, unavailable []string // the first of them
	missing              int
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
	flagVariant
	flagRules
	allFlags = flagRules<<1 - 1
)

// flags returns which fields there are, in the order of the constants.
func (e *estimates) flags() (flags uint64) {
	for i, is := range [...]bool{
		e.probability != nil, e.shadowed, e.agrees, e.deferred, e.certain, e.own != nil,
		e.note != "", e.law != nil, e.catalogue != nil, e.variant != "", e.rules != "",
	} {
		if is {
			flags |= 1 << i
		}
	}
	return flags
}

func (e *estimates) encode(dst []byte) []byte {
	flags := e.flags()
	if dst = append(dst, versionOf(flags)); flags >= flagCatalogue {
		dst = binary.AppendUvarint(dst, flags)
	} else {
		dst = append(dst, byte(flags))
	}
	dst = binary.AppendUvarint(dst, e.number)
	if e.probability != nil {
		dst = appendFloat(appendFloat(dst, e.outside), e.revenue)
		for _, p := range e.probability {
			dst = appendFloat(dst, p)
		}
		if e.shadowed {
			dst = appendFloat(dst, e.shadow)
		}
	}
	if e.own != nil {
		dst = appendStrings(dst, e.own)
	}
	if e.note != "" {
		dst = appendString(dst, e.note)
	}
	if e.law != nil {
		dst = e.law.encode(dst)
	}
	if c := e.catalogue; c != nil {
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, c.version), uint64(c.missing))
		dst = appendStrings(appendStrings(dst, c.unknown), c.unavailable)
	}
	if e.variant != "" {
		dst = binary.LittleEndian.AppendUint64(appendString(dst, e.variant), e.unit)
	}
	if e.rules != "" {
		dst = appendString(dst, e.rules)
	}
	return dst
}

// versionOf returns the version of the encoding: the lowest one that has the flags, so that earlier programs
// read it.
func versionOf(flags uint64) byte {
	switch {
	case flags >= flagRules:
		return 6
	case flags >= flagVariant:
		return 5
	case flags >= flagCatalogue:
		return 4
	case flags >= flagLaw:
		return 3
	case flags >= flagDeferred:
		return 2
	}
	return 1
}

var errEstimates = errors.New("the estimates of an offer are not those of this version")

// decodeEstimates decodes the estimates of an offer that shows the given number of items.
func decodeEstimates(data []byte, shown int) (estimates, error) {
	c := cutter{data: data}
	version, flags := c.byte(), uint64(0)
	if version >= versionOf(flagCatalogue) {
		flags = c.uvarint(math.MaxUint64)
	} else {
		flags = uint64(c.byte())
	}
	has := func(flag uint64) bool { return flags&flag != 0 }
	e := estimates{
		number: c.uvarint(math.MaxUint64), shadowed: has(flagShadowed), agrees: has(flagAgrees), deferred: has(flagDeferred), certain: has(flagCertain),
	}
	if c.failed || version != versionOf(flags) || flags&^allFlags != 0 || e.agrees && !e.shadowed {
		return estimates{}, errEstimates
	}
	if has(flagEstimated) {
		e.outside, e.revenue, e.probability = c.float(), c.float(), make([]float64, shown)
		for i := range e.probability {
			e.probability[i] = c.float()
		}
		if e.shadowed {
			e.shadow = c.float()
		}
	}
	if has(flagOwn) {
		e.own = c.strings()
	}
	if has(flagNote) {
		e.note = c.name()
	}
	if has(flagLaw) {
		e.law = c.draw()
	}
	if has(flagCatalogue) {
		e.catalogue = &fromCatalogue{version: c.uvarint(math.MaxUint64), missing: int(c.uvarint(math.MaxInt32)), unknown: c.strings(), unavailable: c.strings()}
	}
	if has(flagVariant) {
		e.variant, e.unit = c.name(), c.fixed64()
	}
	if has(flagRules) {
		e.rules = c.name()
	}
	if c.failed || len(c.data) > 0 || !e.valid() {
		return estimates{}, errEstimates
	}
	return e, nil
}

// valid reports whether the numbers are possible probabilities and revenues.
func (e *estimates) valid() bool {
	for _, p := range e.probability {
		if !(p >= 0 && p <= 1) {
			return false
		}
	}
	const maximum = 2 * vitrine.MaxRevenue // of a mean of revenues, and of what rounding adds
	return e.outside >= 0 && e.outside <= 1 && e.revenue >= 0 && e.revenue <= maximum && e.shadow >= 0 && e.shadow <= maximum
}

// answerOf returns the answer to a decision's caller, who may change it.
func answerOf(placement string, o *eventlog.Offered, e *estimates) *Answer {
	a := &Answer{
		Decision: o.Decision, Placement: placement,
		Shown: make([]string, len(o.Shown)), Probability: e.probability, Outside: e.outside, Revenue: e.revenue,
		Propensity: o.Propensity, PolicyVersion: o.PolicyVersion, By: o.Mode,
	}
	for k, i := range o.Shown {
		a.Shown[k] = o.ItemIDs[i]
	}
	a.Deferred, a.Certain, a.Own = e.deferred, e.certain, slices.Clone(e.own)
	a.Slots, a.Variant = slotIDs(e.note), e.variant
	if c := e.catalogue; c != nil {
		a.CatalogueVersion, a.Unknown, a.Unavailable, a.Missing = c.version, c.unknown, c.unavailable, c.missing
	}
	return a
}

// Deferred reports whether an offer of this program waits to be activated.
func Deferred(o *eventlog.Offered) bool {
	e, err := decodeEstimates(o.Answer, len(o.Shown))
	return err == nil && e.deferred
}

// slotIDs returns the ids of the slots in a note, nil if it has none.
func slotIDs(note string) (ids []string) {
	if note == "" || json.Unmarshal([]byte(note), &ids) != nil { // earlier Go programs could write any note
		return nil
	}
	return ids
}

// Decision is the state of a decision.
type Decision struct {
	Answer *Answer
	Time   int64
	Status string // "open", "chosen", "expired", "deferred", "withdrawn" or "evicted"
	Choice string // the item that was taken, "" for none
}
