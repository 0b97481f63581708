package decision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/stream"
	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/feature"
	"vitrine/service/guard"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// estimator is a policy with an estimate of the utilities: it stores f_ŵ(x_i) of each item in dst.
// Probabilities in answers come from this estimate, not from the optimistic or drawn utilities of an offer.
type estimator interface {
	Utilities(dst []float64, x *vitrine.Context)
}

// maxReleases is how often a decision may find that the items which it wants to show have changed meanwhile.
const maxReleases = 2

// Decide answers a request made at a time, after its decision is in the log.
//
// If a request has an id that was answered before, the answer is the same again. For another request with
// that id, or the same one after the placement's features changed, the error is ErrConflict. Other errors are
// *api.FieldError, ErrNotFound, ErrUnread, ErrPolicy, ErrStopped or that of ctx, after which the decision may
// or may not have been made: ask again, under the same id.
func (e *Engine) Decide(ctx context.Context, name string, r *api.Request, now int64) (*Answer, error) {
	d := deciders.Get().(*decider)
	defer d.release()
	start := time.Now()
	for attempt := 1; ; attempt++ {
		v, err := e.view(name)
		if err != nil {
			return nil, err
		}
		q, err := d.place(r, v.config.Schema())
		if err != nil {
			return nil, err
		}
		q.now, q.holds = now, attempt > maxReleases
		sum := q.sum()
		a, forgotten, err := e.repeat(ctx, name, r.Decision, sum)
		if a != nil || err != nil {
			return a, err
		}
		event := &eventlog.Event{Time: now, Placement: name}
		offered, err := d.decide(ctx, v, q)
		if unseen := new(unseenError); errors.As(err, &unseen) {
			err = cmp.Or(e.see(ctx, name, v.changed, unseen.values, now), errMoved)
		}
		if errors.Is(err, errMoved) {
			continue
		}
		if err != nil {
			return nil, err
		}
		offered.Request = sum
		if r.Payload { // of the catalogue as it is: a repeated answer has the same
			if d.estimates.Payload = v.payloads((&offer.Offer{Offered: offered}).IDs()); d.estimates.Payload != nil {
				d.answer = d.estimates.Append(d.answer[:0])
				offered.Answer = d.answer
			}
		}
		event.Body = offered
		size := 8 * (len(offered.Features) + len(offered.Revenue))
		if size <= eventlog.MaxBatch { // otherwise the entry is useless
			if d.entry, err = event.Encode(d.entry[:0]); err != nil {
				return nil, api.Fieldf("/items", "%v", err)
			}
			size = eventlog.EntrySize(d.entry)
		}
		if size > eventlog.MaxBatch {
			return nil, api.Fieldf("/items", "the decision takes %d bytes of the log, at most %d fit: send fewer items, record only the items shown, or do not ask for payloads", size, eventlog.MaxBatch)
		}
		own := &offer.Offer{Offered: offered, Estimates: d.estimates}
		var before *offer.Offer // that the leader has of an earlier request
		if v.follows {
			before, err = e.proposeOffer(ctx, v, d.entry, offered)
		} else {
			err = e.commitOffer(ctx, v, event, own, forgotten, d.entry, now)
		}
		switch {
		case err == nil:
			v.placement.latency.Add(time.Since(start))
			a := answerOf(name, own)
			if before == nil {
				e.recent.Add(&d.whole)
			} else {
				a = answerOf(name, before)
				a.Repeated = true
			}
			return a, nil
		case errors.Is(err, errMoved): // the placement has changed, or a twin of this request came first
			continue
		case ctx.Err() != nil:
			d.abandoned = true // the writer may still read what is in it
		}
		return nil, err
	}
}

// repeat returns the earlier answer to a request. A decision whose offer was removed from the log counts as
// forgotten.
func (e *Engine) repeat(ctx context.Context, name, decision string, sum [32]byte) (a *Answer, forgotten *record, err error) {
	o, forgotten, err := e.earlier(ctx, name, decision, sum)
	if o == nil {
		return nil, forgotten, err
	}
	a = answerOf(name, o)
	a.Repeated = true
	return a, nil, nil
}

