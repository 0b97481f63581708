package page

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/bandit"
	"vitrine/internal/panics"
	"vitrine/internal/stream"
	"vitrine/service/api"
	"vitrine/service/catalogue"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

const (
	maxExplained = 50      // items with utilities split among features
	maxTried     = 100_000 // candidates of a trial: some seconds

	// Unseen begins a reason why the candidates that were not shown are unknown.
	Unseen = "the candidates that were not shown: "

	onlyShown = "the candidates that were not shown are no longer in memory, and the log of this placement does " +
		"not have them. With \"log_items\": \"all\" it keeps them"
)

// averaging is a policy that averages utility families.
type averaging interface{ Families() []bandit.Weight }

// explanation collects what an explanation is made from.
type explanation struct {
	placement string
	config    *setup.Config
	offer     *offer.Offer
	ids       []string // of the items shown
	policy    Policy   // decided, or came later
	request   *Request // the known candidates, and the rules
	x         *vitrine.Context
	shown     []int32   // among the candidates, in display order
	ruled     bool      // whether the rules are known
	hasRows   bool      // whether the rows have the placement's present features
	typical   []float64 // a row with the shopper columns of the recent mean shopper, or nil
	unknown   []string
}

// Try decides a request without recording anything, and explains the decision. The placement's categories do not learn
// the request's values. In shadow mode, a request without a baseline gets the policy's set. It returns the errors of
// [Decider.Decide] except *UnseenError.
//
// The explanation compares with the shopper of the row typical, or with the request's own if that is nil.
func Try(ctx context.Context, v *View, r *api.Request, now int64, typical []float64,
	number func() uint64) (*offer.Offer, *api.Explanation, error) {
	d := &Decider{index: map[string]int{}} // not from the pool: the offer keeps its memory
	q, err := d.Read(v, r)
	if err != nil {
		return nil, nil, err
	}
	q.Now, q.Number = now, number
	if err := d.inline(ctx, v, q); err != nil {
		return nil, nil, err
	}
	q.isTrial = true
	made, err := d.Decide(ctx, v, q)
	if err != nil {
		return nil, nil, err
	}
	o := &made.Offer
	e := &explanation{placement: v.Name, config: v.Config, offer: o, ids: o.IDs(), policy: d.policy, request: q, x: d.x,
		ruled: true, hasRows: true, typical: typical}
	for _, id := range e.ids {
		e.shown = append(e.shown, int32(d.index[id]))
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	return o, e.explain(), nil
}

// TrialSize bounds the bytes that [Try] takes: for the decision, and for each candidate a copy, its places by id, and
// rows for the utilities and the policy's gradients.
func (v *View) TrialSize(r *api.Request) int64 {
	n := len(r.Items)
	if q := (&Request{Request: r}); v.Catalogue != nil && q.AsksCatalogue() {
		if n += len(r.Candidates); r.Candidates == nil {
			n += v.Catalogue.Head().Items
		}
	}
	n = min(n, maxTried)
	const copies, rows = 2, 4
	return v.CatalogueSize(r) + copies*v.Config.RequestSize(n) + int64(n)*int64(rows*8*v.Config.Schema().Width())
}

// inline copies the catalogue's candidates into the request, so that the explanation does not lock the catalogue.
func (d *Decider) inline(ctx context.Context, v *View, q *Request) error {
	if !q.AsksCatalogue() {
		if len(q.Items) > maxTried {
			return api.Fieldf("/items", "%d items: at most %d can be tried", len(q.Items), maxTried)
		}
		return nil
	}
	clear(d.index)
	defer func() { q.stock.unlock(); q.stock.items = nil }()
	if err := q.check(v.Config, d.index); err != nil {
		return err
	}
	if err := d.choose(ctx, v, q); err != nil {
		return err
	}
	n := q.len()
	if n > maxTried {
		return api.Fieldf("/candidates", "%d items of the catalogue are candidates, and at most %d can be tried: set a "+
			"filter that leaves fewer, or name fewer candidates", n, maxTried)
	}
	if err := q.checkLimits(v.Config); err != nil {
		return err
	}
	q.said = q.stock.said(false)
	q.own(v.Config)
	return nil
}

// own copies the catalogue's candidates, with their spaces and groups, into the request.
func (q *Request) own(c *setup.Config) {
	q.keepGroups(c)
	n := q.len()
	request := *q.Request
	items, values := make([]api.Item, n), make([]api.Item, n)
	for i := range n {
		items[i].ID = q.id(i)
		if values[i].ID = items[i].ID; i < len(q.items) {
			items[i].Space, values[i].Features = q.Items[i].Space, q.items[i].Features
		} else {
			items[i].Space, values[i].Features = new(q.stock.items.Space(q.stock.slot(i))),
				slices.Clone(q.stock.items.Features(q.stock.slot(i)))
		}
	}
	q.revenue = slices.Clone(q.revenue)
	request.Items, request.Candidates, request.Filter = items, nil, ""
	q.Request, q.items, q.stock.Selection, q.stock.from = &request, values, catalogue.Selection{}, 0
}

// places indexes the candidates of a request without a catalogue by id.
func (r *Request) places() map[string]int {
	index := make(map[string]int, len(r.Items))
	for i := range r.Items {
		index[r.Items[i].ID] = i
	}
	return index
}

// Logged is a decision from the log, as far as the log, the catalogue and the remaining policies describe it.
type Logged struct {
	*offer.Offer
	Complete bool      // whether the offer lists all candidates
	Request  *Request  // from [Rebuild]; nil derives it from the offer
	OwnRows  bool      // whether the offer has the current features and came from the current learner
	SameRows bool      // whether it has the current features
	Typical  []float64 // a row with the columns of the mean shopper lately; nil compares with the offer's own
	Policy   Policy    // the one that decided or, if that is gone, the current one; its Policy is nil if neither fits
	Unknown  []string  // the missing facts, and why they are missing
}

// Explain explains a decision from the log.
func Explain(v *View, l *Logged) *api.Explanation {
	o := l.Offer
	e := &explanation{placement: v.Name, config: v.Config, offer: o, ids: o.IDs(), policy: l.Policy, shown: o.Shown,
		unknown: l.Unknown, x: &vitrine.Context{Revenue: o.Revenue},
		hasRows: l.SameRows && o.Width == v.Config.Schema().Width(), typical: l.Typical}
	if n := len(o.ItemIDs); n > 0 {
		e.x.Features = mat.NewDense(n, o.Width, o.Features)
	}
	if e.request = l.Request; e.request != nil {
		e.ruled = o.Rules != tooManyRules
		return e.explain()
	}
	e.request = requestOf(v.Config, o.Offered, l.OwnRows)
	e.ruled = (l.Complete || v.Config.LogItems == "all") && e.request.rule(o.Rules)
	return e.explain()
}

// MaxRebuilt is the largest number of candidates that the explanation of a decision in the log covers.
const MaxRebuilt = 10_000

// Rebuild returns the request behind an offer with candidates from the catalogue, and the offer with all candidates.
// items must be the catalogue at the offer's version.
func Rebuild(ctx context.Context, c *setup.Config, o *offer.Offer,
	items *catalogue.Frozen) (*Request, *offer.Offer, error) {
	all, err := Whole(o, items)
	if err != nil {
		return nil, nil, err
	}
	some, err := catalogue.Restore(items.Split().Schema(), items.Version,
		slices.Values(items.Some(o.Catalogue.EachSlot())))
	if err != nil {
		return nil, nil, err
	}
	brought := o.Candidates - o.Catalogue.Candidates()
	q := requestOf(c, &eventlog.Offered{ItemIDs: all.ItemIDs[:brought], Width: o.Width, Features: all.Features}, true)
	q.rule(o.Rules)
	if _, err := q.lock(ctx, some, c); err != nil {
		return nil, nil, err
	}
	defer func() { q.stock.unlock(); q.stock.items = nil }()
	q.stock.items, q.stock.from, q.stock.n, q.stock.All, q.revenue, q.spaced = some, brought, some.Len(), true,
		all.Revenue, q.spaced || brought == 0
	q.own(c)
	return q, &offer.Offer{Offered: all, Estimates: o.Estimates}, nil
}

// requestOf returns the request behind an offer as far as the log holds it: the candidates, with their categories.
func requestOf(c *setup.Config, o *eventlog.Offered, hasRows bool) *Request {
	q := &Request{Request: &api.Request{Items: make([]api.Item, len(o.ItemIDs))},
		items: make([]api.Item, len(o.ItemIDs)), revenue: o.Revenue}
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
			if q.items[i].Features[slot] = s.Value(row,
				k); q.items[i].Features[slot].Kind == api.Missing { // several values share a column
				q.items[i].Features[slot] = api.Text(p.Name, fmt.Sprint("column ",
					slices.Index(row[p.From:p.From+p.Size], 1)))
			}
		}
	}
	return q
}

