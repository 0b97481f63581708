package inspect

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/parquet-go/parquet-go"

	"vitrine/service/api"
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
		"decision_id": parquet.String(), "entry": parquet.Leaf(parquet.Int64Type), "time": parquet.String(),
		"item":  parquet.String(),
		"shown": parquet.Leaf(parquet.Int64Type), "chosen": parquet.Leaf(parquet.Int64Type),
		"units": parquet.Leaf(parquet.Int64Type), "units_value": parquet.Leaf(parquet.DoubleType),
		"revenue":         parquet.Leaf(parquet.DoubleType),
		"propensity":      parquet.Optional(parquet.Leaf(parquet.DoubleType)),
		"item_propensity": parquet.Optional(parquet.Leaf(parquet.DoubleType)),
		"sampling_law":    parquet.Optional(parquet.String()), "source": parquet.String(), "status": parquet.String(),
		"earned": parquet.Leaf(parquet.DoubleType), "outcome_time": parquet.Optional(parquet.String()),
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
	if !hasFeature(c, "variant") {
		schema["variant"] = parquet.Optional(parquet.String())
	}
	out := parquet.NewGenericWriter[map[string]any](w, parquet.NewSchema("decisions", schema),
		parquet.Compression(&parquet.Zstd))
	width := c.Schema().Width()
	err = log.export(ctx, which, func(o *offered, end outcome) (remark string, err error) {
		switch {
		case o.Width != width || !o.hasColumnsOf(c):
			return otherFeatures, nil
		case o.Propensity == 0 && offer.RecordedLawOf(o.Offered) == nil:
			remark = noPropensity
		}
		_, err = out.Write(tableRows(o, end))
		return remark, err
	})
	return errors.Join(err, out.Close())
}

// configOf returns the configuration of the placement that is exported, which must be one.
func (log *Log) configOf(ctx context.Context, which Decisions) (*setup.Config, error) {
	configs, err := log.decisions(ctx, "reading", which, func(*offered, outcome) error { return nil })
	if err != nil {
		return nil, err
	}
	if which.Placement == "" && len(configs) != 1 {
		return nil, fmt.Errorf("%s has the placements %v: name one with --placement, a table has the features of one",
			log.Name, slices.Sorted(maps.Keys(configs)))
	}
	for name, c := range configs {
		if which.Placement != "" && name != which.Placement {
			continue
		}
		if c == nil {
			return nil, fmt.Errorf("%s: the configuration of placement %q is neither in the log nor in a snapshot",
				log.Name, name)
		}
		return c, nil
	}
	return nil, fmt.Errorf("%s has no placement", log.Name)
}

// hasColumnsOf reports whether the names of the decision's features are known, and a table of the configuration contains a
// column for each.
func (o *offered) hasColumnsOf(c *setup.Config) bool {
	return o.named() && maps.Equal(columnsOf(o.config), columnsOf(c))
}

func hasFeature(c *setup.Config, name string) bool {
	return slices.ContainsFunc(c.Features, func(f api.Feature) bool { return f.Name == name })
}

func columnsOf(c *setup.Config) map[[3]string]bool {
	columns := map[[3]string]bool{}
	for _, f := range c.Features {
		columns[[3]string{f.Name, f.Kind, f.From}] = true
	}
	return columns
}

// tableRows returns the rows of a decision.
func tableRows(o *offered, end outcome) []map[string]any {
	law, named := o.law()
	text := ""
	if law != nil {
		b, _ := json.Marshal(named)
		text = string(b)
	}
	var rows []map[string]any
	for i, id := range o.ItemIDs {
		place := slices.Index(o.Shown, int32(i)) + 1
		chosen, units, value, earned := int64(0), int64(0), 0.0, 0.0
		if t := end.at(int32(place)); place > 0 && t != nil {
			chosen, units, value, earned = 1, int64(t.Quantity), t.value(), t.earned
		}
		row := map[string]any{
			"decision_id": o.Decision, "entry": int64(o.sequence), "time": stamp(o.time), "item": id,
			"shown": int64(place), "chosen": chosen, "units": units, "units_value": value,
			"revenue": o.revenue(i), "source": offer.SourceNames[o.Mode], "status": end.status, "earned": earned,
		}
		if o.variant != "" && !hasFeature(o.config, "variant") {
			row["variant"] = o.variant
		}
		if end.sequence > 0 {
			row["outcome_time"] = stamp(end.time)
		}
		if o.Propensity > 0 {
			row["propensity"] = o.Propensity
		}
		if law != nil {
			row["item_propensity"], row["sampling_law"] = new(law.Inclusion(i)), text
		}
		for _, user := range []bool{false, true} {
			o.config.Schema().Named(o.Features[i*o.Width:(i+1)*o.Width], user, func(name string, v jsontext.Value) {
				switch v := plain(v).(type) { // pointers, because an optional column takes a bare 0 or "" for null
				case float64:
					row[name] = &v
				case string:
					row[name] = &v
				}
			})
		}
		rows = append(rows, row)
	}
	return rows
}

// plain returns a JSON value for a table: a number, a text, or nil for null.
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

// revenue returns an item's revenue.
func (o *offered) revenue(i int) float64 {
	if o.Revenue == nil {
		return 1
	}
	return o.Revenue[i]
}

