package page

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/panics"
	"vitrine/internal/stream"
	"vitrine/service/api"
	"vitrine/service/earnings/abtest"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// Decide finds the items to show for a request that d.Read returned. Its errors are *api.FieldError, *UnseenError,
// ErrStale, ErrPolicy and ctx's. The decision shares memory with d.
func (d *Decider) Decide(ctx context.Context, v *View, r *Request) (*Decision, error) {
	d.plan = plan{view: v, request: r}
	if err := d.decide(ctx); err != nil {
		return nil, err
	}
	o := &d.made.Offer
	if r.Payload { // as stored now; a repeated answer repeats them
		d.estimates.Payload = v.payloads((&offer.Offer{Offered: o.Offered}).IDs())
	}
	d.answer = d.estimates.Append(d.answer[:0])
	o.Answer, o.Estimates = d.answer, d.estimates
	return &d.made, nil
}

func (d *Decider) decide(ctx context.Context) error {
	defer d.request.stock.unlock() // even if a filter makes its parser panic
	if err := d.findCandidates(ctx); err != nil {
		return err
	}
	if err := d.findPolicy(); err != nil {
		return err
	}
	if err := d.findRules(); err != nil {
		return err
	}
	if err := d.findRows(ctx); err != nil {
		return err
	}
	if err := d.askPolicy(ctx); err != nil {
		return err
	}
	if err := d.pick(); err != nil {
		return err
	}
	if err := d.arrange(); err != nil {
		return err
	}
	return d.log()
}

// findCandidates checks the request, and finds its candidates and the policy that decides.
func (d *Decider) findCandidates(ctx context.Context) (err error) {
	v, r := d.view, d.request
	clear(d.index)
	if err := r.check(v.Config, d.index); err != nil {
		return err
	}
	if d.to, err = v.route(r); err != nil {
		return err
	}
	if d.policy = v.Policy; d.to.policy != nil {
		d.policy = *d.to.policy
	}
	if d.policy.Policy == nil { // its learner has just retired
		return ErrStale
	}
	if !r.AsksCatalogue() {
		return nil
	}
	if err := d.choose(ctx, v, r); err != nil {
		return err
	}
	r.addNames(v, d.index)
	return nil
}

// route returns the variant for the request's unit.
func (v *View) route(r *Request) (to route, err error) {
	if r.ShopperID == "" && r.isTrial { // shows the placement's policy
		return to, nil
	}
	runs := v.Config.Mode == api.Experimenting && v.Routes.Runs(r.Now)
	switch {
	case r.ShopperID != "" && (runs || v.Holdout != nil):
		to.unit = abtest.Unit(v.Name, r.ShopperID)
	case runs:
		return to, api.Fieldf("/shopper_id", "is missing: the mode %q shows each shopper the same variant every "+
			"time, and needs an id of the shopper", api.Experimenting)
	case v.Holdout != nil:
		return to, api.Fieldf("/shopper_id", "is missing: the placement always shows your own page to some "+
			"shoppers (holdout_share), and needs an id of the shopper")
	}
	switch {
	case v.Holdout.HoldsOut(to.unit):
		to.variant, to.show = api.Holdout, api.ShowBaseline
		return to, nil
	case v.Config.Mode == api.Experimenting && !runs:
		to.show, to.isOutside = v.Routes.Design.Outside, true
		return to, nil
	case !runs:
		return to, nil
	}
	class := v.Routes.Class(to.unit)
	to.variant, to.show = v.Routes.Name(class), v.Routes.Show(class)
	if class < len(v.Variants) {
		to.policy = v.Variants[class]
	}
	return to, nil
}

// findPolicy finds the policy to ask, which may be one for short rows.
func (d *Decider) findPolicy() (err error) {
	v, r := d.view, d.request
	d.unseen = v.Config.Schema().Unseen(r.user, r.items)
	schema, err := v.Config.Schema().Learn(d.unseen...)
	if err != nil {
		return err
	}
	d.asked, d.made.Clipped, err = d.policyFor(v, schema, r, d.policy.Policy)
	return err
}

