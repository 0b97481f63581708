package importer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"vitrine/service/api"
)

// readVW reads the text of Vowpal Wabbit. With actions in the mapping a line is a decision (--cb), and its features
// describe the user. Otherwise lines up to an empty one are a decision: a shared line, one for each action, and for
// slates or slots (ccb) one for each slot.
func readVW(s *source) error {
	var open *found
	var label vwLine
	place, last := "", "" // how errors call the decision, and the place of the last line
	end := func() (err error) {
		if open != nil {
			if open.id != place {
				open.text = nil
			}
			err = s.label(open, &label)
			open = nil
		}
		return err
	}
	err := s.everyLine(func(at string, text []byte) error {
		if text = bytes.TrimSpace(text); len(text) == 0 {
			return end()
		}
		e, err := parseVW(string(text))
		if err != nil {
			return err
		}
		if s.mapping.Actions > 0 || e.kind == "shared" {
			if err := end(); err != nil {
				return err
			}
		}
		if last = at; open == nil {
			place = idOf(at)
			open, label = &found{id: place, user: fields{}}, vwLine{}
		}
		open.text = append(append(open.text, text...), '\n')
		if s.mapping.Actions == 0 {
			return open.addLine(e, &label)
		}
		open.id, open.user, open.items = cmp.Or(e.tag, open.id), e.fields, numbered(s.mapping.Actions)
		if len(e.labels) > 0 {
			label = e.labels[0].line()
		}
		return end()
	})
	if err == nil {
		if err = end(); err != nil {
			err = fmt.Errorf("%s: %w", last, err)
		}
	}
	return err
}

// addLine adds a line to a decision and its label.
func (f *found) addLine(e *vwExample, label *vwLine) error {
	switch e.kind {
	case "slates":
		f.skip = ofSlates
	case "shared":
		f.id, f.user = cmp.Or(e.tag, f.id), e.fields
	case "slot":
		o, err := slotOf(e.slot)
		if err != nil {
			return err
		}
		if o == nil {
			f.skip = noLabel
			return nil
		}
		label.Outcomes = append(label.Outcomes, *o)
	default:
		k := len(f.items) + 1
		f.items = append(f.items, vwItem(cmp.Or(e.tag, strconv.Itoa(k)), e.fields))
		if len(e.labels) > 0 {
			if label.Cost != nil {
				f.skip = "have two labels"
			}
			l := e.labels[0]
			l.action = k // the number before the cost is not used
			*label = l.line()
		}
	}
	return nil
}

// vwItem returns an item with its id as the feature "id", unless the line names such a feature.
func vwItem(id string, f fields) foundItem {
	if _, ok := f["id"]; !ok {
		f["id"] = api.Text("", id)
	}
	return foundItem{id: id, fields: f}
}

// numbered returns n actions without features.
func numbered(n int) (items []foundItem) {
	for k := range n {
		items = append(items, vwItem(strconv.Itoa(k+1), fields{}))
	}
	return items
}

// label adds a decision with a label, or without one. Losses become costs.
func (s *source) label(f *found, l *vwLine) error {
	if s.mapping.Loss {
		if l.Cost != nil {
			*l.Cost--
		}
		for _, o := range l.Outcomes {
			*o.Cost--
		}
	}
	if err := s.outcomesOf(f, l); err != nil {
		return err
	}
	return s.add(f)
}

// vwExample is a line of the text.
type vwExample struct {
	kind   string // "shared", "slates", "slot" or "action" of ccb, and "" for another action
	labels []vwLabel
	slot   string // the label of a slot
	tag    string
	fields fields
}

// vwLabel is action:cost:probability.
type vwLabel struct {
	action            int
	cost, probability float64
}

// line returns the label in the form of dsjson.
func (l vwLabel) line() vwLine {
	return vwLine{Cost: &l.cost, Actions: []int{l.action}, P: []float64{l.probability}}
}