// commitOffer writes an offer. The error is errMoved if the placement has changed, or a twin of the request came first.
func (e *Engine) commitOffer(ctx context.Context, v view, event *eventlog.Event, o *offer.Offer, forgotten *record, entry []byte, now int64) error {
	for urgent := false; ; {
		err := e.submit(ctx, func(b *batch) error { return b.offer(v, event, o, forgotten, entry) })
		if !errors.Is(err, errFull) {
			return err
		}
		n, err := e.expire(ctx, v.name, now, urgent)
		if err != nil {
			return err
		}
		urgent = n == 0 // the learner has no room for them, unless another caller was quicker
	}
}

// earlier returns the offer of a decision id that was given to the same request before. One whose entry was removed from the
// log counts as forgotten.
func (e *Engine) earlier(ctx context.Context, name, decision string, sum [32]byte) (o *offer.Offer, forgotten *record, err error) {
	if decision == "" {
		return nil, nil, nil
	}
	f, err := e.recall(ctx, name, decision)
	switch {
	case f == nil || err != nil:
		return nil, nil, err
	case f.offer == nil:
		return nil, f.record, nil
	case f.offer.Request != sum:
		return nil, nil, fmt.Errorf("decision id %q: %w: it was given to another request", decision, ErrConflict)
	}
	noteEntry(ctx, f.was.entry)
	return f.offer, nil, nil
}

func (e *Engine) view(name string) (view, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	p, err := e.state.named(name)
	if err != nil {
		return view{}, err
	}
	v := view{placement: p, config: p.config, changed: p.changed, worker: p.worker, items: e.state.itemsOf(p), fallback: p.fallsBack(), follows: e.follows.Load(), replica: e.replica}
	if x := p.experiment; x != nil {
		v.routes, v.challengers = x.Routes, x.workers
	}
	return v, nil
}

