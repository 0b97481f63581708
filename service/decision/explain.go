package decision

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/bandit"
	"vitrine/internal/stream"
	"vitrine/service/api"
	"vitrine/service/catalogue"
	"vitrine/service/eventlog"
	"vitrine/service/learner"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

const (
	maxExplained = 50     // items whose utility is split among the features
	maxTried     = 10_000 // candidates of a request that is only tried

	onlyShown = "the candidates that were not shown are no longer in memory, and the log of this placement does not have them. With record: all it keeps them"
)

// matter is what an explanation is made of.
type matter struct {
	config  *setup.Config
	answer  *Answer
	policy  learner.Published
	name    string   // of the policy
	number  uint64   // of the decision, with which the policy drew
	request *request // the candidates that are known, and the rules
	x       *vitrine.Context
	shown   []int32 // of the candidates, in display order

	candidates int
	ruled      bool // whether the request has its rules
	unknown    []string
}

// Try returns the answer that a request would get now, and its explanation. It records nothing and changes nothing. The
// placement's categories do not learn the values of the request, and in the mode shadow a request without a
// baseline gets the policy's set. Errors are those of Decide, except ErrConflict and ErrUnread.
func (e *Engine) Try(ctx context.Context, name string, r *api.Request, now int64) (*Answer, *api.Explanation, error) {
	v, err := e.view(name)
	if err != nil {
		return nil, nil, err
	}
	d := deciders.Get().(*decider)
	defer d.release()
	q, err := d.place(r, v.config.Schema())
	if err != nil {
		return nil, nil, err
	}
	q.now = now
	if err := d.inline(ctx, v, q); err != nil {
		return nil, nil, err
	}
	q.trial = true
	offered, err := d.decide(ctx, v, q)
	if err != nil {
		return nil, nil, err
	}
	if r.Decision == "" {
		offered.Decision = ""
	}
	a := answerOf(name, &offer.Offer{Offered: offered, Estimates: d.estimates})
	if r.Payload {
		a.Payload = v.payloads(a.Shown)
	}
	m := &matter{
		config: v.config, answer: a, policy: d.considered.policy, name: d.considered.worker.PolicyName(), number: d.estimates.Number,
		request: q, x: d.considered.x, candidates: q.len(), ruled: true,
	}
	index := q.places()
	for _, id := range a.Shown {
		m.shown = append(m.shown, int32(index[id]))
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	return a, m.explain(), nil
}

// inline makes the candidates of the catalogue items of the request, so that the catalogue does not have to be locked while
// the decision is explained.
func (d *decider) inline(ctx context.Context, v view, q *request) error {
	if !q.asksCatalogue() {
		if len(q.Items) > maxTried {
			return api.Fieldf("/items", "%d items: at most %d can be tried", len(q.Items), maxTried)
		}
		return nil
	}
	clear(d.index)
	defer func() { q.stock.unlock(); q.stock.items = nil }()
	if err := q.check(v.config, d.index); err != nil {
		return err
	}
	if err := d.choose(ctx, v, q); err != nil {
		return err
	}
	n := q.len()
	if n > maxTried {
		return api.Fieldf("/candidates", "%d items of the catalogue are candidates: at most %d can be tried: name fewer, or set a filter", n, maxTried)
	}
	for i, l := range q.AtMost {
		if err := q.checkAttribute(l, fmt.Sprintf("/at_most/%d", i)); err != nil {
			return err
		}
	}
	q.said = q.stock.said(false)
	q.own(v.config)
	return nil
}

// own gives the request copies of its candidates from the catalogue, with their spaces and groups.
func (q *request) own(c *setup.Config) {
	q.keepGroups(c)
	n := q.len()
	request := *q.Request
	items, values := make([]api.Item, n), make([]api.Item, n)
	for i := range n {
		items[i].ID = q.id(i)
		if values[i].ID = items[i].ID; i < len(q.items) {
			items[i].Space, values[i].Features = q.Items[i].Space, q.items[i].Features
		} else {
			items[i].Space, values[i].Features = new(q.stock.items.Space(q.stock.slot(i))), slices.Clone(q.stock.items.Features(q.stock.slot(i)))
		}
	}
	q.revenue = slices.Clone(q.revenue)
	request.Items, request.Candidates, request.Filter = items, nil, ""
	q.Request, q.items, q.stock.Selection, q.stock.from = &request, values, catalogue.Selection{}, 0
}

// places returns where the candidates of a request without a catalogue are.
func (r *request) places() map[string]int {
	index := make(map[string]int, len(r.Items))
	for i := range r.Items {
		index[r.Items[i].ID] = i
	}
	return index
}

// Explain explains a remembered decision, as far as the log and the policies that are still there allow it. Errors are those
// of [Engine.Decision].
func (e *Engine) Explain(ctx context.Context, placement, id string) (*api.Explanation, error) {
	placement, err := e.placementOf(ctx, placement, id)
	if err != nil {
		return nil, err
	}
	f, err := e.recallNow(ctx, placement, id)
	if err != nil {
		return nil, err
	}
	if f == nil || f.offer == nil {
		return nil, e.missing(placement, id)
	}
	v, err := e.view(placement)
	if err != nil {
		return nil, err
	}
	o, whole := e.recent.Complete(v.name, v.born, f.offer)
	var unknown []string
	var q *request
	e.mu.RLock()
	mine, sameRows := f.was.isOf(v.learner), f.was.entry > v.rows
	e.mu.RUnlock()
	if knowsCandidates(o) && sameRows && v.items != nil {
		rebuilt, all, err := e.whole(ctx, v, o)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			unknown = append(unknown, "the candidates that were not shown: "+err.Error())
		default:
			o, q = &offer.Offer{Offered: all, Estimates: o.Estimates}, rebuilt
		}
	}
	w := v.worker
	if v.routes != nil {
		if class := v.routes.ClassOf(o.Variant); class >= 0 && class < len(v.challengers) {
			w = cmp.Or(v.challengers[class], w)
		}
	}
	m := &matter{
		config: v.config, answer: answerOf(placement, o), policy: w.PolicyOf(o.PolicyVersion), name: w.PolicyName(),
		number: o.Number, shown: o.Shown, candidates: o.Candidates, unknown: unknown,
	}
	if !mine || o.Width != v.config.Schema().Width() {
		m.policy.Policy = nil
		m.unknown = append(m.unknown, "the utilities: the features or the learner of the placement have changed since")
	}
	if o.Variant != "" && (v.routes == nil || f.was.entry <= v.routes.Number) {
		m.policy.Policy = nil
		m.unknown = append(m.unknown, fmt.Sprintf("the utilities: the experiment of the variant %q has ended", o.Variant))
	}
	m.x = &vitrine.Context{Revenue: o.Revenue}
	if n := len(o.ItemIDs); n > 0 {
		m.x.Features = mat.NewDense(n, o.Width, o.Features)
	}
	if q != nil {
		m.request, m.ruled = q, o.Rules != tooManyRules
		return m.explain(), nil
	}
	m.request = requestOf(v.config, o.Offered, mine)
	m.ruled = (whole || v.config.Record == "all") && m.request.rule(o.Rules)
	return m.explain(), nil
}

