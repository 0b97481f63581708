package inspect

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/parquet-go/parquet-go"

	"vitrine/offpolicy"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// ExportParquet writes decisions as a table with a row for each item, which package importer reads.
// Numbers are doubles and other values texts; hashed values, which cannot be recovered, are lists of
// their columns in JSON.
func (log *Log) ExportParquet(ctx context.Context, w io.Writer, which Decisions) error {
	c, err := log.configOf(ctx, which)
	if err != nil {
		return err
	}
	schema := parquet.Group{
		"decision_id": parquet.String(), "entry": parquet.Leaf(parquet.Int64Type), "time": parquet.String(), "item": parquet.String(),
		"shown": parquet.Leaf(parquet.Int64Type), "chosen": parquet.Leaf(parquet.Int64Type), "revenue": parquet.Leaf(parquet.DoubleType),
		"propensity": parquet.Optional(parquet.Leaf(parquet.DoubleType)), "item_propensity": parquet.Optional(parquet.Leaf(parquet.DoubleType)),
		"law": parquet.Optional(parquet.String()), "by": parquet.String(), "status": parquet.String(), "earned": parquet.Leaf(parquet.DoubleType),
	}
	for _, f := range c.Features {
		if f.Kind == "cross" {
			continue
		}
		if _, taken := schema[f.Name]; taken {
			return fmt.Errorf("the feature %q has the name of a column of the table: export as jsonl", f.Name)
		}
		schema[f.Name] = parquet.Optional(parquet.String())
		if f.Kind == "number" {
			schema[f.Name] = parquet.Optional(parquet.Leaf(parquet.DoubleType))
		}
	}
	out := parquet.NewGenericWriter[map[string]any](w, parquet.NewSchema("decisions", schema), parquet.Compression(&parquet.Zstd))
	width := c.Schema().Width()
	all, skipped, unknown := 0, 0, 0
	_, err = log.decisions(ctx, "exporting", which, func(o *offered, end outcome) error {
		all++
		if o.Width != width || !o.named() {
			skipped++
			return nil
		}
		if o.Propensity == 0 {
			unknown++
		}
		_, err := out.Write(tableRows(o, end))
		return err
	})
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	log.warnSkipped(skipped, all, "have the features of another configuration")
	log.warnUnknown(unknown, all)
	return nil
}

// warnSkipped says which share of all decisions an export leaves out.
func (log *Log) warnSkipped(n, all int, why string) {
	if n > 0 {
		log.warn(fmt.Sprintf("%s are left out: they %s", share(n, all), why))
	}
}

// warnUnknown says which share of all decisions an export writes without a propensity.
func (log *Log) warnUnknown(n, all int) {
	if n > 0 {
		log.warn(fmt.Sprintf("%s have no propensity: how likely their pages were is not known", share(n, all)))
	}
}

func share(n, all int) string {
	return fmt.Sprintf("%d of %d decisions (%.3g %%)", n, all, 100*float64(n)/float64(all))
}

// configOf returns the configuration of the placement that is exported, which must be one.
func (log *Log) configOf(ctx context.Context, which Decisions) (*setup.Config, error) {
	configs, err := log.decisions(ctx, "reading", which, func(*offered, outcome) error { return nil })
	if err != nil {
		return nil, err
	}
	if which.Placement == "" && len(configs) != 1 {
		return nil, fmt.Errorf("%s has the placements %v: name one with --placement, a table has the features of one", log.Name, slices.Sorted(maps.Keys(configs)))
	}
	for name, c := range configs {
		if which.Placement != "" && name != which.Placement {
			continue
		}
		if c == nil {
			return nil, fmt.Errorf("%s: the configuration of placement %q is neither in the log nor in a snapshot", log.Name, name)
		}
		return c, nil
	}
	return nil, fmt.Errorf("%s has no placement", log.Name)
}

// tableRows returns the rows of a decision.
func tableRows(o *offered, end outcome) []map[string]any {
	draw := offer.DrawOf(o.Offered)
	var law offpolicy.Law
	text := ""
	if draw != nil {
		law = draw.Law(len(o.ItemIDs))
		var b bytes.Buffer
		l := line{out: jsontext.NewEncoder(&b)}
		l.draw(o, draw)
		text = strings.TrimSpace(b.String())
	}
	var rows []map[string]any
	for i, id := range o.ItemIDs {
		place := int64(slices.Index(o.Shown, int32(i)) + 1)
		chosen, earned := int64(0), 0.0
		if end.choice > 0 && o.Shown[end.choice-1] == int32(i) {
			chosen, earned = 1, end.earned
		}
		row := map[string]any{
			"decision_id": o.Decision, "entry": int64(o.sequence), "time": stamp(o.time), "item": id, "shown": place, "chosen": chosen,
			"revenue": o.revenue(i), "by": offer.ByNames[o.Mode], "status": end.status, "earned": earned,
		}
		if o.Propensity > 0 {
			row["propensity"] = o.Propensity
		}
		if law != nil {
			row["item_propensity"], row["law"] = law.Inclusion(i), text
		}
		for _, user := range []bool{false, true} {
			o.config.Schema().Named(o.Features[i*o.Width:(i+1)*o.Width], user, func(name string, v jsontext.Value) {
				if v := plain(v); v != nil {
					row[name] = v
				}
			})
		}
		rows = append(rows, row)
	}
	return rows
}

