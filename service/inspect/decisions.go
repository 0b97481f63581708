package inspect

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"vitrine/service/catalogue"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/feature"
	"vitrine/service/offer"
	"vitrine/service/page"
	"vitrine/service/setup"
)

// Decisions selects decisions of a log.
type Decisions struct {
	Placement string  // "" is all placements
	From      *uint64 // the first entry; nil is the first entry of the log

	deleted func(placement string) // unless nil, called when a placement is deleted, after its decisions
}

// decisions calls each for the selected decisions, in the order of their outcomes. Decisions without
// an outcome come last. It returns the configurations of the placements.
func (log *Log) decisions(ctx context.Context, what string, which Decisions,
	each func(o *offered, end outcome) error) (map[string]*setup.Config, error) {
	x := newDecisions(log, log.First, which.Placement, each)
	x.deleted = which.deleted
	if which.From != nil {
		x.from = *which.From
		if err := log.CheckFrom(x.from); err != nil {
			return nil, err
		}
	}
	if base, _ := log.base(ctx, log.snapshots, false); base != nil && log.First > 1 {
		if err := x.unchanged(ctx, base.data, log.First); err != nil {
			return nil, fmt.Errorf("%s: %w", base.path, err)
		}
	}
	if err := x.correct(ctx, log); err != nil {
		return nil, err
	}
	if err := x.run(ctx, log, what); err != nil {
		return nil, err
	}
	if x.lost > 0 && what == "exporting" {
		log.warn(fmt.Sprintf("For %s, only the items shown could be exported: the log and snapshots no longer "+
			"hold the catalogue version they used", share(x.lost, x.candidates)))
	}
	if _, ok := x.configs[which.Placement]; which.Placement != "" && !ok {
		return nil, fmt.Errorf("%s has no placement %q%s", log.Name, which.Placement,
			theseAre(slices.Sorted(maps.Keys(x.configs))))
	}
	return x.configs, nil
}

func newDecisions(log eventlog.Reader, from uint64, placement string,
	each func(o *offered, end outcome) error) *decisions {
	return &decisions{
		log: log, placement: placement, from: from, each: each, configs: map[string]*setup.Config{},
		former: map[string]*setup.Config{},
		items:  map[string]*catalogue.Catalogue{}, frozen: map[string][]*catalogue.Frozen{},
		open: map[decisionKey]*offered{}, corrected: map[uint64]corrected{},
	}
}

// correct finds the changes by late outcomes and corrections, which come after the outcomes. It leaves unreadable
// entries to run.
func (x *decisions) correct(ctx context.Context, log *Log) error {
	for entry, err := range log.entries(ctx, "reading", log.First) {
		if err != nil {
			return ctx.Err()
		}
		if !eventlog.IsCorrection(entry) {
			continue
		}
		event, err := eventlog.Decode(entry)
		if err != nil {
			return nil
		}
		x.note(event.Body.(*eventlog.Corrected))
	}
	return nil
}

// note notes a late outcome or a correction.
func (x *decisions) note(c *eventlog.Corrected) {
	after := x.corrected[c.Entry]
	after.late = after.late || c.Correction == ""
	after.earned = c.Before + c.Value
	after.changes = append(after.changes, change{late: c.Correction == "", choice: c.Choice, basket: c.Basket,
		value: c.Value, withdraws: c.Withdraws, adds: c.Adds})
	x.corrected[c.Entry] = after
}

// unchanged takes from a snapshot the configurations and catalogues that an earlier entry already saw, or that can be
// rewound to it.
func (x *decisions) unchanged(ctx context.Context, snapshot []byte, first uint64) error {
	audit, err := engine.NewAudit(setup.NewLearner, snapshot)
	if err != nil {
		return err
	}
	defer audit.Close()
	configs, items, err := audit.Unchanged(ctx, x.log, first)
	if err != nil {
		return err
	}
	maps.Copy(x.configs, configs)
	x.items = items
	return nil
}

func theseAre(names []string) string {
	if len(names) == 0 {
		return ", and no other"
	}
	return ": there are " + strings.Join(names, ", ")
}

// decisions finds the decisions of a log and their outcomes.
type decisions struct {
	log       eventlog.Reader
	placement string // the only one; "" is all
	from      uint64
	each      func(o *offered, end outcome) error
	deleted   func(placement string)
	failed    bool                     // failures so far
	configs   map[string]*setup.Config // of the placements seen; nil if it is not known
	former    map[string]*setup.Config // by placement and canonical form
	open      map[decisionKey]*offered
	corrected map[uint64]corrected // by the entry of the offer

	items            map[string]*catalogue.Catalogue // of the placements, as of the entry that is read
	frozen           map[string][]*catalogue.Frozen  // of items, at the last two versions that decisions used
	candidates, lost int                             // decisions among a catalogue's items, and those with unknown candidates
}