// inclusions returns each shown item's probability of being on the page of a round, or why the decision is left out.
// The probabilities follow from the law, or from the page's propensity if all pages of the placement show one item. A
// page that happens to show one item does not count: a sample of such pages would be biased.
func (o *offered) inclusions(end outcome) (p []float64, without string) {
	switch {
	case !end.isRound() || len(o.Shown) == 0:
		return nil, noOutcome
	case !o.named():
		return nil, otherFeatures
	}
	law := offer.LawOf(o.Offered)
	for _, i := range o.Shown {
		switch {
		case law != nil:
			p = append(p, law.Inclusion(int(i)))
		case o.config.MaxSize == 1 && o.Propensity > 0:
			p = append(p, o.Propensity)
		default:
			return nil, noPropensities
		}
	}
	return p, ""
}

// ExportVW writes decisions as dsjson of Vowpal Wabbit, a slate of slots (CCB) each. The cost of the slot with the item
// taken is minus its earnings. A slot's probability is its item's probability of being on the page, because the log
// holds none for slots. Decisions without an outcome or without these probabilities are left out, with a warning. Our
// log's further facts are in _vitrine and _revenue, which Vowpal Wabbit ignores.
func (log *Log) ExportVW(ctx context.Context, w io.Writer, which Decisions) error {
	buffered := bufio.NewWriterSize(w, 1<<16)
	out := jsontext.NewEncoder(buffered)
	err := log.export(ctx, which, func(o *offered, end outcome) (string, error) {
		p, without := o.inclusions(end)
		if without != "" {
			return without, nil
		}
		return "", writeVW(out, o, end, p)
	})
	return errors.Join(err, buffered.Flush())
}

// vwLine is a decision in dsjson.
type vwLine struct {
	Timestamp, Version, EventId string
	Context                     struct {
		User  jsontext.Value `json:"user,omitzero"`
		Multi []vwItem       `json:"_multi"`
		Slots []vwSlot       `json:"_slots"`
	} `json:"c"`
	Outcomes []vwOutcome `json:"_outcomes"`
	Vitrine  struct {
		Choice     *string         `json:"choice,omitzero"`
		Choices    []api.Choice    `json:"choices,omitzero"`
		Propensity float64         `json:"propensity,omitzero"`
		Law        *offer.NamedLaw `json:"sampling_law,omitzero"`
	} `json:"_vitrine"`
}

type vwItem struct {
	ID       string         `json:"_tag"`
	Revenue  float64        `json:"_revenue"`
	Features jsontext.Value `json:"item"`
}

type vwSlot struct {
	ID string `json:"_id"`
}

type vwOutcome struct {
	Cost        float64    `json:"_label_cost"`
	ID          string     `json:"_id"`
	Action      [1]int32   `json:"_a"`
	Probability [1]float64 `json:"_p"`
}

// writeVW writes a decision, given the probability of each item shown.
func writeVW(out *jsontext.Encoder, o *offered, end outcome, p []float64) error {
	l := vwLine{Timestamp: stamp(o.time), Version: "1", EventId: o.Decision}
	if o.config.Schema().NumUser() > 0 && len(o.ItemIDs) > 0 {
		l.Context.User = o.features(0, true)
	}
	for i, id := range o.ItemIDs {
		l.Context.Multi = append(l.Context.Multi, vwItem{id, o.revenue(i), o.features(i, false)})
	}
	for k, i := range o.Shown {
		slot, cost := strconv.Itoa(k+1), 0.0
		if t := end.at(int32(k + 1)); t != nil {
			cost = -t.earned
		}
		l.Context.Slots = append(l.Context.Slots, vwSlot{slot})
		l.Outcomes = append(l.Outcomes, vwOutcome{cost, slot, [1]int32{i}, [1]float64{p[k]}})
	}
	l.Vitrine.Choice, l.Vitrine.Choices = o.chosen(end)
	l.Vitrine.Propensity = max(o.Propensity, 0)
	if draw := offer.RecordedLawOf(o.Offered); draw != nil {
		l.Vitrine.Law = draw.Named(o.ItemIDs)
	}
	return json.MarshalEncode(out, &l)
}

// ExportOBP writes decisions in Open Bandit Pipeline's format: to w a row for each item shown, with a column
// decision_id next to theirs, and to items the item_context.csv. That pipeline assumes one context an item: if an
// item's features change, the last ones are written, with a warning. Decisions without an outcome, without item
// propensities or with other features are left out, with a warning.
func (log *Log) ExportOBP(ctx context.Context, w, items io.Writer, which Decisions) error {
	c, err := log.configOf(ctx, which)
	if err != nil {
		return err
	}
	own, users := c.FeatureNames()
	buffered := bufio.NewWriterSize(w, 1<<16)
	out := csv.NewWriter(buffered)
	out.Write(slices.Concat([]string{"decision_id", "timestamp", "item_id", "position", "click", "propensity_score"},
		users))
	changed, contexts := map[string]bool{}, map[string][]string{}
	var order []string
	width := c.Schema().Width()
	err = log.export(ctx, which, func(o *offered, end outcome) (string, error) {
		p, without := o.inclusions(end)
		if without == "" && (o.Width != width || !o.hasColumnsOf(c)) {
			without = otherFeatures
		}
		if without != "" {
			return without, nil
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
			if end.at(int32(k+1)) != nil {
				click = "1"
			}
			out.Write(slices.Concat([]string{o.Decision, stamp(o.time), o.ItemIDs[i], strconv.Itoa(k + 1), click,
				decimalOf(p[k])}, user))
		}
		remark := ""
		if slices.ContainsFunc(end.taken, func(t taken) bool { return t.earned != o.revenue(int(o.Shown[t.Place-1])) }) {
			remark = otherMoney
		}
		return remark, out.Error()
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
	if n := len(changed); n > 0 {
		log.warn(fmt.Sprintf("%d items have other features or revenues in some decisions: item_context.csv has "+
			"the last ones", n))
	}
	return list.Error()
}

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
