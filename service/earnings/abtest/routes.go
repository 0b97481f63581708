package abtest

import (
	"fmt"

	"vitrine/service/api"
	"vitrine/service/offer"
)

// Routes map units to variants. They are immutable.
type Routes struct {
	Number  uint64 // log entry that started the experiment
	Design  *api.Experiment
	Table   []uint8   // variant of each bucket
	shares  []float64 // by variant
	holdout int       // number of buckets
}

// Runs reports whether the experiment runs at a time: units are divided only while it does.
func (r *Routes) Runs(now int64) bool {
	d := r.Design
	return (d.Starts.IsZero() || now >= d.Starts.UnixNano()) && (d.Ends.IsZero() || now < d.Ends.UnixNano())
}

// Class returns the variant for a unit's hash, or the number of variants for the holdout.
func (r *Routes) Class(unit uint64) int {
	if Bucket(unit, 0) < r.holdout {
		return len(r.shares)
	}
	return int(r.Table[Bucket(unit, r.Number)])
}

// Name returns a class's name.
func (r *Routes) Name(class int) string {
	if class == len(r.shares) {
		return api.Holdout
	}
	return r.Design.Variants[class].Name
}

// ClassOf returns the class with a name, or -1.
func (r *Routes) ClassOf(name string) int {
	if name == api.Holdout {
		return len(r.shares)
	}
	return Of(r.Design, name)
}

// Show returns the value shown to a class.
func (r *Routes) Show(class int) string {
	if class == len(r.shares) {
		return api.ShowBaseline
	}
	return r.Design.Variants[class].Show
}

// Check returns an error if an offer's variant is not its unit's. Without an experiment r is nil. An experiment with a
// start or an end also has offers of no variant, and the clocks of processes differ a little.
func (r *Routes) Check(o *offer.Offer) error {
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