// corrected is a decision's final result, after its corrections.
type corrected struct {
	late    bool // whether its outcome came late
	earned  float64
	changes []change
}

// change is a late outcome or a correction.
type change struct {
	late      bool
	choice    int32
	basket    eventlog.Basket
	value     float64
	withdraws bool
	adds      bool
}

// decisionKey names a decision: ids belong to placements.
type decisionKey struct{ placement, id string }

// offered is a decision that waits for its outcome.
type offered struct {
	*eventlog.Offered
	placement string
	config    *setup.Config // nil if it is not known
	sequence  uint64
	time      int64
	deferred  bool   // and not activated
	variant   string // of an experiment that was shown, or ""
	shopper   string // the name, or the hash in experiments; "" if unknown
	ruled     bool   // whether the request came with rules

	items *catalogue.Frozen // of the decision's catalogue; nil if the log holds the rows of all recorded candidates
	with  offer.Estimates   // of a decision with items
}

// named reports whether the names of the decision's features are known.
func (o *offered) named() bool { return o.config != nil && o.config.Schema().Width() == o.Width }

// outcome is how a decision ended.
type outcome struct {
	status   string
	taken    []taken // by increasing places
	earned   float64
	sequence uint64
	time     int64
}

// taken is an item that was taken, and not withdrawn later.
type taken struct {
	eventlog.Take         // as reported
	earned        float64 // with corrections
}

// value returns the item's value for an import: its earnings, or 0 if they are negative.
func (t *taken) value() float64 { return max(t.earned, 0) }

// at returns the take of the item at a place, from 1 on, or nil.
func (o *outcome) at(place int32) *taken {
	i := slices.IndexFunc(o.taken, func(t taken) bool { return t.Place == place })
	if i < 0 {
		return nil
	}
	return &o.taken[i]
}

// choose sets the items taken.
func (o *outcome) choose(of *offered, choice int32, basket eventlog.Basket) {
	o.taken = nil
	for _, t := range (&offer.Closed{Offer: &offer.Offer{Offered: of.Offered}, Choice: int(choice),
		Basket: basket}).Takes() {
		o.taken = append(o.taken, taken{t, t.Value})
	}
}

// basket returns the items taken, with their corrected values, in the log's form: a choice, or a basket.
func (o *outcome) basket(of *offered) (choice int32, basket eventlog.Basket) {
	for _, t := range o.taken {
		t.Value = t.value()
		basket = append(basket, t.Take)
	}
	switch {
	case basket == nil:
		return 0, nil
	case len(basket) == 1 && basket[0].Quantity == 1 && basket[0].Value == of.revenue(int(of.Shown[basket[0].Place-1])):
		return basket[0].Place, nil
	}
	return basket[0].Place, basket
}

// isRound reports whether the decision counts as a round.
func (o *outcome) isRound() bool {
	return o.status == "chosen" || o.status == "expired" || o.status == "late"
}

func (x *decisions) run(ctx context.Context, log *Log, what string) error {
	sequence := log.First - 1
	for entry, err := range log.entries(ctx, what, log.First) {
		sequence++
		var event eventlog.Event
		if err == nil {
			if event, err = eventlog.Decode(entry); err != nil {
				err = fmt.Errorf("entry %d: %w", sequence, err)
			}
		}
		if err == nil {
			err = x.event(ctx, sequence, &event)
		}
		if err != nil {
			if n := len(x.open); n > 0 && ctx.Err() == nil && !x.failed {
				log.warn(fmt.Sprintf("%d decisions without an outcome are left out, because it may be in an entry "+
					"that cannot be read", n))
			}
			return err
		}
	}
	return x.rest(func(*offered) bool { return true })
}

func (x *decisions) event(ctx context.Context, sequence uint64, e *eventlog.Event) error {
	if _, ok := x.configs[e.Placement]; !ok {
		x.configs[e.Placement] = nil
	}
	if err := x.stock(ctx, sequence, e); err != nil || x.placement != "" && e.Placement != x.placement {
		return err
	}
	end := func(decision, status string, c *eventlog.Chosen) error {
		return x.close(decisionKey{e.Placement, decision}, outcome{status: status, sequence: sequence, time: e.Time}, c)
	}
	activate := func(decision string) {
		if o := x.open[decisionKey{e.Placement, decision}]; o != nil {
			o.deferred = false
		}
	}
	switch b := e.Body.(type) {
	case *eventlog.PlacementDeleted:
		err := x.rest(func(o *offered) bool { return o.placement == e.Placement })
		if x.deleted != nil {
			x.deleted(e.Placement)
		}
		return err
	case *eventlog.Offered:
		if sequence >= x.from {
			x.open[decisionKey{e.Placement, b.Decision}] = x.offered(ctx, sequence, e, b)
		}
	case *eventlog.Chosen:
		return end(b.Decision, "chosen", b)
	case *eventlog.Expired:
		return end(b.Decision, "expired", nil)
	case *eventlog.Evicted:
		return end(b.Decision, "evicted", nil)
	case *eventlog.Activated:
		activate(b.Decision)
	case *eventlog.ItemsDeclined:
		activate(b.Decision)
	}
	return nil
}

