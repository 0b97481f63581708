// Package page computes what a request is shown: a [View] of a placement and a request become an offer. It has no lock of its
// own, no log, no clock and no goroutine: the time, the number of the decision and the policies are arguments, and the same
// arguments give the same offer. So a decision can be tested without an engine, and a request that is only tried is decided
// by the same call.
//
//	view.go          what a decision sees of its placement
//	request.go       a validated request
//	candidates.go    its candidates in the catalogue, and their rows
//	rules.go         the sets that may be shown; capacity.go those that fit
//	decide.go        a request → an offer: the steps, one function each
//	estimates.go     what the policy expects of the set shown
//	logged.go        what the log keeps of the candidates and the rules; whole.go the candidates from the log and the catalogue
//	imported.go      a decision of another program as an offer
//	explain.go       why a set was shown; alternatives.go the next best one; contributions.go, effects.go what features do
//
// A catalogue has a lock, which a decision holds for reading while it chooses candidates.
package page

import (
	"errors"

	"vitrine"
	"vitrine/service/api"
	"vitrine/service/catalogue"
	"vitrine/service/feature"
	"vitrine/service/setup"
	"vitrine/service/variants"
)

// View is a placement as a decision sees it. It does not change.
type View struct {
	Name       string
	Born       uint64 // the entry that created the placement
	Config     *setup.Config
	Catalogue  *catalogue.Catalogue // nil if the placement that shares its own is not there
	Policy     Policy               // that decides where no variant has its own
	ByBaseline bool                 // whether the baseline is shown in place of the policy's set, because the guard has an alarm
	Routes     *variants.Routes     // of the experiment; nil without one
	Variants   []*Policy            // by variant; nil if it has no policy of its own
}

// Policy is a frozen policy.
type Policy struct {
	Policy vitrine.Policy // nil if its learner has retired, or if it is no longer there
	Entry  uint64         // the last entry of the log that it has learned from
	Config *setup.Config  // of its learner
}

// Name returns the name of the policy.
func (p *Policy) Name() string {
	name, _ := p.Config.Policy["name"].(string)
	return name
}

var (
	// ErrPolicy is returned if a policy panics or violates the constraints.
	ErrPolicy = errors.New("the policy failed")
	// ErrMoved is returned if the placement or an item has changed since the view was made: decide again with a new view.
	ErrMoved = errors.New("the state has moved")
)

// UnseenError is returned for values of categories that the schema has not learned. They must be in the log before the decision.
type UnseenError struct{ Values []feature.Seen }

func (e *UnseenError) Error() string {
	return "categories have new values"
}

// route is what a request is shown: nothing in particular without an experiment.
type route struct {
	show    string // api.ShowPolicy, …
	variant string
	unit    uint64
	policy  *Policy // of the variant's own; nil if it is the placement's
}

// route returns what the unit of a request is shown.
func (v *View) route(r *Request) (to route, err error) {
	if v.Config.Mode != api.Experimenting {
		return to, nil
	}
	if r.Unit == "" && r.isTrial { // shows what the placement's policy would
		return to, nil
	}
	if r.Unit == "" {
		return to, api.Fieldf("/unit", "is missing: in the mode %q it says who is shown the same variant each time, such as a shopper's id", api.Experimenting)
	}
	to.unit = variants.Unit(v.Name, r.Unit)
	class := v.Routes.Class(to.unit)
	to.variant, to.show = v.Routes.Name(class), v.Routes.Show(class)
	if class < len(v.Variants) {
		to.policy = v.Variants[class]
	}
	return to, nil
}

// Items returns the catalogue of the placement, or an error that names the placement which shares its own.
func (v *View) Items() (*catalogue.Catalogue, error) {
	if v.Catalogue == nil {
		return nil, api.Fieldf("", "placement %q has the catalogue of %q, which is not there or has other features", v.Name, v.Config.Catalogue)
	}
	return v.Catalogue, nil
}

// payloads returns the payloads that are stored of some items, "" where there is none; nil if there is no catalogue.
func (v *View) payloads(ids []string) []string {
	if v.Catalogue == nil {
		return nil
	}
	v.Catalogue.RLock()
	defer v.Catalogue.RUnlock()
	list := make([]string, len(ids))
	for k, id := range ids {
		if slot, ok := v.Catalogue.Find(id); ok {
			list[k] = v.Catalogue.Payload(slot)
		}
	}
	return list
}