// explain builds the explanation.
func (m *explanation) explain() *api.Explanation {
	x := &api.Explanation{
		Decision: m.offer.Decision, Placement: m.placement, Source: offer.SourceNames[m.offer.Mode],
		Policy: m.policy.Name(), PolicyEntry: m.offer.PolicyEntry, ExplainedByEntry: m.policy.Entry,
		SamePolicy: m.policy.Entry == m.offer.PolicyEntry && m.policy.Policy != nil,
		Candidates: m.offer.Candidates, Known: m.x.NumItems(), Attribution: "none", Compared: "none",
		Items: []api.Explained{}, Unmet: m.offer.Unmet, Unknown: m.unknown,
	}
	m.list(x)
	if m.hasRows && x.Known > 0 {
		x.Shopper = m.shopper()
	}
	e, ok := m.policy.Policy.(bandit.Explainer)
	switch {
	case m.policy.Policy == nil:
		return x
	case x.Known == 0:
		if x.Candidates > 0 {
			x.Unknown = append(x.Unknown, onlyShown)
		}
		return x
	case !ok:
		x.Unknown = append(x.Unknown, fmt.Sprintf("the utilities: the policy %s does not state them", x.Policy))
		return x
	}
	if err, _ := panics.Safely(func() error { m.give(x, e); return nil }); err != nil {
		x.Unknown = append(x.Unknown, fmt.Sprintf("the reasons: the policy fails: %v", err))
	}
	return x
}