// decide finds the items to show. It changes only the number of the placement's next decision. The offer
// shares memory with d.
func (d *decider) decide(ctx context.Context, v view, r *request) (*eventlog.Offered, error) {
	clear(d.index)
	if err := r.check(v.config, d.index); err != nil {
		return nil, err
	}
	to, err := v.route(r)
	if err != nil {
		return nil, err
	}
	current := v.worker.Current()
	if s := v.worker.Substitute(); s != nil && v.fallback == api.FallbackVersion {
		current = s
	}
	if to.worker != nil {
		current = to.worker.Current()
	}
	if current.Policy == nil { // the learner has retired meanwhile
		return nil, errMoved
	}
	if r.asksCatalogue() {
		defer r.stock.unlock() // also if a filter makes its parser panic
		if err := d.choose(ctx, v, r); err != nil {
			return nil, err
		}
		r.addNames(d.index)
	}
	n, width := r.len(), v.config.Schema().Width()
	unseen := v.config.Schema().Unseen(r.user, r.items)
	schema, err := v.config.Schema().Learn(unseen...)
	if err != nil {
		return nil, err
	}
	asked, clipped, err := d.policyFor(v, schema, r, current.Policy)
	if err != nil {
		return nil, err
	}
	r.stock.early = d.releases(v, r)
	family, err := r.family(v.config, d.index)
	if err != nil {
		return nil, err
	}
	baseline, err := r.baseline(v.config, d.index)
	if err != nil {
		return nil, err
	}
	if r.stock.early && r.stock.All && r.stock.from == 0 && r.revenue != nil {
		d.revenue = append(d.revenue[:0], r.revenue...)
		r.revenue = d.revenue
	}
	features, err := d.fetch(ctx, r)
	if err != nil {
		return nil, err
	}
	x := &vitrine.Context{Features: features, Revenue: r.revenue, Feasible: family}
	d.estimates = offer.Estimates{Deferred: r.Defer, Note: r.note, Catalogue: r.stock.said(v.config.Record == "all"), Variant: to.variant, Unit: to.unit}
	switch c := d.estimates.Catalogue; {
	case v.config.Record == "all":
		d.estimates.Rules = r.logged(v.config, len(r.Items), maxRulesText)
	case c != nil && c.NumItems > 0:
		d.estimates.Rules = r.logged(v.config, len(r.Items), maxShortRules)
	}
	sound := &v.sound
	switch {
	case r.trial:
		sound, d.estimates.Number, d.estimates.Catalogue = new(guard.Soundness), v.upcoming.Load()+1, r.said
	case unseen != nil: // of a request without faults
		return nil, &unseenError{unseen}
	default:
		d.estimates.Number = v.number()
	}
	if clipped > 0 {
		sound.Clipped.Add(uint64(clipped))
	}
	d.considered = considered{*current, v.worker, x}
	if to.worker != nil {
		d.considered.worker = to.worker
	}
	if r.work != nil {
		defer context.AfterFunc(ctx, r.work.Stop)()
	}
	own, err := d.ask(asked, x, v.config.Seed)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case r.work.Exceeded():
		return nil, errSteps(n)
	case err != nil:
		return nil, err
	}
	slots, hasSlots := family.(*assortment.Transversal)
	o := &eventlog.Offered{
		Decision: r.Decision, Candidates: n, Width: width,
		Propensity: own.Propensity, PolicyVersion: current.Entry, Mode: offer.ByPolicy,
	}
	if o.Decision == "" {
		o.Decision = v.name + "~" + strconv.FormatUint(v.born, 10) + "." + strconv.FormatUint(d.estimates.Number, 10)
	}
	shown := own.Assortment
	switch {
	case to.show == api.ShowUniform:
		shown, err = d.explore(o, v.config, func(rng *rand.Rand) offer.Explored { return offer.DrawSet(asked, own, x, rng) })
		if err == nil && r.work.Exceeded() {
			err = errSteps(n)
		}
	case (v.config.Mode == api.Shadow || to.show == api.ShowBaseline || to.worker == nil && v.fallback == api.FallbackBaseline) && !(r.trial && r.Baseline == nil):
		shown, o.Propensity, o.Mode = baseline, 0, offer.ByBaseline
		d.estimates.Shadowed = true
	case v.config.Mode == api.Explore:
		shown, err = d.explore(o, v.config, func(rng *rand.Rand) offer.Explored {
			if v.config.Explore == api.BySlots {
				return offer.ExploreSlots(own, x, *v.config.ExploreShare, rng)
			}
			return offer.ExploreSets(asked, own, x, *v.config.ExploreShare, rng)
		})
	}
	if err != nil {
		return nil, err
	}
	ordered := o.Mode == offer.ByBaseline
	if o.Mode == offer.ByPolicy && own.Order != nil && !hasSlots {
		shown, ordered = own.Order, true
	}
	order := d.estimate(current.Policy, x, shown, own, ordered, sound)
	if r.stock.early {
		if err := r.stock.relock(order, int32s(own.Assortment)); err != nil {
			return nil, err
		}
	}
	if hasSlots && o.Mode != offer.ByBaseline {
		d.certain(r, own, shown, o.Mode == offer.ByChance)
		d.assign(slots, order)
	}
	d.fill(o, r, order, v.config.Record == "all")
	d.keep(v, r, o, order)
	if d.overflow {
		return nil, errCross
	}
	d.answer = d.estimates.Append(d.answer[:0])
	o.Answer = d.answer
	return o, nil
}

// errSteps is the error of a request of n candidates whose limits cross too much.
func errSteps(n int) error {
	return api.Fieldf("/at_most", "the groups of the limits cross, and the search for the best set of %d candidates takes too many steps: set a filter, name fewer candidates, or drop one of the limits", n)
}

