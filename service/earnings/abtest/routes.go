package abtest

import (
	"fmt"

	"vitrine/service/api"
	"vitrine/service/offer"
)

// Routes say which variant a unit is shown. They do not change.
type Routes struct {
	Number  uint64 // the entry that began the experiment
	Design  *api.Experiment
	Table   []uint8   // the variant of each bucket
	shares  []float64 // of the variants
	holdout int       // buckets
}

// Class returns the variant of a unit by its hash, or the number of variants for the holdout.
func (r *Routes) Class(unit uint64) int {
	if Bucket(unit, 0) < r.holdout {
		return len(r.shares)
	}
	return int(r.Table[Bucket(unit, r.Number)])
}

// Name returns the name of a class.
func (r *Routes) Name(class int) string {
	if class == len(r.shares) {
		return api.Holdout
	}
	return r.Design.Variants[class].Name
}

// ClassOf returns the class with a name, -1 if there is none.
func (r *Routes) ClassOf(name string) int {
	if name == api.Holdout {
		return len(r.shares)
	}
	return Of(r.Design, name)
}

// Show returns what a class is shown.
func (r *Routes) Show(class int) string {
	if class == len(r.shares) {
		return api.ShowBaseline
	}
	return r.Design.Variants[class].Show
}

// Check reports an offer of another variant than the one of its unit. Without an experiment r is nil.
func (r *Routes) Check(o *offer.Offer) error {
	switch {
	case r == nil && o.Variant != "":
		return fmt.Errorf("the offer is of variant %q, and there is no experiment", o.Variant)
	case r == nil || o.Mode == offer.ByImport:
		return nil
	}
	if name := r.Name(r.Class(o.Unit)); o.Variant != name {
		return fmt.Errorf("the offer is of variant %q, and its unit is shown %q", o.Variant, name)
	}
	return nil
}