func (m *explanation) list(x *api.Explanation) {
	slots := offer.SlotIDs(m.offer.Note)
	for k, id := range m.ids[:min(len(m.ids), maxExplained)] {
		item := api.Explained{ID: id, Position: k + 1, Revenue: offer.Revenue(m.x.Revenue, int(m.shown[k]))}
		if m.offer.Probability != nil {
			item.Probability = &m.offer.Probability[k]
		}
		if slots != nil {
			item.Slot = slots[k]
		}
		x.Items = append(x.Items, item)
	}
}

// shopper returns who came. All rows have the same columns of the shopper.
func (m *explanation) shopper() (list []api.FeatureValue) {
	s := m.config.Schema()
	for k, p := range s.Parts() {
		if _, ok := s.User(p.Name); ok {
			list = append(list, api.FeatureValue{Feature: p.Name,
				Value: valueOf(s.Value(m.x.Features.RawRowView(0), k))})
		}
	}
	return list
}

// give adds the policy's own account.
func (m *explanation) give(x *api.Explanation, e bandit.Explainer) {
	if a, ok := m.policy.Policy.(averaging); ok {
		for _, w := range a.Families() {
			x.Families = append(x.Families, api.FamilyShare(w))
		}
	}
	n := x.Known
	mean, sd := make([]float64, n), make([]float64, n)
	hasMean, hasSD := e.Value(mean, sd, m.x.Features)
	why := m.reasons(x, e)
	if !hasMean {
		x.Unknown = append(x.Unknown, fmt.Sprintf("the utilities: the policy %s has none", x.Policy))
		return
	}
	x.Attribution = "shapley"
	if e.IsLinear() {
		x.Attribution = "linear"
	}
	reference := m.reference(n)
	x.Typical = m.typical != nil
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

// reasons returns why the policy chose its set, without the numbers that are not known.
func (m *explanation) reasons(x *api.Explanation, e bandit.Explainer) bandit.Reasons {
	if m.x.Feasible == nil && m.ruled && m.unknownRules(x) == "" {
		m.x.Feasible, _ = m.request.family(m.config, m.request.places()) // nil if it has no set
	}
	why := e.Reasons(m.x, new(stream.Stream).Numbered(m.config.Seed, m.offer.Number, stream.Policy))
	x.Cause = string(why.By)
	switch draws := why.By == bandit.ByDraw || why.By == bandit.BySlot; {
	case why.By == bandit.ByChance:
		why.Index = nil
	case draws && !x.SamePolicy:
		why.Index = nil
		x.Unknown = append(x.Unknown, "what was drawn: the version of the policy that decided is no longer there")
	case why.By == bandit.BySlot && x.Known < x.Candidates:
		why.Index = nil
		x.Unknown = append(x.Unknown, "what was drawn: "+m.onlyShown())
	}
	return why
}

// reference is the row with which contributions compare: the mean of the n known rows, with the columns of the mean
// shopper.
func (m *explanation) reference(n int) []float64 {
	s := m.config.Schema()
	reference := make([]float64, s.Width())
	for i := range n {
		for j, v := range m.x.Features.RawRowView(i) {
			reference[j] += (v - reference[j]) / float64(i+1) // exact if all are equal
		}
	}
	for k, p := range s.Parts() {
		if _, ok := s.User(p.Name); ok && m.typical != nil {
			s.Set(reference, k, m.typical[p.From:p.From+p.Size])
		}
	}
	return reference
}

// onlyShown says that the other candidates are unknown, and why if no other reason is given.
func (m *explanation) onlyShown() string {
	if slices.ContainsFunc(m.unknown, func(why string) bool { return strings.HasPrefix(why, Unseen) }) {
		return "the candidates that were not shown are unknown"
	}
	return onlyShown
}

// unknownRules says why the feasible sets are unknown, or returns "" if they are known.
func (m *explanation) unknownRules(x *api.Explanation) string {
	switch {
	case x.Known < x.Candidates:
		return m.onlyShown()
	case m.offer.Catalogue != nil && m.offer.Catalogue.Version != 0 && m.request.groups == nil &&
		len(m.request.byCatalogue(m.config)) > 0:
		return "a rule limits items by an attribute or a group, which the log does not have. Try the request to see them"
	case m.request.capacity(m.config) != nil && !m.request.isTrial && !m.request.spaced:
		return "a capacity bounds the spaces of the items, which the log does not have. Try the request to see them"
	}
	return ""
}

// compare compares the set shown with other sets, by the utilities u.
func (m *explanation) compare(x *api.Explanation, u []float64) {
	for _, v := range u {
		if usable(v) == nil {
			x.Compared = "none"
			return
		}
	}
	shown, effects := make(vitrine.Assortment, len(m.shown)), placeEffects(m.policy.Policy)
	for k, i := range m.shown {
		shown[k] = int(i)
	}
	if len(effects) == 0 { // the order makes no difference, except for rounding
		slices.Sort(shown)
	}
	earns := vitrine.OrderedRevenue(shown, u, effects, m.x.Revenue)
	x.Revenue = &earns
	if why := m.unknownRules(x); why != "" {
		x.Unknown = append(x.Unknown, "the next-best set and what the rules cost: "+why)
		return
	}
	if !m.ruled {
		x.Unknown = append(x.Unknown, "the rules of the request: the log does not have them. Sets are compared by "+
			"the rules of the placement")
	}
	v := &alternatives{request: m.request, config: m.config, index: m.request.places(), u: u,
		effects: effects, r: m.x.Revenue}
	if len(effects) > 0 {
		unknown := "the next-best set"
		if m.request.Slots != nil {
			unknown += " and what the rules cost"
		}
		x.Unknown = append(x.Unknown, unknown+": with position effects, the order of a set counts, too")
	} else if s, revenue, ok := v.next(shown); ok {
		x.Next = &api.OtherSet{Items: make([]string, len(s)), Revenue: revenue, MissedBy: earns - revenue}
		for k, i := range s {
			x.Next.Items[k] = m.request.id(i)
		}
	}
	if len(effects) == 0 || m.request.Slots == nil {
		x.Rules = v.rules()
	}
}