// plain returns a value of JSON as a table has it: a number, a text, or nil for null.
func plain(v jsontext.Value) any {
	switch v.Kind() {
	case '0':
		n, _ := strconv.ParseFloat(string(v), 64)
		return n
	case '"':
		var text string
		_ = json.Unmarshal(v, &text)
		return text
	case 'n':
		return nil
	}
	return string(v)
}

func stamp(nanoseconds int64) string {
	return time.Unix(0, nanoseconds).UTC().Format(time.RFC3339Nano)
}

// revenue returns that of an item.
func (o *offered) revenue(i int) float64 {
	if o.Revenue == nil {
		return 1
	}
	return o.Revenue[i]
}

// itemPropensity returns the probability of an item being on the page, and false if the log does not say
// it: that of the law, or of the page if all pages of the placement have one item. A page that happens to have one item says
// nothing: a sample of such pages would be biased.
func (o *offered) itemPropensity(law offpolicy.Law, i int) (float64, bool) {
	switch {
	case law != nil:
		return law.Inclusion(i), true
	case o.config != nil && o.config.MaxSize == 1 && o.Propensity > 0:
		return o.Propensity, true
	}
	return 0, false
}

// ExportVW writes decisions as dsjson of Vowpal Wabbit, a slate of slots (CCB) each. The cost of the slot of the
// item that was taken is minus its revenue. The probability of a slot is that of its item being on
// the page, because the log has none of slots. Decisions without an outcome or without these
// probabilities are left out, with a warning. What our log has beyond that is in _vitrine and _revenue, which
// Vowpal Wabbit ignores.
func (log *Log) ExportVW(ctx context.Context, w io.Writer, which Decisions) error {
	buffered := bufio.NewWriterSize(w, 1<<16)
	out := jsontext.NewEncoder(buffered)
	all, ended, unknown := 0, 0, 0
	_, err := log.decisions(ctx, "exporting", which, func(o *offered, end outcome) error {
		all++
		law := offer.LawOf(o.Offered)
		known := o.named()
		for _, i := range o.Shown {
			_, ok := o.itemPropensity(law, int(i))
			known = known && ok
		}
		switch {
		case !end.isRound() || len(o.Shown) == 0:
			ended++
			return nil
		case !known:
			unknown++
			return nil
		}
		return writeVW(out, o, end, law)
	})
	if err = errors.Join(err, buffered.Flush()); err != nil {
		return err
	}
	log.warnSkipped(ended, all, "have no outcome")
	log.warnSkipped(unknown, all, "have no propensities of items: placements in the mode explore have them")
	return nil
}

func writeVW(out *jsontext.Encoder, o *offered, end outcome, law offpolicy.Law) error {
	l := line{out: out}
	l.token(jsontext.BeginObject)
	l.member("Timestamp", jsontext.String(stamp(o.time)))
	l.member("Version", jsontext.String("1"))
	l.member("EventId", jsontext.String(o.Decision))
	l.member("c", jsontext.BeginObject)
	if o.config.Schema().NumUser() > 0 && len(o.ItemIDs) > 0 {
		l.features("user", o, 0, true)
	}
	l.member("_multi", jsontext.BeginArray)
	for i, id := range o.ItemIDs {
		l.token(jsontext.BeginObject)
		l.member("_tag", jsontext.String(id))
		l.member("_revenue", jsontext.Float(o.revenue(i)))
		l.features("item", o, i, false)
		l.token(jsontext.EndObject)
	}
	l.token(jsontext.EndArray)
	l.member("_slots", jsontext.BeginArray)
	for k := range o.Shown {
		l.token(jsontext.BeginObject)
		l.member("_id", jsontext.String(strconv.Itoa(k+1)))
		l.token(jsontext.EndObject)
	}
	l.token(jsontext.EndArray, jsontext.EndObject)
	l.member("_outcomes", jsontext.BeginArray)
	for k, i := range o.Shown {
		cost := 0.0
		if int(end.choice) == k+1 {
			cost = -end.earned
		}
		p, _ := o.itemPropensity(law, int(i))
		l.token(jsontext.BeginObject)
		l.member("_label_cost", jsontext.Float(cost))
		l.member("_id", jsontext.String(strconv.Itoa(k+1)))
		l.member("_a", jsontext.BeginArray)
		l.token(jsontext.Int(int64(i)), jsontext.EndArray)
		l.member("_p", jsontext.BeginArray)
		l.token(jsontext.Float(p), jsontext.EndArray, jsontext.EndObject)
	}
	l.token(jsontext.EndArray)
	l.member("_vitrine", jsontext.BeginObject)
	if end.choice > 0 {
		l.member("choice", jsontext.String(o.ItemIDs[o.Shown[end.choice-1]]))
	}
	if o.Propensity > 0 {
		l.member("propensity", jsontext.Float(o.Propensity))
	}
	if d := offer.DrawOf(o.Offered); d != nil {
		l.token(jsontext.String("law"))
		l.draw(o, d)
	}
	l.token(jsontext.EndObject, jsontext.EndObject)
	return l.err
}

