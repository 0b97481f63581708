package inspect

import (
	"bufio"
	"context"
	"encoding/base64"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"vitrine/offpolicy"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
)

// Export writes decisions as lines of JSON, in the order of their outcomes. Decisions without an
// outcome come last. docs/operations.md describes a line.
func (log *Log) Export(ctx context.Context, w io.Writer, which Decisions) error {
	buffered := bufio.NewWriterSize(w, 1<<16)
	out := jsontext.NewEncoder(buffered, jsontext.AllowInvalidUTF8(true))
	all, unknown := 0, 0
	_, err := log.decisions(ctx, "exporting", which, func(o *offered, end outcome) error {
		if all++; o.Propensity == 0 {
			unknown++
		}
		return writeLine(out, o, end)
	})
	if flushed := buffered.Flush(); err == nil {
		err = flushed
	}
	if err == nil {
		log.warnUnknown(unknown, all)
	}
	return err
}

// ExportPlacement writes the decisions of a placement as [Log.Export] does, from the log of a running service, whose
// snapshots are in the directory data.
func ExportPlacement(ctx context.Context, store eventlog.Log, data, placement string, w io.Writer) (err error) {
	log := &Log{Log: store, Name: "the log"}
	if err := log.readSnapshots(data); err != nil {
		return err
	}
	if log.Extent, err = store.Extent(ctx); err != nil {
		return err
	}
	return log.Export(ctx, w, Decisions{Placement: placement})
}

// writeLine writes a decision.
func writeLine(out *jsontext.Encoder, o *offered, end outcome) error {
	l := line{out: out}
	l.decision(o)
	l.outcome(o, end)
	l.token(jsontext.EndObject)
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
	l.member(name, jsontext.String(stamp(nanoseconds)))
}

// decision begins the line.
func (l *line) decision(o *offered) {
	l.token(jsontext.BeginObject)
	l.member("placement", jsontext.String(o.placement))
	l.member("decision_id", jsontext.String(o.Decision))
	l.member("entry", jsontext.Uint(o.sequence))
	l.time("time", o.time)
	l.member("candidates", jsontext.Int(int64(o.Candidates)))
	named := o.named()
	if named && len(o.ItemIDs) > 0 && o.config.Schema().NumUser() > 0 {
		l.features("user", o, 0, true)
	}
	l.member("items", jsontext.BeginArray)
	var law offpolicy.Law
	draw := offer.DrawOf(o.Offered)
	if draw != nil {
		law = draw.Law(len(o.ItemIDs))
	}
	for i := range o.ItemIDs {
		l.item(o, i, named, law)
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
	if draw != nil {
		l.token(jsontext.String("law"))
		l.draw(o, draw)
	}
	l.member("policy_version", jsontext.Uint(o.PolicyVersion))
	l.member("by", jsontext.String(offer.ByNames[o.Mode]))
}

// draw writes how the set was drawn.
func (l *line) draw(o *offered, d *offer.Draw) {
	l.token(jsontext.BeginObject)
	l.member("draw", jsontext.String(offer.DrawNames[d.Kind]))
	l.member("share", jsontext.Float(d.Epsilon))
	l.member("size", jsontext.Int(int64(d.Size)))
	l.member("page", jsontext.BeginArray)
	for _, i := range d.Page {
		l.token(jsontext.String(o.ItemIDs[i]))
	}
	l.token(jsontext.EndArray)
	if d.Swaps != nil {
		l.member("swaps", jsontext.String(base64.StdEncoding.EncodeToString(d.Swaps)))
	}
	if d.Kind == offer.DrawItems {
		l.member("probability", jsontext.BeginArray)
		for _, p := range d.Probability {
			l.token(jsontext.Float(p))
		}
		l.token(jsontext.EndArray)
		l.member("slot", jsontext.BeginArray)
		for _, k := range d.Slot {
			l.token(jsontext.Uint(uint64(k)))
		}
		l.token(jsontext.EndArray)
	}
	l.token(jsontext.EndObject)
}

func (l *line) item(o *offered, i int, named bool, law offpolicy.Law) {
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
	l.member("revenue", jsontext.Float(o.revenue(i)))
	if law != nil {
		l.member("propensity", jsontext.Float(law.Inclusion(i)))
	}
	l.token(jsontext.EndObject)
}

// features writes those of an item, or of the user.
func (l *line) features(name string, o *offered, item int, user bool) {
	l.member(name, jsontext.BeginObject)
	o.config.Schema().Named(o.Features[item*o.Width:(item+1)*o.Width], user, func(feature string, v jsontext.Value) {
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
	l.member("earned", jsontext.Float(end.earned))
}