// findRules finds the sets that may be shown, and the caller's own page.
func (d *Decider) findRules() (err error) {
	v, r := d.view, d.request
	r.hide(v, d.index)
	r.stock.early = d.releases(v, r)
	family, err := r.family(v.Config, d.index)
	if err != nil {
		return err
	}
	d.slots, _ = family.(*assortment.Slots)
	d.x = &vitrine.Context{Feasible: family}
	d.baseline, err = r.baseline(v.Config, &d.to, d.index)
	return err
}

// findRows finds the rows and revenues of the candidates. A request that gets past it is valid.
func (d *Decider) findRows(ctx context.Context) (err error) {
	r := d.request
	if r.stock.early && r.stock.All && r.stock.from == 0 && r.revenue != nil {
		d.revenue = append(d.revenue[:0], r.revenue...)
		r.revenue = d.revenue
	}
	d.x.Revenue = r.revenue
	if d.x.Features, err = d.fetch(ctx, r); err != nil {
		return err
	}
	if d.remembers() {
		for k := range d.view.Shopper.Past {
			if i, ok := d.index[d.view.Shopper.Past[k].ID]; ok {
				d.view.Config.Schema().Remember(d.rows[i*d.width:(i+1)*d.width], &d.view.Shopper.Past[k])
			}
		}
	}
	d.estimates = offer.Estimates{Deferred: r.Defer, Note: r.note, Variant: d.to.variant, Unit: d.to.unit,
		Unmet: r.unmet, Shopper: d.view.Shopper.Name}
	if d.unseen != nil && !r.isTrial {
		return &UnseenError{d.unseen}
	}
	d.estimates.Number = r.Number()
	return nil
}

func (d *Decider) askPolicy(ctx context.Context) (err error) {
	r := d.request
	if r.len() == 0 {
		d.own.Propensity = 1
		return nil
	}
	if r.work != nil {
		defer context.AfterFunc(ctx, r.work.Stop)()
	}
	d.own, err = d.ask(d.asked, d.x, d.view.Config.Seed)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case r.work.Exceeded():
		return errSteps(r.len())
	}
	return err
}

// pick chooses the set to show: the policy's, the caller's, or a random one.
func (d *Decider) pick() (err error) {
	v, r := d.view, d.request
	o := &eventlog.Offered{
		Decision: r.Decision, Candidates: r.len(), Width: v.Config.Schema().Width(),
		Propensity: d.own.Propensity, PolicyEntry: d.policy.Entry, Mode: offer.ByPolicy,
	}
	if o.Decision == "" && !r.isTrial {
		o.Decision = r.NewID()
	}
	d.made.Offered, d.shown = o, d.own.Assortment
	switch {
	case d.to.show == api.ShowUniform:
		d.shown, err = d.explore(o, v.Config, func(rng *rand.Rand) offer.Explored {
			return offer.DrawSet(d.asked, d.own, d.x, rng)
		})
		if err == nil && r.work.Exceeded() {
			err = errSteps(r.len())
		}
	case d.showsBaseline():
		d.shown, o.Propensity, o.Mode = d.baseline, 0, offer.ByBaseline
		d.estimates.Shadowed = true
	case v.Config.Mode == api.Explore:
		share := *v.Config.ExploreShare
		d.shown, err = d.explore(o, v.Config, func(rng *rand.Rand) offer.Explored {
			if v.Config.Explore == api.BySwaps {
				return offer.ExploreSlots(d.own, d.x, share, rng)
			}
			return offer.ExploreSets(d.asked, d.own, d.x, share, rng)
		})
	}
	return err
}

// showsBaseline reports whether to show the caller's page. A trial without a baseline shows the policy's set.
func (d *Decider) showsBaseline() bool {
	v, r := d.view, d.request
	if r.isTrial && r.Baseline == nil {
		return false
	}
	return v.Config.Mode == api.Shadow || d.to.show == api.ShowBaseline || d.to.policy == nil && v.ByBaseline
}

// arrange puts the set in display order, with the policy's estimates for it.
func (d *Decider) arrange() error {
	r, o := d.request, d.made.Offered
	ordered := o.Mode == offer.ByBaseline
	if o.Mode == offer.ByPolicy && d.own.Order != nil && d.slots == nil {
		d.shown, ordered = d.own.Order, true
	}
	d.order = d.estimate(ordered)
	if r.stock.early {
		if err := r.stock.relock(d.order, int32s(d.own.Assortment)); err != nil {
			return err
		}
	}
	if d.slots != nil && o.Mode != offer.ByBaseline {
		d.certain(o.Mode == offer.ByChance)
	}
	return nil
}

