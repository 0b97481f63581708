// Package page computes the page that a request gets: a [View] of a placement and a request become an offer. It uses no
// log, no clock, no goroutine and no lock of its own. The time, the decision's number and the policies are arguments,
// and the same arguments give the same offer. Tests can therefore decide without an engine, and a trial is the same
// call without a commit.
//
//	view.go          a placement as a decision sees it
//	decider.go       a decision in the making: the request, its candidates, the plan, the memory
//	request.go       a request is read and checked
//	candidates.go    candidates from the catalogue, and their rows
//	rules.go         the sets that may be shown; capacity.go those that fit
//	decide.go        a request → an offer: the steps, one function each
//	estimates.go     the policy's estimates for the set shown
//	logged.go        the candidates and rules that the log keeps; whole.go rebuilds the candidates
//	imported.go      a decision from another program's log as an offer
//	explain.go       why a set was shown; alternatives.go the next best one; contributions.go, effects.go how features act
//
// A catalogue locks itself: a decision holds its read lock while it chooses candidates.
package page

import (
	"errors"

	"vitrine"
	"vitrine/service/api"
	"vitrine/service/catalogue"
	"vitrine/service/earnings/abtest"
	"vitrine/service/feature"
	"vitrine/service/setup"
)

// View is a placement as a decision sees it. A view never changes.
type View struct {
	Name       string
	Born       uint64 // the entry that created the placement
	Config     *setup.Config
	Catalogue  *catalogue.Catalogue // nil if another placement should share its catalogue but does not exist
	Policy     Policy               // decides, unless a variant has a policy of its own
	ByBaseline bool                 // show the caller's baseline instead of the policy's set, because of the guard's alarm
	Holdout    *abtest.Routes       // of the hold-out; nil without one
	Routes     *abtest.Routes       // of the experiment; nil without one
	Variants   []*Policy            // by variant; nil for a variant without a policy of its own
	Shopper    Shopper              // who asks
}

// Shopper is who asks a placement that remembers shoppers. The zero value is an unknown one.
type Shopper struct {
	Name string         // in the log
	Past []feature.Past // sorted by id
}

// Policy is a frozen policy.
type Policy struct {
	Policy vitrine.Policy // nil if its learner has retired or the policy is gone
	Entry  uint64         // the last log entry that the policy has learned from
	Config *setup.Config  // of the policy's learner
}

// Name returns the policy's name.
func (p *Policy) Name() string {
	name, _ := p.Config.Policy["name"].(string)
	return name
}

var (
	// ErrPolicy is returned if a policy panics or violates the constraints.
	ErrPolicy = errors.New("the policy failed")
	// ErrStale is returned if the placement or an item changed after the view was taken. Decide again with a new view.
	ErrStale = errors.New("the state has moved")
)

// UnseenError lists category values that must be logged before the decision.
type UnseenError struct{ Values []feature.Seen }

func (e *UnseenError) Error() string {
	return "categories have new values"
}

// Items returns the placement's catalogue, or an error that names the placement that should share it.
func (v *View) Items() (*catalogue.Catalogue, error) {
	if v.Catalogue == nil {
		return nil, api.Fieldf("", "placement %q has the catalogue of %q, which is not there or has other features",
			v.Name, v.Config.CatalogueOf)
	}
	return v.Catalogue, nil
}

// payloads returns the stored payloads of some items, "" for an item without one. It returns nil without a catalogue.
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