// parseVW parses a line: [label] [tag]|namespace feature:value … |namespace …
func parseVW(text string) (*vwExample, error) {
	head, rest, ok := strings.Cut(text, "|")
	if !ok {
		return nil, fmt.Errorf("%.40q has no features, which begin with |", text)
	}
	e := &vwExample{fields: fields{}}
	words := strings.Fields(head)
	if n := len(words); n > 0 && (!strings.HasSuffix(head, " ") || words[n-1][0] == '\'') && !isLabel(words[n-1]) {
		e.tag, words = strings.TrimPrefix(words[n-1], "'"), words[:n-1]
	}
	switch first := strings.Join(words[:min(2, len(words))], " "); {
	case strings.HasPrefix(first, "shared"), strings.HasPrefix(first, "slates"):
		e.kind, words = words[0], nil
	case first == "ccb shared", first == "ccb slot", first == "ccb action":
		if e.kind = words[1]; len(words) > 2 {
			e.slot = words[2]
		}
		words = nil
	case strings.HasPrefix(first, "ccb"):
		return nil, fmt.Errorf("%.40q: want ccb shared, ccb action or ccb slot", head)
	}
	for _, w := range words {
		if !strings.Contains(w, ":") { // of --cb: an action that could have been taken
			continue
		}
		l, err := labelOf(w)
		if err != nil {
			return nil, err
		}
		e.labels = append(e.labels, l)
	}
	for _, part := range strings.Split(rest, "|") {
		e.namespace(part)
	}
	return e, nil
}

// isLabel reports whether a word that touches the features is a label, and not their tag.
func isLabel(w string) bool {
	_, err := labelOf(w)
	return err == nil || slices.Contains([]string{"shared", "ccb", "slates", "action", "slot"}, w)
}

func labelOf(w string) (l vwLabel, err error) {
	parts := strings.Split(w, ":")
	if len(parts) == 3 {
		l.action, err = strconv.Atoi(parts[0])
		for k, v := range []*float64{&l.cost, &l.probability} {
			if err == nil {
				*v, err = strconv.ParseFloat(parts[k+1], 64)
			}
		}
	}
	if len(parts) != 3 || err != nil {
		return l, fmt.Errorf("the label %.40q is not action:cost:probability: only contextual bandits have "+
			"decisions", w)
	}
	return l, nil
}

// slotOf returns the label of a slot, chosen:cost:probability,other:probability…; nil without a label.
func slotOf(text string) (*vwOutcome, error) {
	if !strings.Contains(text, ":") {
		return nil, nil
	}
	parts := strings.Split(text, ",")
	l, err := labelOf(parts[0])
	if err != nil {
		return nil, err
	}
	o := &vwOutcome{Cost: &l.cost, actions: []int{l.action}, p: []float64{l.probability}}
	for _, w := range parts[1:] {
		action, p, ok := strings.Cut(w, ":")
		if !ok {
			continue
		}
		a, err := strconv.Atoi(action)
		q, invalid := strconv.ParseFloat(p, 64)
		if err != nil || invalid != nil {
			return nil, fmt.Errorf("the label %.40q is not chosen:cost:probability,other:probability", text)
		}
		o.actions, o.p = append(o.actions, a), append(o.p, q)
	}
	return o, nil
}

// namespace adds the features of a namespace. "name=value" is a category, "name:2.5" a number, and "name" the number 1.
func (e *vwExample) namespace(text string) {
	words := strings.Fields(text)
	prefix, scale := "", 1.0
	if len(words) > 0 && text[0] != ' ' && text[0] != '\t' {
		name, value, ok := strings.Cut(words[0], ":")
		if v, err := strconv.ParseFloat(value, 64); ok && err == nil {
			scale = v
		}
		prefix, words = name+".", words[1:]
	}
	for _, w := range words {
		name, value, hasValue := strings.Cut(w, ":")
		v, err := strconv.ParseFloat(value, 64)
		category, is, isCategory := strings.Cut(name, "=")
		switch {
		case isCategory:
			e.fields[prefix+category] = api.Text("", is)
		case !hasValue:
			e.fields[prefix+name] = api.Number("", scale)
		case err == nil:
			e.fields[prefix+name] = api.Number("", float64(scale*v))
		default:
			e.fields[prefix+name] = api.Text("", value)
		}
	}
}

