package records

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"vitrine/service/api"
)

// readVW reads the text of Vowpal Wabbit. With actions in the mapping a line is a decision (--cb), whose features are the
// user's. Otherwise lines up to an empty one are a decision: a shared line, one for each action, and for slates of slots
// (ccb) one for each slot.
func readVW(s *source) error {
	v := &vwText{source: s}
	err := s.everyLine(func(place string, text []byte) error {
		text = bytes.TrimSpace(text)
		if len(text) == 0 {
			return v.close()
		}
		e, err := parseVW(string(text))
		if err != nil {
			return err
		}
		if s.mapping.Actions > 0 {
			return v.single(place, e)
		}
		return v.add(place, e)
	})
	if err != nil {
		return err
	}
	if v.open != nil {
		if err := v.close(); err != nil {
			return fmt.Errorf("%s: %w", v.last, err)
		}
	}
	return nil
}

// vwText makes decisions of the lines of a text.
type vwText struct {
	*source
	open *found
	line vwLine // its label
	last string // the place of its last line
}

// single adds a line that is a decision between actions without features.
func (v *vwText) single(place string, e *vwExample) error {
	f := &found{id: vwID(e.tag, place), user: e.fields}
	for k := range v.mapping.Actions {
		f.items = append(f.items, vwItem(strconv.Itoa(k+1), fields{}))
	}
	var l vwLine
	if len(e.labels) > 0 {
		l = e.labels[0].line(v.mapping)
	}
	return v.label(f, &l)
}

// vwID returns the id of a decision: a tag, or its place.
func vwID(tag, place string) string {
	if tag != "" {
		return tag
	}
	return idOf(place)
}

// vwItem returns an item, whose id is its feature "id", unless it has a feature of this name.
func vwItem(id string, f fields) foundItem {
	if _, ok := f["id"]; !ok {
		f["id"] = api.Text("", id)
	}
	return foundItem{id: id, fields: f}
}

// label adds a decision with a label, or without one.
func (s *source) label(f *found, l *vwLine) error {
	if err := s.outcomesOf(f, l); err != nil {
		return err
	}
	return s.add(f)
}

// add adds a line to the open decision.
func (v *vwText) add(place string, e *vwExample) error {
	if v.open != nil && e.kind == "shared" {
		if err := v.close(); err != nil {
			return err
		}
	}
	if v.open == nil {
		v.open, v.line = &found{id: vwID("", place), user: fields{}}, vwLine{}
	}
	v.last = place
	switch e.kind {
	case "slates":
		v.open.skip = ofSlates
	case "shared":
		v.open.id, v.open.user = vwID(e.tag, place), e.fields
	case "slot":
		o, err := slotOf(e.slot)
		if err != nil {
			return err
		}
		if o == nil {
			v.open.skip = noLabel
			return nil
		}
		v.line.Outcomes = append(v.line.Outcomes, *o)
	default:
		k := len(v.open.items) + 1
		id := e.tag
		if id == "" {
			id = strconv.Itoa(k)
		}
		v.open.items = append(v.open.items, vwItem(id, e.fields))
		if len(e.labels) > 0 {
			l := e.labels[0]
			if v.line.Cost != nil {
				v.open.skip = "have two labels"
			}
			l.action = k // the number before the cost is not used
			v.line = l.line(v.mapping)
		}
	}
	return nil
}

// close ends the open decision.
func (v *vwText) close() error {
	f := v.open
	if f == nil {
		return nil
	}
	v.open = nil
	return v.label(f, &v.line)
}

