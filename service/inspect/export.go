package inspect

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"vitrine/offpolicy"
	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
)

// Export writes decisions as lines of JSON, in the order of their outcomes. Decisions without an
// outcome come last. vitrine export --help describes a line.
func (log *Log) Export(ctx context.Context, w io.Writer, which Decisions) error {
	buffered := bufio.NewWriterSize(w, 1<<16)
	out := jsontext.NewEncoder(buffered, jsontext.AllowInvalidUTF8(true))
	err := log.export(ctx, which, func(o *offered, end outcome) (remark string, err error) {
		if o.Propensity == 0 && offer.RecordedLawOf(o.Offered) == nil {
			remark = noPropensity
		}
		return remark, writeLine(out, o, end)
	})
	return cmp.Or(err, buffered.Flush())
}

// Remarks on decisions that an export leaves out, or writes incompletely.
const (
	noPropensity   = "have no propensity: how likely their pages were is not known"
	otherMoney     = "earned other amounts than their clicks say: the format has no units, values or corrections"
	belowZero      = "took back more than was paid: vitrine import counts their values, which are 0, and not earned"
	noOutcome      = "are left out: they have no outcome"
	otherFeatures  = "are left out: they have the features of another configuration"
	noPropensities = "are left out: they have no propensities of items"
)

// export calls write for each decision, and warns how many decisions got each remark.
func (log *Log) export(ctx context.Context, which Decisions,
	write func(o *offered, end outcome) (remark string, err error)) error {
	all, remarks := 0, map[string]int{}
	_, err := log.decisions(ctx, "exporting", which, func(o *offered, end outcome) error {
		all++
		remark, err := write(o, end)
		remarks[remark]++
		if remark != otherMoney && end.isBelowZero() {
			remarks[belowZero]++
		}
		return err
	})
	if err != nil {
		return err
	}
	delete(remarks, "")
	for _, remark := range slices.Sorted(maps.Keys(remarks)) {
		log.warn(share(remarks[remark], all) + " " + remark)
	}
	return nil
}

// isBelowZero reports whether an item's corrections took back more than was paid.
func (end *outcome) isBelowZero() bool {
	return slices.ContainsFunc(end.taken, func(t taken) bool { return t.earned < 0 })
}

func share(n, all int) string {
	return fmt.Sprintf("%d of %d decisions (%.3g%%)", n, all, 100*float64(n)/float64(all))
}

// ExportPlacement writes a placement's decisions as [Log.Export] does, from an entry of a running service's log on, with
// snapshots in the directory data.
//
// If the service removes the log's first entries before the export reads them, the export begins again.
func ExportPlacement(ctx context.Context, store eventlog.Log, data, placement string, from uint64,
	w io.Writer) (err error) {
	out := &begun{w: w}
	for range maxBegins {
		log := &Log{Log: store, Name: "the log"}
		if err := log.readSnapshots(data); err != nil {
			return err
		}
		if log.Extent, err = store.Extent(ctx); err != nil {
			return err
		}
		from = max(from, log.First)
		err = log.Export(ctx, out, Decisions{Placement: placement, From: &from})
		if out.yes || !errors.Is(err, eventlog.ErrRemoved) {
			return err
		}
	}
	return err
}

const maxBegins = 5 // of an export

// begun notes whether anything was written.
type begun struct {
	w   io.Writer
	yes bool
}

func (b *begun) Write(p []byte) (int, error) {
	b.yes = true
	return b.w.Write(p)
}

// line is a decision in an export.
type line struct {
	Placement   string          `json:"placement"`
	Decision    string          `json:"decision_id"`
	Entry       uint64          `json:"entry"`
	Time        string          `json:"time"`
	Candidates  int             `json:"candidates"`
	User        jsontext.Value  `json:"shopper,omitzero"`
	Items       []lineItem      `json:"items"`
	Shown       []string        `json:"shown"`
	Propensity  *float64        `json:"propensity"`
	Law         *offer.NamedLaw `json:"sampling_law,omitzero"`
	PolicyEntry uint64          `json:"policy_entry"`
	Source      string          `json:"source"`
	Variant     string          `json:"variant,omitzero"`
	Status      string          `json:"status"`
	Outcome     *lineOutcome    `json:",embed"`
}

type lineItem struct {
	ID         string         `json:"id"`
	Features   jsontext.Value `json:"features,omitzero"`
	Row        []float64      `json:"row,omitzero"` // if the features are unnamed
	Revenue    float64        `json:"revenue"`
	Propensity *float64       `json:"propensity,omitzero"`
}

type lineOutcome struct {
	Choice  *string      `json:"choice"`
	Choices []api.Choice `json:"choices,omitzero"`
	Entry   uint64       `json:"outcome_entry"`
	Time    string       `json:"outcome_time"`
	Earned  float64      `json:"earned"`
}

func writeLine(out *jsontext.Encoder, o *offered, end outcome) error {
	l := line{
		Placement: o.placement, Decision: o.Decision, Entry: o.sequence, Time: stamp(o.time), Candidates: o.Candidates,
		PolicyEntry: o.PolicyEntry, Source: offer.SourceNames[o.Mode], Status: end.status, Variant: o.variant,
	}
	named := o.named()
	if named && len(o.ItemIDs) > 0 && o.config.Schema().NumUser() > 0 {
		l.User = o.features(0, true)
	}
	var law offpolicy.SamplingLaw
	law, l.Law = o.law()
	for i, id := range o.ItemIDs {
		item := lineItem{ID: id, Revenue: o.revenue(i)}
		if named {
			item.Features = o.features(i, false)
		} else {
			item.Row = o.Features[i*o.Width : (i+1)*o.Width]
		}
		if law != nil {
			item.Propensity = new(law.Inclusion(i))
		}
		l.Items = append(l.Items, item)
	}
	for _, i := range o.Shown {
		l.Shown = append(l.Shown, o.ItemIDs[i])
	}
	if o.Propensity > 0 {
		l.Propensity = &o.Propensity
	}
	if end.sequence > 0 {
		l.Outcome = &lineOutcome{Entry: end.sequence, Time: stamp(end.time), Earned: end.earned}
		l.Outcome.Choice, l.Outcome.Choices = o.chosen(end)
	}
	return json.MarshalEncode(out, &l)
}

// law returns the recorded law by which the page was drawn, or nils.
func (o *offered) law() (offpolicy.SamplingLaw, *offer.NamedLaw) {
	draw := offer.RecordedLawOf(o.Offered)
	if draw == nil {
		return nil, nil
	}
	return draw.Law(len(o.ItemIDs)), draw.Named(o.ItemIDs)
}

// chosen returns the id of the first item taken, or nil, and all items taken if the outcome is a basket.
func (o *offered) chosen(end outcome) (first *string, all []api.Choice) {
	choice, basket := end.basket(o)
	if choice == 0 {
		return nil, nil
	}
	ids := (&offer.Offer{Offered: o.Offered}).IDs()
	return &ids[choice-1], offer.Given(ids, basket)
}

// features returns the features of an item, or of the user, as an object.
func (o *offered) features(item int, user bool) jsontext.Value {
	b := jsontext.Value{'{'}
	o.config.Schema().Named(o.Features[item*o.Width:(item+1)*o.Width], user, func(name string, v jsontext.Value) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b, _ = jsontext.AppendQuote(b, name)
		b = append(append(b, ':'), v...)
	})
	return append(b, '}')
}