// readVWJSON reads the JSON of Vowpal Wabbit (--json): a line is a decision, with the label next to the features of the
// user or inside the action that was shown.
func readVWJSON(s *source) error {
	return s.lines(func(place string, text []byte) error {
		members, err := membersOf(text)
		if err != nil {
			return api.JSONError(err)
		}
		f := &found{id: idOf(place), text: text}
		if _, ok := valueOf(members, "_multi"); ok {
			err = f.context(text, nil)
		} else if f.items = numbered(s.mapping.Actions); f.items == nil {
			err = errors.New("_multi is missing: it has the actions. If actions have no features, set actions = " +
				"their number in the mapping")
		} else {
			f.user, err = fieldsOf(members)
		}
		if err != nil {
			return err
		}
		if tag, ok := valueOf(members, "_tag"); ok && json.Unmarshal(tag, &f.id) == nil && f.id != "" {
			f.text = nil
		}
		l, err := anyLabel(members)
		if err != nil {
			return err
		}
		line := vwLine{}
		if l != nil {
			line = l.line()
		}
		return s.label(f, &line)
	})
}

// valueOf returns the member of an object with the first of the names that it uses. Of repeated members the last one
// counts, as in [json.Unmarshal].
func valueOf(members []member, names ...string) (jsontext.Value, bool) {
	for _, name := range names {
		for _, m := range slices.Backward(members) {
			if m.name == name {
				return m.value, true
			}
		}
	}
	return nil, false
}

// anyLabel returns the label of a line, or of its first action with a label; nil without a label.
func anyLabel(top []member) (*vwLabel, error) {
	if l, err := jsonLabel(top); l != nil || err != nil {
		return l, err
	}
	var actions []jsontext.Value
	if list, ok := valueOf(top, "_multi"); ok {
		if err := json.Unmarshal(list, &actions, jsontext.AllowDuplicateNames(true)); err != nil {
			return nil, fmt.Errorf("_multi: %w", err)
		}
	}
	for k, action := range actions {
		members, err := membersOf(action)
		if err != nil {
			return nil, fmt.Errorf("_multi/%d: %w", k, err)
		}
		if l, err := jsonLabel(members); err != nil {
			return nil, fmt.Errorf("_multi/%d: %w", k, err)
		} else if l != nil {
			l.action = k + 1
			return l, nil
		}
	}
	return nil, nil
}

// jsonLabel returns the label among the members of an object, with its action from 1 on; nil without a label.
func jsonLabel(members []member) (*vwLabel, error) {
	prefix, parts := "_label_", members
	if v, ok := valueOf(members, "_label"); ok {
		if v.Kind() == '"' {
			text, _ := scalar(v)
			l, err := labelOf(text.Text)
			return &l, err
		}
		var err error
		if parts, err = membersOf(v); err != nil {
			return nil, fmt.Errorf("_label: %.40s is no label of a contextual bandit", v)
		}
		prefix = ""
	}
	get := func(dst any, members []member, names ...string) bool {
		v, ok := valueOf(members, names...)
		return ok && json.Unmarshal(v, dst) == nil
	}
	var l vwLabel
	if !get(&l.cost, parts, prefix+"Cost", prefix+"cost") {
		return nil, nil
	}
	if !get(&l.probability, parts, prefix+"Probability", prefix+"probability") {
		return nil, errors.New("the label has no probability")
	}
	get(&l.action, parts, prefix+"Action", prefix+"action")
	if index := 0; get(&index, members, "_labelIndex", "_label_index") {
		l.action = index + 1
	}
	return &l, nil
}