// whole returns the request of an offer whose candidates are partly of the catalogue, and the offer with all of them.
func (e *Engine) whole(ctx context.Context, v view, o *offer.Offer) (*request, *eventlog.Offered, error) {
	if o.Candidates > maxTried {
		return nil, nil, fmt.Errorf("%d items were candidates, and an explanation has at most %d", o.Candidates, maxTried)
	}
	items := v.items.Freeze()
	if err := Rewind(ctx, e.store, items, o.Catalogue.Version, maxUndone); err != nil {
		return nil, nil, err
	}
	all, err := Whole(o, items)
	if err != nil {
		return nil, nil, err
	}
	some, err := catalogue.Restore(items.Split().Schema(), items.Version, slices.Values(items.Some(o.Catalogue.EachSlot())))
	if err != nil {
		return nil, nil, err
	}
	brought := o.Candidates - o.Catalogue.Candidates()
	q := requestOf(v.config, &eventlog.Offered{ItemIDs: all.ItemIDs[:brought], Width: o.Width, Features: all.Features}, true)
	q.rule(o.Rules)
	if _, err := q.lock(ctx, some, v.config); err != nil {
		return nil, nil, err
	}
	defer func() { q.stock.unlock(); q.stock.items = nil }()
	q.stock.items, q.stock.from, q.stock.n, q.stock.All, q.revenue, q.spaced = some, brought, some.Len(), true, all.Revenue, q.spaced || brought == 0
	q.own(v.config)
	return q, all, nil
}

