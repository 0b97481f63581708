package abtest

import (
	"fmt"
	"time"

	"vitrine/service/api"
	"vitrine/service/offer"
)

// Routes map units to variants. They are immutable.
type Routes struct {
	Number uint64 // log entry that started the experiment
	Design *api.Experiment
	Table  []uint8   // variant of each bucket
	shares []float64 // by variant

	IsHoldout bool // whether they are those of a placement's hold-out, to which every decision belongs
}

// The variants of a hold-out.
const (
	notHeldOut = iota
	heldOut
)

// Runs reports whether the experiment runs at a time: units are divided only while it does.
func (r *Routes) Runs(now int64) bool { return Runs(r.Design, time.Unix(0, now)) }

// Runs reports whether an experiment runs at a time. Unlike nanoseconds, times reach to years such as 9999.
func Runs(e *api.Experiment, at time.Time) bool {
	return !at.Before(e.Starts) && (e.Ends.IsZero() || at.Before(e.Ends))
}

func (r *Routes) bucket(unit uint64) int {
	if r.IsHoldout {
		return Bucket(unit, 0)
	}
	return Bucket(unit, r.Number)
}

// Class returns the variant for a unit's hash.
func (r *Routes) Class(unit uint64) int { return int(r.Table[r.bucket(unit)]) }

// HoldsOut reports whether a unit is held out. Without a hold-out r is nil.
func (r *Routes) HoldsOut(unit uint64) bool { return r != nil && r.Class(unit) == heldOut }

// Name returns a class's name.
func (r *Routes) Name(class int) string { return r.Design.Variants[class].Name }

// ClassOf returns the class of an offer's variant, or -1.
func (r *Routes) ClassOf(variant string) int {
	switch {
	case !r.IsHoldout:
		return Of(r.Design, variant)
	case variant == api.Holdout:
		return heldOut
	}
	return notHeldOut
}

// Show returns the value shown to a class.
func (r *Routes) Show(class int) string { return r.Design.Variants[class].Show }

// CheckOffer returns an error if an offer's variant is not its unit's. Without a hold-out or an experiment its routes are
// nil. An experiment with a start or an end also has offers of no variant, and the clocks of processes differ a little.
func CheckOffer(holdout, r *Routes, o *offer.Offer) error {
	if held := o.Variant == api.Holdout; o.Mode != offer.ByImport && held != holdout.HoldsOut(o.Unit) {
		return fmt.Errorf("the offer is of variant %q, and its unit is held out: %v", o.Variant, !held)
	} else if held {
		return nil
	}
	switch {
	case r == nil && o.Variant != "":
		return fmt.Errorf("the offer is of variant %q, and there is no experiment", o.Variant)
	case r == nil || o.Mode == offer.ByImport:
		return nil
	case o.Variant == "" && !(r.Design.Starts.IsZero() && r.Design.Ends.IsZero()):
		return nil
	}
	if name := r.Name(r.Class(o.Unit)); o.Variant != name {
		return fmt.Errorf("the offer is of variant %q, and its unit is shown %q", o.Variant, name)
	}
	return nil
}