// vwExample is a line of the text.
type vwExample struct {
	kind   string // "shared", "slot" of ccb, "slates", and "" for an action
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

// line returns the label as dsjson has it.
func (l vwLabel) line(m *Mapping) vwLine {
	if m.Loss {
		l.cost--
	}
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
	if n := len(words); n > 0 && (!strings.HasSuffix(head, " ") || words[n-1][0] == '\'') {
		if w := words[n-1]; w[0] == '\'' || !isLabel(w) {
			e.tag, words = strings.TrimPrefix(w, "'"), words[:n-1]
		}
	}
	if len(words) > 0 {
		switch words[0] {
		case "shared":
			e.kind, words = "shared", nil
		case "slates":
			e.kind, words = "slates", nil
		case "ccb":
			if len(words) < 2 {
				return nil, fmt.Errorf("%.40q: want ccb shared, ccb action or ccb slot", head)
			}
			switch words[1] {
			case "shared", "slot":
				e.kind = words[1]
			case "action":
			default:
				return nil, fmt.Errorf("%.40q: want ccb shared, ccb action or ccb slot", head)
			}
			if e.kind == "slot" && len(words) > 2 {
				e.slot = words[2]
			}
			words = nil
		}
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
		if l.action, err = strconv.Atoi(parts[0]); err == nil {
			if l.cost, err = strconv.ParseFloat(parts[1], 64); err == nil {
				l.probability, err = strconv.ParseFloat(parts[2], 64)
			}
		}
	}
	if len(parts) != 3 || err != nil {
		return l, fmt.Errorf("the label %.40q is not action:cost:probability: only contextual bandits have decisions", w)
	}
	return l, nil
}

// slotOf returns the label of a slot, chosen:cost:probability,other:probability…; nil if there is none.
func slotOf(text string) (*vwOutcome, error) {
	if !strings.Contains(text, ":") {
		return nil, nil
	}
	first, others, _ := strings.Cut(text, ",")
	l, err := labelOf(first)
	if err != nil {
		return nil, err
	}
	actions, probabilities := []int{l.action}, []float64{l.probability}
	for _, w := range strings.Split(others, ",") {
		action, p, ok := strings.Cut(w, ":")
		if !ok {
			continue
		}
		a, err := strconv.Atoi(action)
		q, invalid := strconv.ParseFloat(p, 64)
		if err != nil || invalid != nil {
			return nil, fmt.Errorf("the label %.40q is not chosen:cost:probability,other:probability", text)
		}
		actions, probabilities = append(actions, a), append(probabilities, q)
	}
	return &vwOutcome{Cost: &l.cost, actions: actions, p: probabilities}, nil
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
		if category, is, ok := strings.Cut(name, "="); ok {
			e.fields[prefix+category] = api.Text("", is)
			continue
		}
		switch {
		case !hasValue:
			e.fields[prefix+name] = api.Number("", scale)
		case err == nil:
			e.fields[prefix+name] = api.Number("", float64(scale*v))
		default:
			e.fields[prefix+name] = api.Text("", value)
		}
	}
}

// readVWJSON reads the JSON of Vowpal Wabbit (--json): a line is a decision, with the label next to the features of the user
// or inside the action that was shown.
func readVWJSON(s *source) error {
	return s.lines(func(place string, text []byte) error {
		var top map[string]jsontext.Value
		if err := json.Unmarshal(text, &top); err != nil {
			return api.JSONError(err)
		}
		l, err := jsonLabel(top)
		if err != nil {
			return err
		}
		f := &found{id: vwID(textMember(top, "_tag"), place), user: fields{}}
		if v, ok := top["_multi"]; !ok {
			if s.mapping.Actions == 0 {
				return errors.New("_multi is missing: it has the actions. If actions have no features, set actions = their number in the mapping")
			}
			for k := range s.mapping.Actions {
				f.items = append(f.items, vwItem(strconv.Itoa(k+1), fields{}))
			}
			members, err := membersOf(text)
			if err != nil {
				return err
			}
			if f.user, err = fieldsOf(members); err != nil {
				return err
			}
		} else {
			var actions []map[string]jsontext.Value
			if err := json.Unmarshal(v, &actions); err != nil {
				return fmt.Errorf("_multi: %w", err)
			}
			if err := f.context(text, nil); err != nil {
				return err
			}
			for k, action := range actions {
				inner, err := jsonLabel(action)
				if err != nil {
					return fmt.Errorf("_multi/%d: %w", k, err)
				}
				if inner != nil && l == nil {
					l, inner.action = inner, k+1
				}
			}
		}
		line := vwLine{}
		if l != nil {
			line = l.line(s.mapping)
		}
		return s.label(f, &line)
	})
}

func textMember(m map[string]jsontext.Value, name string) (text string) {
	_ = json.Unmarshal(m[name], &text)
	return text
}

// jsonLabel returns the label among the members of an object, with its action from 1 on; nil if there is none.
func jsonLabel(m map[string]jsontext.Value) (*vwLabel, error) {
	var l vwLabel
	get := func(dst any, m map[string]jsontext.Value, names ...string) bool {
		for _, name := range names {
			if v, ok := m[name]; ok && json.Unmarshal(v, dst) == nil {
				return true
			}
		}
		return false
	}
	parts := m
	cost, p, action := []string{"_label_Cost", "_label_cost"}, []string{"_label_Probability", "_label_probability"}, []string{"_label_Action", "_label_action"}
	if v, ok := m["_label"]; ok {
		if v.Kind() == '"' {
			l, err := labelOf(textMember(m, "_label"))
			return &l, err
		}
		if err := json.Unmarshal(v, &parts); err != nil {
			return nil, fmt.Errorf("_label: %.40s is no label of a contextual bandit", v)
		}
		cost, p, action = []string{"Cost", "cost"}, []string{"Probability", "probability"}, []string{"Action", "action"}
	}
	if !get(&l.cost, parts, cost...) {
		return nil, nil
	}
	if !get(&l.probability, parts, p...) {
		return nil, errors.New("the label has no probability")
	}
	get(&l.action, parts, action...)
	var index int
	if get(&index, m, "_labelIndex", "_label_index") {
		l.action = index + 1
	}
	return &l, nil
}