// offered returns a decision that waits for its outcome. Until then it takes what its entry takes.
func (x *decisions) offered(ctx context.Context, sequence uint64, e *eventlog.Event, b *eventlog.Offered) *offered {
	o := &offered{Offered: b, placement: e.Placement, config: x.configs[e.Placement], sequence: sequence, time: e.Time}
	with, err := offer.Decode(b.Answer, len(b.Shown))
	if err != nil {
		return o
	}
	o.deferred, o.shopper, o.variant, o.ruled = with.Deferred, with.Shopper, with.Variant, with.Rules != ""
	if o.shopper == "" && with.Unit != 0 {
		o.shopper = strconv.FormatUint(with.Unit, 36)
	}
	if with.Catalogue == nil || !with.Catalogue.All {
		return o
	}
	x.candidates++
	if o.items = x.at(ctx, o.config, e.Placement, with.Catalogue.Version); o.items == nil {
		x.lost++
	}
	o.with = with
	return o
}

// at returns the items of a placement's catalogue at a version, nil if they are not known.
func (x *decisions) at(ctx context.Context, c *setup.Config, placement string, version uint64) *catalogue.Frozen {
	if c != nil {
		placement = cmp.Or(c.CatalogueOf, placement)
	}
	items := x.items[placement]
	if items == nil {
		return nil
	}
	kept := x.frozen[placement]
	if k := slices.IndexFunc(kept, func(f *catalogue.Frozen) bool { return f.Version == version }); k >= 0 {
		return kept[k]
	}
	f := items.Freeze() // which may be later: the catalogue can change between the decision and its entry
	if engine.Rewind(ctx, x.log, f, version, math.MaxInt) != nil || f.Version != version {
		return nil
	}
	x.frozen[placement] = append(slices.Clone(kept[max(len(kept)-1, 0):]), f)
	return f
}

// replace gives a placement other items; nil if they are not known.
func (x *decisions) replace(placement string, items *catalogue.Catalogue) {
	delete(x.frozen, placement)
	x.items[placement] = items
}

