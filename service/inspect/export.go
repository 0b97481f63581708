package inspect

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"vitrine/service/decision"
	"vitrine/service/eventlog"
	"vitrine/service/feature"
)

// Export selects decisions.
type Export struct {
	Placement string  // "" is all placements
	From      *uint64 // the first entry; nil is the first entry of the log
}

// Export writes decisions as lines of JSON, in the order of their outcomes. Decisions without an
// outcome come last. docs/operations.md describes a line.
func (log *Log) Export(ctx context.Context, w io.Writer, which Export) error {
	x := &export{
		placement: which.Placement, from: log.First,
		schemas: map[string]*feature.Schema{}, open: map[decisionKey]*offered{}, names: map[string]bool{},
	}
	if which.From != nil {
		x.from = *which.From
		if err := log.CheckFrom(x.from); err != nil {
			return err
		}
	}
	if err := x.begin(ctx, log); err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(w, 1<<16)
	x.out = jsontext.NewEncoder(buffered, jsontext.AllowInvalidUTF8(true))
	err := x.run(ctx, log)
	if flushed := buffered.Flush(); err == nil {
		err = flushed
	}
	if err != nil {
		return err
	}
	if which.Placement != "" && !x.names[which.Placement] {
		return fmt.Errorf("%s has no placement %q%s", log.Name, which.Placement, theseAre(slices.Sorted(maps.Keys(x.names))))
	}
	return nil
}

// begin finds configurations whose entries were removed in the earliest snapshot.
func (x *export) begin(ctx context.Context, log *Log) error {
	base, _ := log.base(ctx, log.snapshots, false)
	if log.First == 1 || base == nil {
		return nil
	}
	audit, err := decision.NewAudit(decision.NewLearner, base.data)
	if err != nil {
		return fmt.Errorf("%s: %w", base.path, err)
	}
	defer audit.Close()
	for name, c := range audit.Unchanged(log.First) {
		x.names[name], x.schemas[name] = true, c.Schema()
	}
	return nil
}

func theseAre(names []string) string {
	if len(names) == 0 {
		return ", and no other"
	}
	return ": there are " + strings.Join(names, ", ")
}

// export writes decisions as lines of JSON.
type export struct {
	placement string // the only one; "" is all
	from      uint64
	out       *jsontext.Encoder
	failed    bool            // whether writing has failed
	names     map[string]bool // of the placements seen
	schemas   map[string]*feature.Schema
	open      map[decisionKey]*offered
}

// decisionKey names a decision: ids belong to placements.
type decisionKey struct{ placement, id string }

// offered is a decision that waits for its outcome.
type offered struct {
	*eventlog.Offered
	placement string
	schema    *feature.Schema // nil if it is not known
	sequence  uint64
	time      int64
	deferred  bool // and not activated
}

// outcome is how a decision ended.
type outcome struct {
	status   string
	choice   int32
	sequence uint64
	time     int64
}

func (x *export) run(ctx context.Context, log *Log) error {
	sequence := log.First - 1
	for entry, err := range log.entries(ctx, "exporting", log.First) {
		sequence++
		var event eventlog.Event
		if err == nil {
			if event, err = eventlog.Decode(entry); err != nil {
				err = fmt.Errorf("entry %d: %w", sequence, err)
			}
		}
		if err == nil {
			err = x.event(sequence, &event)
		}
		if err != nil {
			if n := len(x.open); n > 0 && ctx.Err() == nil && !x.failed {
				log.warn(fmt.Sprintf("%d decisions without an outcome are left out, because it may be in an entry that cannot be read", n))
			}
			return err
		}
	}
	return x.rest(func(*offered) bool { return true })
}

func (x *export) event(sequence uint64, e *eventlog.Event) error {
	x.names[e.Placement] = true
	if x.placement != "" && e.Placement != x.placement {
		return nil
	}
	switch b := e.Body.(type) {
	case *eventlog.PlacementPut:
		c, err := decision.ParseConfig(b.Config)
		if err != nil {
			return fmt.Errorf("entry %d, placement %q: %w", sequence, e.Placement, err)
		}
		x.schemas[e.Placement] = c.Schema()
	case *eventlog.PlacementDeleted:
		return x.rest(func(o *offered) bool { return o.placement == e.Placement })
	case *eventlog.Offered:
		if sequence >= x.from {
			x.open[decisionKey{e.Placement, b.Decision}] = &offered{b, e.Placement, x.schemas[e.Placement], sequence, e.Time, decision.Deferred(b)}
		}
	case *eventlog.Chosen:
		return x.close(decisionKey{e.Placement, b.Decision}, outcome{"chosen", b.Choice, sequence, e.Time})
	case *eventlog.Expired:
		return x.close(decisionKey{e.Placement, b.Decision}, outcome{"expired", 0, sequence, e.Time})
	case *eventlog.Evicted:
		return x.close(decisionKey{e.Placement, b.Decision}, outcome{"evicted", 0, sequence, e.Time})
	case *eventlog.Activated:
		x.activate(decisionKey{e.Placement, b.Decision})
	case *eventlog.Passed:
		x.activate(decisionKey{e.Placement, b.Decision})
	}
	return nil
}