// ExportOBP writes decisions as Open Bandit Pipeline has them: to w a row for each item shown, with a column
// decision_id beside theirs, and to items the item_context.csv. That pipeline takes items to have one context each:
// of an item whose features change, the last ones are written, with a warning. Decisions without
// an outcome or without propensities of items are left out, with a warning.
func (log *Log) ExportOBP(ctx context.Context, w, items io.Writer, which Decisions) error {
	c, err := log.configOf(ctx, which)
	if err != nil {
		return err
	}
	own, users := c.FeatureNames()
	buffered := bufio.NewWriterSize(w, 1<<16)
	out := csv.NewWriter(buffered)
	out.Write(slices.Concat([]string{"decision_id", "timestamp", "item_id", "position", "click", "propensity_score"}, users))
	all, ended, unknown, changed := 0, 0, 0, map[string]bool{}
	contexts := map[string][]string{}
	var order []string
	width := c.Schema().Width()
	_, err = log.decisions(ctx, "exporting", which, func(o *offered, end outcome) error {
		all++
		law := offer.LawOf(o.Offered)
		switch {
		case !end.isRound() || len(o.Shown) == 0:
			ended++
			return nil
		case o.Width != width || !o.named():
			unknown++
			return nil
		}
		for _, i := range o.Shown {
			if _, ok := o.itemPropensity(law, int(i)); !ok {
				unknown++
				return nil
			}
		}
		for i, id := range o.ItemIDs {
			context := append([]string{decimalOf(o.revenue(i))}, o.texts(i, own, false)...)
			if before, ok := contexts[id]; !ok {
				order = append(order, id)
			} else if !slices.Equal(before, context) {
				changed[id] = true
			}
			contexts[id] = context
		}
		user := o.texts(0, users, true)
		for k, i := range o.Shown {
			click := "0"
			if int(end.choice) == k+1 {
				click = "1"
			}
			p, _ := o.itemPropensity(law, int(i))
			out.Write(slices.Concat([]string{o.Decision, stamp(o.time), o.ItemIDs[i], strconv.Itoa(k + 1), click, decimalOf(p)}, user))
		}
		return out.Error()
	})
	out.Flush()
	if err = errors.Join(err, out.Error(), buffered.Flush()); err != nil {
		return err
	}
	list := csv.NewWriter(items)
	list.Write(slices.Concat([]string{"item_id", "revenue"}, own))
	for _, id := range order {
		list.Write(slices.Concat([]string{id}, contexts[id]))
	}
	list.Flush()
	log.warnSkipped(ended, all, "have no outcome")
	log.warnSkipped(unknown, all, "have no propensities of items, or the features of another configuration")
	if n := len(changed); n > 0 {
		log.warn(fmt.Sprintf("%d items have other features or revenues in some decisions: item_context.csv has the last ones", n))
	}
	return list.Error()
}

// texts returns features as text.
func (o *offered) texts(item int, names []string, user bool) []string {
	value := map[string]string{}
	o.config.Schema().Named(o.Features[item*o.Width:(item+1)*o.Width], user, func(name string, v jsontext.Value) {
		switch v := plain(v).(type) {
		case float64:
			value[name] = decimalOf(v)
		case string:
			value[name] = v
		}
	})
	list := make([]string, len(names))
	for k, name := range names {
		list[k] = value[name]
	}
	return list
}

func decimalOf(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