// requestOf returns the request of an offer as far as the log has it: the candidates, with their categories.
func requestOf(c *setup.Config, o *eventlog.Offered, hasRows bool) *request {
	q := &request{Request: &api.Request{Items: make([]api.Item, len(o.ItemIDs))}, items: make([]api.Item, len(o.ItemIDs)), revenue: o.Revenue}
	s := c.Schema()
	for i, id := range o.ItemIDs {
		q.Items[i].ID, q.items[i].ID = id, id
		q.items[i].Features = make(api.Values, s.NumItem())
		for k, p := range s.Parts() {
			slot, ok := s.Item(p.Name)
			if !hasRows || !ok || !s.IsCategory(p.Name) {
				continue
			}
			row := o.Features[i*o.Width : (i+1)*o.Width]
			if q.items[i].Features[slot] = s.Value(row, k); q.items[i].Features[slot].Kind == api.Missing { // values that share a column
				q.items[i].Features[slot] = api.Text(p.Name, fmt.Sprint("column ", slices.Index(row[p.From:p.From+p.Size], 1)))
			}
		}
	}
	return q
}

// explain makes the explanation.
func (m *matter) explain() *api.Explanation {
	x := &api.Explanation{
		Decision: m.answer.Decision, Placement: m.answer.Placement, By: offer.ByNames[m.answer.By],
		Policy: m.name, DecidedBy: m.answer.PolicyVersion, Version: m.policy.Entry, SamePolicy: m.policy.Entry == m.answer.PolicyVersion && m.policy.Policy != nil,
		Candidates: m.candidates, Known: m.x.NumItems(), Attribution: "none", Compared: "none", Items: []api.Explained{}, Unknown: m.unknown,
	}
	m.list(x)
	e, ok := m.policy.Policy.(bandit.Explainer)
	switch {
	case m.policy.Policy == nil || x.Known == 0:
		return x
	case !ok:
		x.Unknown = append(x.Unknown, fmt.Sprintf("the utilities: the policy %s does not state them", m.name))
		return x
	}
	if err, _ := safely(func() error { m.give(x, e); return nil }); err != nil {
		x.Unknown = append(x.Unknown, fmt.Sprintf("the reasons: the policy fails: %v", err))
	}
	return x
}

// list lists what is shown.
func (m *matter) list(x *api.Explanation) {
	for k, id := range m.answer.Shown[:min(len(m.answer.Shown), maxExplained)] {
		item := api.Explained{ID: id, Position: k + 1, Revenue: offer.Revenue(m.x.Revenue, int(m.shown[k]))}
		if m.answer.Probability != nil {
			item.Probability = &m.answer.Probability[k]
		}
		if m.answer.Slots != nil {
			item.Slot = m.answer.Slots[k]
		}
		x.Items = append(x.Items, item)
	}
}