func (x *export) activate(key decisionKey) {
	if o := x.open[key]; o != nil {
		o.deferred = false
	}
}

// rest writes the open decisions that which selects, in the order of the log.
func (x *export) rest(which func(*offered) bool) error {
	var rest []*offered
	for _, o := range x.open {
		if which(o) {
			rest = append(rest, o)
		}
	}
	slices.SortFunc(rest, func(a, b *offered) int { return cmp.Compare(a.sequence, b.sequence) })
	for _, o := range rest {
		if err := x.close(decisionKey{o.placement, o.Decision}, outcome{status: "open"}); err != nil {
			return err
		}
	}
	return nil
}

// close writes a decision, unless it was made before the first entry.
func (x *export) close(key decisionKey, end outcome) error {
	o := x.open[key]
	if o == nil {
		return nil
	}
	delete(x.open, key)
	if int(end.choice) > len(o.Shown) {
		return fmt.Errorf("entry %d: decision %q showed %d items, and item %d was chosen", end.sequence, key.id, len(o.Shown), end.choice)
	}
	switch {
	case o.deferred && end.status == "expired":
		end.status = "withdrawn"
	case o.deferred && end.status == "open":
		end.status = "deferred"
	}
	l := line{out: x.out}
	l.decision(o)
	l.outcome(o, end)
	l.token(jsontext.EndObject)
	x.failed = l.err != nil
	return l.err
}

// line writes JSON up to the first error.
type line struct {
	out *jsontext.Encoder
	err error
}

func (l *line) token(tokens ...jsontext.Token) {
	for _, t := range tokens {
		if l.err == nil {
			l.err = l.out.WriteToken(t)
		}
	}
}

func (l *line) value(v jsontext.Value) {
	if l.err == nil {
		l.err = l.out.WriteValue(v)
	}
}

func (l *line) member(name string, value jsontext.Token) { l.token(jsontext.String(name), value) }

func (l *line) time(name string, nanoseconds int64) {
	l.member(name, jsontext.String(time.Unix(0, nanoseconds).UTC().Format(time.RFC3339Nano)))
}

// foundBy has the words for how a set was found.
var foundBy = map[uint8]string{decision.ByPolicy: "policy", decision.ByChance: "chance", decision.ByBaseline: "baseline"}

// decision begins the line.
func (l *line) decision(o *offered) {
	l.token(jsontext.BeginObject)
	l.member("placement", jsontext.String(o.placement))
	l.member("decision_id", jsontext.String(o.Decision))
	l.member("entry", jsontext.Uint(o.sequence))
	l.time("time", o.time)
	l.member("candidates", jsontext.Int(int64(o.Candidates)))
	named := o.schema != nil && o.schema.Width() == o.Width
	if named && len(o.ItemIDs) > 0 && o.schema.NumUser() > 0 {
		l.features("user", o, 0, true)
	}
	l.member("items", jsontext.BeginArray)
	for i := range o.ItemIDs {
		l.item(o, i, named)
	}
	l.token(jsontext.EndArray)
	l.member("shown", jsontext.BeginArray)
	for _, i := range o.Shown {
		l.token(jsontext.String(o.ItemIDs[i]))
	}
	l.token(jsontext.EndArray)
	propensity := jsontext.Null
	if o.Propensity > 0 {
		propensity = jsontext.Float(o.Propensity)
	}
	l.member("propensity", propensity)
	l.member("policy_version", jsontext.Uint(o.PolicyVersion))
	l.member("by", jsontext.String(foundBy[o.Mode]))
}

func (l *line) item(o *offered, i int, named bool) {
	l.token(jsontext.BeginObject)
	l.member("id", jsontext.String(o.ItemIDs[i]))
	if named {
		l.features("features", o, i, false)
	} else {
		l.member("row", jsontext.BeginArray)
		for _, v := range o.Features[i*o.Width : (i+1)*o.Width] {
			l.token(jsontext.Float(v))
		}
		l.token(jsontext.EndArray)
	}
	revenue := 1.0
	if o.Revenue != nil {
		revenue = o.Revenue[i]
	}
	l.member("revenue", jsontext.Float(revenue))
	l.token(jsontext.EndObject)
}

// features writes those of an item, or of the user.
func (l *line) features(name string, o *offered, item int, user bool) {
	l.member(name, jsontext.BeginObject)
	o.schema.Named(o.Features[item*o.Width:(item+1)*o.Width], user, func(feature string, v jsontext.Value) {
		l.token(jsontext.String(feature))
		l.value(v)
	})
	l.token(jsontext.EndObject)
}

// outcome ends it.
func (l *line) outcome(o *offered, end outcome) {
	l.member("status", jsontext.String(end.status))
	if end.sequence == 0 {
		return
	}
	choice := jsontext.Null
	if end.choice > 0 {
		choice = jsontext.String(o.ItemIDs[o.Shown[end.choice-1]])
	}
	l.member("choice", choice)
	l.member("outcome_entry", jsontext.Uint(end.sequence))
	l.time("outcome_time", end.time)
}