// explore returns a set that draw draws, and stores its propensity in o and its law in d.estimates.
func (d *decider) explore(o *eventlog.Offered, c *setup.Config, draw func(*rand.Rand) offer.Explored) (vitrine.Assortment, error) {
	var e offer.Explored
	rng := d.coin.Numbered(c.Seed, d.estimates.Number, stream.Exploration)
	err, _ := safely(func() error {
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
	if c.Record == "all" { // the law is that of positions among all items
		d.estimates.Law = e.Law
	}
	return e.Shown, nil
}

// unseenError are values that have to be in the log before the decision.
type unseenError struct{ values []feature.Seen }

func (e *unseenError) Error() string {
	return fmt.Sprintf("%d categories have new values", len(e.values))
}

// see has values of categories written to the log, unless other requests had them meanwhile.
func (e *Engine) see(ctx context.Context, name string, changed uint64, values []feature.Seen, now int64) error {
	if e.follows.Load() {
		a, err := e.call(ctx, remoteCall{What: "see", Placement: name, Changed: changed, Seen: values})
		if err != nil {
			return err
		}
		return e.Reach(ctx, a.entry)
	}
	return e.submit(ctx, func(b *batch) error {
		p := b.state.placements[name]
		switch {
		case len(b.events) > 0:
			return errLater
		case p == nil || p.changed != changed:
			return errMoved
		}
		owner := b.state.owner(p)
		schema := owner.config.Schema()
		for _, seen := range values {
			if seen = schema.Fresh(seen); seen.Values != nil {
				b.alone = true
				b.encode(&eventlog.Event{Time: now, Placement: owner.name, Body: &eventlog.ValuesSeen{Feature: seen.Feature, Values: seen.Values}}, nil)
			}
		}
		return nil
	})
}

// baseline returns the items that the caller shows, in display order.
func (r *request) baseline(c *setup.Config, index map[string]int) (vitrine.Assortment, error) {
	switch {
	case !c.NeedsBaseline() && c.Fallback != api.FallbackBaseline: // a caller may send one before the mode that needs it begins
	case r.Baseline == nil && r.trial:
		return nil, nil
	case r.Baseline == nil && c.Mode == api.Experimenting && c.NeedsBaseline():
		return nil, api.Fieldf("/baseline", "is missing: the experiment shows it to some units, and which ones the caller does not know")
	case r.Baseline == nil && c.Mode == api.Shadow:
		return nil, api.Fieldf("/baseline", "is missing: in the mode %q it is what the caller shows", api.Shadow)
	case r.Baseline == nil:
		return nil, api.Fieldf("/baseline", "is missing: with the fallback %q it is what the placement shows while its guard has an alarm", api.FallbackBaseline)
	}
	if len(r.Baseline) > c.MaxSize {
		return nil, api.Fieldf("/baseline", "has %d items, the placement shows at most %d", len(r.Baseline), c.MaxSize)
	}
	if r.Slots != nil && len(r.Baseline) > len(r.Slots) {
		return nil, api.Fieldf("/baseline", "has %d items, and /slots has %d: the k-th item is in the k-th slot", len(r.Baseline), len(r.Slots))
	}
	s, err := find("/baseline", r.Baseline, index)
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

// ask asks the policy for its offer, and checks it.
func (d *decider) ask(pi vitrine.Policy, x *vitrine.Context, seed uint64) (vitrine.Offer, error) {
	var offer vitrine.Offer
	rng := d.draws.Numbered(seed, d.estimates.Number, stream.Policy)
	err, _ := safely(func() error { offer = pi.Offer(x, rng); return nil })
	if err == nil {
		err = offer.Check(x.NumItems())
	}
	if err == nil && !x.Feasible.Contains(offer.Assortment) {
		err = fmt.Errorf("%v breaks the constraints", offer.Assortment)
	}
	if err == nil && !(offer.Propensity >= 0 && offer.Propensity <= 1) {
		err = fmt.Errorf("the propensity is %v", offer.Propensity)
	}
	if err != nil {
		return vitrine.Offer{}, fmt.Errorf("%w: %w", ErrPolicy, err)
	}
	return offer, nil
}

// estimate stores the probabilities of the items shown and returns them in display order, by decreasing
// probability unless the request or the policy fixes the order. own is the policy's offer.
func (d *decider) estimate(pi vitrine.Policy, x *vitrine.Context, shown vitrine.Assortment, own vitrine.Offer, ordered bool, sound *guard.Soundness) []int32 {
	order := int32s(shown)
	e := &d.estimates
	if e.Shadowed {
		sorted := slices.Clone(shown)
		slices.Sort(sorted)
		e.Agrees = slices.Equal(sorted, own.Assortment)
	}
	estimator, ok := pi.(estimator)
	if !ok {
		return order
	}
	u, ok := d.utilities(estimator, shown)
	sound.Predicted(ok || u == nil)
	if !ok {
		return order
	}
	if !ordered {
		byItem := slices.Clone(u)
		at := make([]int, len(shown))
		for k := range at {
			at[k] = k
		}
		slices.SortStableFunc(at, func(a, b int) int { return cmp.Compare(byItem[b], byItem[a]) })
		for j, k := range at {
			order[j], u[j] = int32(shown[k]), byItem[k]
		}
	}
	effects := placeEffects(pi)
	addEffects(u, effects)
	p := make([]float64, len(u)+1)
	vitrine.Probabilities(p, u)
	e.Outside, e.Probability = p[0], p[1:]
	e.Expected = expectedRevenue(p[1:], order, x.Revenue)
	if e.Shadowed {
		page := []int(own.Assortment)
		if own.Order != nil {
			page = own.Order
		}
		u, ok := d.utilities(estimator, page)
		if !ok {
			e.Probability, e.Outside, e.Expected = nil, 0, 0
			return order
		}
		addEffects(u, effects)
		p := make([]float64, len(u)+1)
		vitrine.Probabilities(p, u)
		e.Shadow = expectedRevenue(p[1:], page, x.Revenue)
	}
	return order
}

func int32s(items []int) []int32 {
	all := make([]int32, len(items))
	for k, i := range items {
		all[k] = int32(i)
	}
	return all
}

// placeEffects returns the position effects that a policy has learned, nil if it has none.
func placeEffects(pi vitrine.Policy) []float64 {
	if p, ok := pi.(interface{ PlaceEffects() []float64 }); ok {
		return p.PlaceEffects()
	}
	return nil
}

// addEffects adds the effects of the places to the utilities of items in display order.
func addEffects(u, effects []float64) {
	for p := range u {
		u[p] += vitrine.PlaceEffect(effects, p)
	}
}

func expectedRevenue[I int | int32](p []float64, items []I, r []float64) float64 {
	sum := 0.0
	for k, i := range items {
		sum += float64(p[k] * offer.Revenue(r, int(i)))
	}
	return sum
}

// utilities returns the policy's utilities for some items, in d's memory. ok is false if the policy fails or a utility is unusable.
func (d *decider) utilities(pi estimator, items []int) (u []float64, ok bool) {
	d.u = resize(d.u, len(items))
	if len(items) == 0 {
		return d.u, true
	}
	width := d.width
	d.part = resize(d.part, len(items)*width)
	for k, i := range items {
		d.row(d.part[k*width:(k+1)*width], i)
	}
	part := &vitrine.Context{Features: mat.NewDense(len(items), width, d.part)}
	err, _ := safely(func() error { pi.Utilities(d.u, part); return nil })
	if err != nil {
		return nil, false
	}
	for _, v := range d.u {
		if !(math.Abs(v) <= 700) {
			return d.u, false
		}
	}
	return d.u, true
}

// fill stores the rows that the log keeps, in the order of the request's items: those of the items shown and, if all are recorded, those
// that the request has brought. The catalogue has the others.
func (d *decider) fill(o *eventlog.Offered, r *request, order []int32, all bool) {
	if all && r.stock.items == nil {
		o.ItemIDs = make([]string, r.len())
		for i := range o.ItemIDs {
			o.ItemIDs[i] = r.id(i)
		}
		o.Features, o.Revenue, o.Shown = d.rows, slices.Clone(r.revenue), order
		return
	}
	sorted := slices.Clone(order)
	for i := range int32(r.stock.from) {
		if all && !slices.Contains(order, i) {
			sorted = append(sorted, i)
		}
	}
	if c := d.estimates.Catalogue; len(sorted) == 0 && c != nil {
		if all { // the rows of the others have the same columns of the user
			sorted = append(sorted, 0)
		} else {
			c.NumItems, c.Slots = 0, nil
		}
	}
	slices.Sort(sorted)
	k, width := len(sorted), o.Width
	o.ItemIDs, o.Shown = make([]string, k), make([]int32, len(order))
	d.recorded = resize(d.recorded, k*(width+1))
	o.Features = d.recorded[:k*width]
	if r.revenue != nil && k > 0 {
		o.Revenue = d.recorded[k*width:]
	}
	for j, i := range sorted {
		o.ItemIDs[j] = r.id(int(i))
		d.row(o.Features[j*width:(j+1)*width], int(i))
		if r.revenue != nil {
			o.Revenue[j] = r.revenue[i]
		}
	}
	for j, i := range order {
		at, _ := slices.BinarySearch(sorted, i)
		o.Shown[j] = int32(at)
	}
}

// keep notes a decision in d, unless the log has it whole or its candidates are too many. Of a decision whose candidates the log has,
// it notes rules that are too long for the log.
func (d *decider) keep(v view, r *request, o *eventlog.Offered, order []int32) {
	w := &d.whole
	w.Placement = ""
	n := r.len()
	onlyRules := knowsCandidates(&offer.Offer{Estimates: d.estimates})
	switch {
	case r.trial || v.config.Record == "all":
		return
	case onlyRules && d.estimates.Rules == tooManyRules:
		*w = offer.Whole{Placement: v.name, Born: v.born, Decision: o.Decision, Number: d.estimates.Number, Rules: r.logged(v.config, len(r.Items), maxRulesText)}
		return
	case onlyRules || d.short != nil || n*(o.Width+1) > offer.MaxWhole:
		return
	}
	w.Placement, w.Born, w.Decision, w.Number, w.Rules = v.name, v.born, o.Decision, d.estimates.Number, r.logged(v.config, n, maxRulesText)
	w.IDs = slices.Grow(w.IDs[:0], n)
	for i := range n {
		w.IDs = append(w.IDs, r.id(i))
	}
	w.Features = append(w.Features[:0], d.rows[:n*o.Width]...)
	w.Revenue = append(w.Revenue[:0], r.revenue...)
	w.Shown = append(w.Shown[:0], order...)
}

// certain notes the policy's own set, if it was found without a draw.
func (d *decider) certain(r *request, own vitrine.Offer, shown vitrine.Assortment, byChance bool) {
	e := &d.estimates
	if e.Certain = own.Propensity == 1; !e.Certain || !byChance || slices.Equal(shown, own.Assortment) {
		return
	}
	e.Own = make([]string, len(own.Assortment))
	for k, i := range own.Assortment {
		e.Own[k] = r.id(int(i))
	}
}

// assign puts the items of an order into the slots.
func (d *decider) assign(family *assortment.Transversal, order []int32) {
	items := make([]int, len(order))
	p := map[int]float64{}
	for k, i := range order {
		items[k] = int(i)
		if d.estimates.Probability != nil {
			p[int(i)] = d.estimates.Probability[k]
		}
	}
	for k, i := range family.Assign(nil, items) {
		order[k] = int32(i)
		if d.estimates.Probability != nil {
			d.estimates.Probability[k] = p[i]
		}
	}
}