// give adds what the policy says.
func (m *matter) give(x *api.Explanation, e bandit.Explainer) {
	if a, ok := m.policy.Policy.(interface{ Families() []bandit.Weight }); ok {
		for _, w := range a.Families() {
			x.Families = append(x.Families, api.FamilyShare(w))
		}
	}
	n := x.Known
	mean, sd := make([]float64, n), make([]float64, n)
	hasMean, hasSD := e.Value(mean, sd, m.x.Features)
	why := e.Reasons(m.x, new(stream.Stream).Numbered(m.config.Seed, m.number, stream.Policy))
	x.Cause = string(why.By)
	switch draws := why.By == bandit.ByDraw || why.By == bandit.BySlot; {
	case why.By == bandit.ByChance:
		why.Index = nil
	case draws && !x.SamePolicy:
		why.Index = nil
		x.Unknown = append(x.Unknown, "what was drawn: the version of the policy that decided is no longer there")
	case why.By == bandit.BySlot && x.Known < x.Candidates:
		why.Index = nil
		x.Unknown = append(x.Unknown, "what was drawn: "+onlyShown)
	}
	if !hasMean {
		x.Unknown = append(x.Unknown, fmt.Sprintf("the utilities: the policy %s has none", x.Policy))
		return
	}
	reference := make([]float64, m.config.Schema().Width())
	if x.Attribution = "linear"; !e.IsLinear() {
		x.Attribution = "shapley"
		for i := range n {
			for j, v := range m.x.Features.RawRowView(i) {
				reference[j] += (v - reference[j]) / float64(i+1) // exact if all are equal
			}
		}
	}
	for k := range x.Items {
		item, i := &x.Items[k], int(m.shown[k])
		item.Utility = usable(mean[i])
		if hasSD {
			item.SD = usable(sd[i])
		}
		if why.Index != nil {
			item.Index = usable(why.Index[i])
			if why.Family != nil {
				item.Family = why.Family[i]
			}
		}
		row := m.x.Features.RawRowView(i)
		base, list := contributionsOf(e, m.config.Schema(), row, reference)
		if item.Base = usable(base); item.Utility != nil && item.Base != nil {
			item.Contributions = list
		}
	}
	u := mean
	x.Compared = "utility"
	if why.IsBest && why.Index != nil {
		u, x.Compared = why.Index, "index"
	}
	m.compare(x, u)
}

// compare compares the set shown with others by the utilities u.
func (m *matter) compare(x *api.Explanation, u []float64) {
	for _, v := range u {
		if usable(v) == nil {
			x.Compared = "none"
			return
		}
	}
	shown := make(vitrine.Assortment, len(m.shown))
	for k, i := range m.shown {
		shown[k] = int(i)
	}
	slices.Sort(shown)
	earns := vitrine.ExpectedRevenue(shown, u, m.x.Revenue)
	x.Revenue = &earns
	if x.Known < x.Candidates {
		x.Unknown = append(x.Unknown, "the next-best set and what the rules cost: "+onlyShown)
		return
	}
	if m.answer.CatalogueVersion != 0 && m.request.groups == nil && len(m.request.byCatalogue(m.config)) > 0 {
		x.Unknown = append(x.Unknown, "the next-best set and what the rules cost: a rule limits items by an attribute or a group, which the log does not have. Try the request to see them")
		return
	}
	if m.request.capacity(m.config) != nil && !m.request.trial && !m.request.spaced {
		x.Unknown = append(x.Unknown, "the next-best set and what the rules cost: a capacity bounds the spaces of the items, which the log does not have. Try the request to see them")
		return
	}
	if !m.ruled {
		x.Unknown = append(x.Unknown, "the rules of the request: the log does not have them. Sets are compared by the rules of the placement")
	}
	v := &rivals{request: m.request, config: m.config, index: m.request.places(), u: u, r: m.x.Revenue}
	if s, revenue, ok := v.next(shown); ok {
		x.Next = &api.OtherSet{Items: make([]string, len(s)), Revenue: revenue, MissedBy: earns - revenue}
		for k, i := range s {
			x.Next.Items[k] = m.request.id(i)
		}
	}
	x.Rules = v.rules()
}