// log adds the rows and candidates that the log keeps.
func (d *Decider) log() error {
	all := d.view.Config.LogItems == "all"
	d.logRules(all)
	d.fill(d.made.Offered, d.request, d.order, all)
	d.keep(d.view, d.request, d.made.Offered, d.order)
	if d.overflow {
		return errCross
	}
	return nil
}

func (d *Decider) ask(pi vitrine.Policy, x *vitrine.Context, seed uint64) (vitrine.Offer, error) {
	var offer vitrine.Offer
	rng := d.draws.Numbered(seed, d.estimates.Number, stream.Policy)
	err, _ := panics.Safely(func() error { offer = pi.Offer(x, rng); return nil })
	if err == nil {
		err = offer.Check(x.NumItems())
	}
	if err == nil && !x.Feasible.Contains(offer.Assortment) {
		err = fmt.Errorf("%v breaks the constraints", offer.Assortment)
	}
	if err != nil {
		return vitrine.Offer{}, fmt.Errorf("%w: %w", ErrPolicy, err)
	}
	offer.Propensity = min(offer.Propensity, 1) // a sum may be rounded
	return offer, nil
}

// errSteps reports that the limits on n candidates cross in too many ways to search.
func errSteps(n int) error {
	return api.Fieldf("/limits", "the groups of the limits cross, and the search for the best set of %d "+
		"candidates takes too many steps: set a filter, name fewer candidates, or drop one of the limits", n)
}

// explore returns a set from draw, and stores its propensity in o and its sampling law in d.estimates.
func (d *Decider) explore(o *eventlog.Offered, c *setup.Config,
	draw func(*rand.Rand) offer.Explored) (vitrine.Assortment, error) {
	if d.request.len() == 0 {
		return nil, nil
	}
	var e offer.Explored
	rng := d.coin.Numbered(c.Seed, d.estimates.Number, stream.Exploration)
	err, _ := panics.Safely(func() error {
		e = draw(rng)
		if !(e.Propensity >= 0 && e.Propensity <= 1) {
			return fmt.Errorf("the propensity of %v is %v", e.Shown, e.Propensity)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPolicy, err)
	}
	if o.Propensity = e.Propensity; e.ByChance {
		o.Mode = offer.ByChance
	}
	if c.LogItems == "all" { // the law numbers positions among all candidates
		d.estimates.Law = e.Law
	}
	return e.Shown, nil
}

// baseline returns the caller's own page, in display order.
func (r *Request) baseline(c *setup.Config, to *route, index map[string]int) (vitrine.Assortment, error) {
	if why := c.WhyBaseline(to.isOutside); r.Baseline == nil && why != "" && !r.isTrial {
		return nil, api.Fieldf("/baseline", "is missing: %s", why)
	}
	if len(r.Baseline) > c.MaxSize {
		return nil, api.Fieldf("/baseline", "has %d items, the placement shows at most %d", len(r.Baseline), c.MaxSize)
	}
	if r.Slots != nil && len(r.Baseline) > len(r.Slots) {
		return nil, api.Fieldf("/baseline", "has %d items, and /slots has %d: the k-th item is in the k-th slot",
			len(r.Baseline), len(r.Slots))
	}
	s, err := find("/baseline", r.Baseline, index, r.drewOnCatalogue())
	if err != nil {
		return nil, err
	}
	for k, i := range s {
		if slices.Contains(s[:k], i) {
			return nil, api.Fieldf(fmt.Sprintf("/baseline/%d", k), "%q is a duplicate", r.Baseline[k])
		}
	}
	return s, nil
}

// certain notes whether the policy's own set was found without a draw, and which one it is if a random set is shown
// instead.
func (d *Decider) certain(byChance bool) {
	e := &d.estimates
	if e.Certain = d.own.Propensity == 1; !e.Certain || !byChance || slices.Equal(d.shown, d.own.Assortment) {
		return
	}
	e.Own = make([]string, len(d.own.Assortment))
	for k, i := range d.own.Assortment {
		e.Own[k] = d.request.id(int(i))
	}
}