// stock applies what an event says of configurations and catalogues, as the service does.
func (x *decisions) stock(ctx context.Context, sequence uint64, e *eventlog.Event) error {
	if text := e.Configuration(); len(text) > 0 {
		if err := x.configure(sequence, e, string(text)); err != nil {
			return err
		}
	}
	failed := func(err error) error { return fmt.Errorf("entry %d, placement %q: %w", sequence, e.Placement, err) }
	switch b := e.Body.(type) {
	case *eventlog.CategoryValuesAdded:
		if c := x.configs[e.Placement]; c != nil {
			c, err := c.Learn(feature.Seen{Feature: b.Feature, Values: b.Values})
			if err != nil {
				return failed(err)
			}
			x.configs[e.Placement] = c
		}
	case *eventlog.ItemsChanged:
		items := x.items[e.Placement]
		if items == nil {
			return nil
		}
		if items.Head().Version != b.Before { // its previous items are unknown
			x.replace(e.Placement, nil)
			return nil
		}
		if change, err := items.NewChange(b.Put, b.Deleted); err != nil {
			x.replace(e.Placement, nil)
		} else {
			items.Apply(sequence, change)
		}
	case *eventlog.PlacementDeleted:
		x.configs[e.Placement] = nil
		x.replace(e.Placement, nil)
	default:
		if len(e.Configuration()) == 0 {
			return nil
		}
	}
	names := []string{e.Placement} // before those that inherit from it
	for _, name := range slices.Sorted(maps.Keys(x.configs)) {
		if c := x.configs[name]; c != nil && c.CatalogueOf == e.Placement && name != e.Placement {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if c := x.configs[name]; c != nil {
			if err := x.restock(ctx, name, c); err != nil {
				return failed(err)
			}
		}
	}
	return nil
}

// restock gives a placement's items the features of its configuration, which learns the items' values.
func (x *decisions) restock(ctx context.Context, name string, c *setup.Config) error {
	if owner := x.configs[c.CatalogueOf]; owner != nil && owner.CatalogueOf == "" && owner.Schema().Equal(c.Schema()) {
		x.configs[name] = c.Inherit(owner)
		return nil
	}
	items, schema := x.items[name], c.Schema()
	if items != nil && !items.Split().Schema().Same(schema) {
		if learned, ok := items.Split().Schema().Since(schema); ok { // the entries that say so were removed
			var err error
			if c, err = c.Learn(learned...); err != nil {
				return err
			}
			x.configs[name], schema = c, c.Schema()
		}
	}
	switch {
	case items == nil:
		x.replace(name, catalogue.New(schema))
	case !items.Split().Schema().Same(schema):
		if learned, ok := schema.Since(items.Split().Schema()); ok {
			items.Learn(schema, learned)
			break
		}
		moved, _, err := items.WithSchema(ctx, schema)
		if err != nil {
			return err
		}
		learned, _ := moved.Split().Schema().Since(schema)
		if x.configs[name], err = c.Learn(learned...); err != nil {
			return err
		}
		x.replace(name, moved)
	}
	return nil
}

// configure changes a placement's configuration. Its categories' learned values stay; a learner that comes back brings
// its own.
func (x *decisions) configure(sequence uint64, e *eventlog.Event, text string) error {
	before := x.configs[e.Placement]
	if before != nil {
		x.former[e.Placement+"\x00"+string(before.Canonical())] = before
	}
	c, err := setup.Parse([]byte(text))
	if err != nil {
		return fmt.Errorf("entry %d, placement %q: %w", sequence, e.Placement, err)
	}
	if _, ok := e.Body.(*eventlog.LearnerRolledBack); ok {
		c = cmp.Or(x.former[e.Placement+"\x00"+string(c.Canonical())], c)
	}
	if before != nil {
		c = c.Inherit(before)
	}
	x.configs[e.Placement] = c
	return nil
}

// rest hands over the open decisions that which selects, in the order of the log.
func (x *decisions) rest(which func(*offered) bool) error {
	var rest []*offered
	for _, o := range x.open {
		if which(o) {
			rest = append(rest, o)
		}
	}
	slices.SortFunc(rest, func(a, b *offered) int { return cmp.Compare(a.sequence, b.sequence) })
	for _, o := range rest {
		if err := x.close(decisionKey{o.placement, o.Decision}, outcome{status: "open"}, nil); err != nil {
			return err
		}
	}
	return nil
}

// correct applies a late outcome and corrections. If retention removed some of them from the log, the page's earnings are
// still right, but the items' earnings may not be.
func (o *outcome) correct(of *offered, c *corrected) {
	for _, change := range c.changes {
		switch {
		case int(change.choice) > len(of.Shown) || change.basket.Check(change.choice, len(of.Shown)) != nil:
			return
		case change.late:
			o.choose(of, change.choice, change.basket)
			continue
		case change.adds:
			o.taken = append(o.taken, taken{eventlog.Take{Place: change.choice, Quantity: 1, Value: change.value},
				change.value})
			slices.SortFunc(o.taken, func(a, b taken) int { return cmp.Compare(a.Place, b.Place) })
			continue
		case o.at(change.choice) == nil: // its late outcome was removed
			o.choose(of, change.choice, nil)
		}
		if t := o.at(change.choice); change.withdraws {
			o.taken = slices.DeleteFunc(o.taken, func(t taken) bool { return t.Place == change.choice })
		} else {
			t.earned += change.value
		}
	}
	if o.earned = c.earned; len(o.taken) == 1 {
		o.taken[0].earned = o.earned
	}
	if c.late {
		o.status = "late"
	}
}

// close hands a decision over, unless it was made before the first entry. c is what was chosen, nil for nothing.
func (x *decisions) close(key decisionKey, end outcome, c *eventlog.Chosen) error {
	o := x.open[key]
	if o == nil {
		return nil
	}
	delete(x.open, key)
	if o.items != nil {
		whole, err := page.Whole(&offer.Offer{Offered: o.Offered, Estimates: o.with}, o.items)
		if err != nil {
			x.lost++
		} else {
			o.Offered = whole
		}
	}
	if c != nil {
		if int(c.Choice) > len(o.Shown) {
			return fmt.Errorf("entry %d: decision %q showed %d items, and item %d was chosen", end.sequence, key.id,
				len(o.Shown), c.Choice)
		}
		if err := c.Basket.Check(c.Choice, len(o.Shown)); err != nil {
			return fmt.Errorf("entry %d: decision %q: %w", end.sequence, key.id, err)
		}
		end.choose(o, c.Choice, c.Basket)
	}
	switch {
	case o.deferred && end.status == "expired":
		end.status = "withdrawn"
	case o.deferred && end.status == "open":
		end.status = "deferred"
	}
	for _, t := range end.taken {
		end.earned += t.earned
	}
	if c, ok := x.corrected[o.sequence]; ok && end.sequence > 0 {
		end.correct(o, &c)
	}
	err := x.each(o, end)
	x.failed = err != nil
	return err
}
