package decision

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"vitrine"
	"vitrine/eventlog"
)

// How an assortment was found: [eventlog.Offered.Mode].
const (
	ByPolicy   uint8 = 1 + iota
	ByChance         // drawn uniformly from the nonempty sets
	ByBaseline       // the caller's
)

// Answer is what a caller is told of a decision.
type Answer struct {
	Decision      string
	Placement     string
	Shown         []string  // ids in display order
	Probability   []float64 // p(i|S) of each, estimated; nil where the policy has no estimate
	Outside       float64   // p(0|S)
	Revenue       float64   // the expected revenue R(S)
	Propensity    float64   // of the set, in (0, 1]; 0 where it has no closed form
	PolicyVersion uint64    // the last entry of the log that the policy had learned from
	By            uint8     // ByPolicy, ByChance or ByBaseline
	Repeated      bool      // the request was answered before, and this is that answer
}

// estimates are what the log keeps of an answer beside the offer, the field
// Answer of an event:
//
//	version      1 byte    1
//	flags        1 byte    1: estimated, 2: with the policy's own set, 4: which is the set shown
//	number       uvarint   of the decision within its placement, from 1 on
//	where estimated, floats of 8 bytes, little endian
//	  p(0|S), R(S), p(i|S) of the items shown in display order
//	  and with the policy's own set S', R(S')
type estimates struct {
	number      uint64
	probability []float64 // nil: not estimated
	outside     float64
	revenue     float64
	shadowed    bool // the policy's own set S' was another question than the set shown
	agrees      bool // S' = S
	shadow      float64
}

const estimatesVersion = 1

const (
	flagEstimated = 1 << iota
	flagShadowed
	flagAgrees
)

func (e *estimates) encode(dst []byte) []byte {
	var flags byte
	if e.probability != nil {
		flags |= flagEstimated
	}
	if e.shadowed {
		flags |= flagShadowed
	}
	if e.agrees {
		flags |= flagAgrees
	}
	dst = append(dst, estimatesVersion, flags)
	dst = binary.AppendUvarint(dst, e.number)
	if e.probability == nil {
		return dst
	}
	dst = appendFloat(appendFloat(dst, e.outside), e.revenue)
	for _, p := range e.probability {
		dst = appendFloat(dst, p)
	}
	if e.shadowed {
		dst = appendFloat(dst, e.shadow)
	}
	return dst
}

var errEstimates = errors.New("the estimates of an offer are not those of this version")

// decodeEstimates reads those of an offer of so many items.
func decodeEstimates(data []byte, shown int) (estimates, error) {
	var e estimates
	if len(data) < 3 || data[0] != estimatesVersion || data[1] >= flagAgrees<<1 {
		return e, errEstimates
	}
	flags := data[1]
	e.shadowed, e.agrees = flags&flagShadowed != 0, flags&flagAgrees != 0
	number, size := binary.Uvarint(data[2:])
	if size <= 0 || size > 1 && data[1+size] == 0 || e.agrees && !e.shadowed {
		return e, errEstimates
	}
	e.number = number
	rest := data[2+size:]
	floats := 0
	if flags&flagEstimated != 0 {
		floats = 2 + shown
		if e.shadowed {
			floats++
		}
	}
	if len(rest) != 8*floats {
		return e, errEstimates
	}
	if floats == 0 {
		return e, nil
	}
	next := func() float64 {
		v := math.Float64frombits(binary.LittleEndian.Uint64(rest))
		rest = rest[8:]
		return v
	}
	e.outside, e.revenue = next(), next()
	e.probability = make([]float64, shown)
	for i := range e.probability {
		e.probability[i] = next()
	}
	if e.shadowed {
		e.shadow = next()
	}
	if !e.valid() {
		return estimates{}, errEstimates
	}
	return e, nil
}

// valid reports whether the numbers can be what they say.
func (e *estimates) valid() bool {
	for _, p := range e.probability {
		if !(p >= 0 && p <= 1) {
			return false
		}
	}
	const most = 2 * vitrine.LargestRevenue // of a mean of revenues, and of what rounding adds
	return e.outside >= 0 && e.outside <= 1 && e.revenue >= 0 && e.revenue <= most && e.shadow >= 0 && e.shadow <= most
}

// answer returns what the caller of a decision is told, and may change.
func (r *record) answer() *Answer {
	return &Answer{
		Decision: r.id, Placement: r.placement.name,
		Shown: slices.Clone(r.shown), Probability: slices.Clone(r.probability), Outside: r.outside, Revenue: r.revenue,
		Propensity: r.propensity, PolicyVersion: r.version, By: r.mode,
	}
}

// answerOf returns the same of an offer that was just written.
func answerOf(placement string, o *eventlog.Offered, e *estimates) *Answer {
	a := &Answer{
		Decision: o.Decision, Placement: placement,
		Shown: make([]string, len(o.Shown)), Probability: e.probability, Outside: e.outside, Revenue: e.revenue,
		Propensity: o.Propensity, PolicyVersion: o.PolicyVersion, By: o.Mode,
	}
	for k, i := range o.Shown {
		a.Shown[k] = o.ItemIDs[i]
	}
	return a
}
