package importer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"vitrine/internal/table"
	"vitrine/service/api"
	"vitrine/service/importer/cell"
	"vitrine/service/offer"
	"vitrine/service/personalizer"
)

// exported is a line of vitrine export.
type exported struct {
	ID    string `json:"decision_id"`
	Time  string `json:"time"`
	Items []struct {
		ID       string         `json:"id"`
		Features api.Values     `json:"features"`
		Revenue  *float64       `json:"revenue"`
		Row      jsontext.Value `json:"row"`

		Propensity float64 `json:"propensity"` // of the law of items
		Slot       string  `json:"slot"`
	} `json:"items"`
	User       api.Values                `json:"shopper"`
	Shown      []string                  `json:"shown"`
	Propensity *float64                  `json:"propensity"`
	Law        *offer.NamedLaw           `json:"sampling_law"`
	Status     string                    `json:"status"`
	Choice     jsontext.Value            `json:"choice"`  // an item, null or a list of items
	Choices    []api.Choice              `json:"choices"` // in place of choice, if there are any
	Others     map[string]jsontext.Value `json:",embed"`
}

// readLines reads the lines of vitrine export.
func readLines(s *source) error {
	return s.lines(func(_ string, text []byte) error {
		var l exported
		err := json.Unmarshal(text, &l)
		if err != nil {
			return api.JSONError(err)
		}
		s.ours = l.Status != ""
		f := &found{id: l.ID, user: named(l.User), shown: l.Shown}
		if l.ID == "" {
			f.text = text
		}
		if !slices.Contains([]string{"chosen", "expired", "late", ""}, l.Status) {
			f.skip = "have the status " + l.Status
		}
		if f.taken, err = l.taken(); err != nil {
			return fmt.Errorf("choice: %w", err)
		}
		f.choose(l.Choices)
		for i, item := range l.Items {
			if item.Row != nil {
				return fmt.Errorf("item %q has a row without names: its configuration was not in the log that was exported", item.ID)
			}
			f.items = append(f.items, foundItem{item.ID, i, named(item.Features), item.Revenue})
		}
		if l.Law == nil && s.mapping.Law != nil { // another program's line, which may list the items shown first
			slices.SortFunc(f.items, func(a, b foundItem) int { return cmp.Compare(a.id, b.id) })
		}
		if f.time, err = cell.Time("time", api.Text("", l.Time)); err != nil {
			return err
		}
		if l.Propensity != nil {
			if f.propensity, err = cell.Probability("propensity", api.Number("", *l.Propensity)); err != nil {
				return err
			}
		}
		if f.law, err = s.lawOfLine(&l, f.items); err != nil {
			return err
		}
		return s.add(f)
	})
}

// taken returns the items taken.
func (l *exported) taken() (list []string, err error) {
	switch l.Choice.Kind() {
	case '"':
		list = make([]string, 1)
		err = json.Unmarshal(l.Choice, &list[0])
	case '[':
		err = json.Unmarshal(l.Choice, &list)
	case 'n', 0:
	default:
		err = errors.New("want an item, null or a list of items")
	}
	return list, err
}

// lawOfLine returns the law of a line: its own, or by the mapping.
func (s *source) lawOfLine(l *exported, items []foundItem) (d *offer.SamplingLaw, err error) {
	name := "sampling_law"
	switch m := s.mapping.Law; {
	case l.Law != nil:
		d, err = l.Law.Of(idsOf(items))
	case m != nil && m.Page != "":
		name = m.Page
		var page []string
		if err := json.Unmarshal(l.Others[name], &page); err != nil {
			return nil, fmt.Errorf("%s: want the policy's own page, a list of items: %w", name, err)
		}
		d, err = m.of(page, idsOf(items))
	case m != nil && m.Draw == "items":
		p, slots := make([]float64, len(items)), make([]string, len(items))
		for i, item := range items {
			p[i], slots[i] = l.Items[item.row].Propensity, l.Items[item.row].Slot
		}
		return drawOfItems(p, slots)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return d, err
}

func named(values api.Values) fields {
	f := fields{}
	for _, v := range values {
		f[v.Name] = v
	}
	return f
}

// vwLine is a line of Vowpal Wabbit's dsjson. A contextual bandit logs _label_cost; slots that share their
// actions (CCB) log _outcomes with a cost each.
type vwLine struct {
	Time     string         `json:"Timestamp"`
	ID       string         `json:"EventId"`
	Context  jsontext.Value `json:"c"`
	Cost     *float64       `json:"_label_cost"`
	Original *float64       `json:"_original_label_cost"`
	Actions  []int          `json:"a"`
	P        []float64      `json:"p"`
	Outcomes []vwOutcome    `json:"_outcomes"`
	Rewards  []vwReward     `json:"o"`
	Deferred bool           `json:"DeferredAction"`
	Skip     bool           `json:"_skipLearn"` // a deferred event that was not activated
	Vitrine  *vwVitrine     `json:"_vitrine"`
}

type vwOutcome struct {
	Cost     *float64       `json:"_label_cost"`
	Original *float64       `json:"_original_label_cost"`
	Actions  jsontext.Value `json:"_a"` // a list; in slates an action
	P        jsontext.Value `json:"_p"`
	Rewards  []vwReward     `json:"_o"`

	actions []int
	p       []float64
}

// Why decisions are left out.
const (
	ofSlates = "have one reward for a page of slots, and not for an item (slates)"
	noLabel  = "have no label"
)

// vwReward is a reward that came, or an activation of a deferred event.
type vwReward struct {
	Value     *float64 `json:"v"`
	Activated bool     `json:"ActionTaken"`
	Deferred  *bool    `json:"DeferredAction"` // false in the activations of earlier logs
}

// reward returns minus the cost: the label's, or the first reward if the log was written before it came.
func (o *vwOutcome) reward() float64 {
	if o.Cost != nil && *o.Cost != 0 {
		return -*o.Cost
	}
	for _, later := range o.Rewards {
		if later.Value != nil {
			return *later.Value
		}
	}
	return 0
}

// vwVitrine holds the additions of our exports, under a name that Vowpal Wabbit ignores.
type vwVitrine struct {
	Choice     string          `json:"choice"`
	Choices    []api.Choice    `json:"choices"`
	Propensity *float64        `json:"propensity"`
	Law        *offer.NamedLaw `json:"sampling_law"`
}

// readDecisions reads lines of dsjson.
func readDecisions(s *source) error {
	own := s.ofRank()
	return s.lines(func(_ string, text []byte) error {
		var l vwLine
		// Azure's own exports name _label_probability twice.
		err := json.Unmarshal(text, &l, jsontext.AllowDuplicateNames(true))
		if err != nil {
			return api.JSONError(err)
		}
		s.ours = l.Vitrine != nil
		f := &found{id: l.ID}
		if l.ID == "" {
			f.text = text
		} else if own != nil && s.placement != "" {
			f.id = personalizer.DecisionOf(s.placement, l.ID)
		}
		if l.Context == nil { // an outcome without its decision
			f.skip = "have no context"
			return s.add(f)
		}
		if f.time, err = cell.Time("Timestamp", api.Text("", l.Time)); err != nil {
			return err
		}
		if err := f.context(l.Context, own); err != nil {
			return fmt.Errorf("c: %w", err)
		}
		if err := s.outcomesOf(f, &l); err != nil {
			return err
		}
		if err := l.Vitrine.apply(f); err != nil {
			return fmt.Errorf("_vitrine.sampling_law: %w", err)
		}
		return s.add(f)
	})
}

// apply replaces the outcomes if the line is from an export of ours.
func (v *vwVitrine) apply(f *found) (err error) {
	if v == nil {
		return nil
	}
	f.rewards, f.taken, f.propensity, f.law = nil, nil, 0, nil
	if v.Choice != "" {
		f.taken = []string{v.Choice}
	}
	f.choose(v.Choices)
	if v.Propensity != nil {
		f.propensity = *v.Propensity
	}
	if v.Law != nil {
		f.law, err = v.Law.Of(idsOf(f.items))
	}
	return err
}

// rank holds a placement's features in the form of Personalizer's Rank.
type rank struct{ items, users personalizer.Features }

// ofRank returns nil for logs that are not Personalizer's.
func (s *source) ofRank() *rank {
	if s.format != "personalizer" {
		return nil
	}
	return &rank{personalizer.FeaturesOf(s.config, true), personalizer.FeaturesOf(s.config, false)}
}

// logged returns the features listed by a Rank: the log's list, and the members that clients add when they log for
// themselves.
func logged(members []member, list string) jsontext.Value {
	var parts [][]byte
	var others []member
	for _, m := range members {
		switch kind := m.value.Kind(); {
		case m.name == list && kind == '[':
			if inner := bytes.TrimSpace(m.value[1 : len(m.value)-1]); len(inner) > 0 {
				parts = append(parts, inner)
			}
		case m.name == list && kind == '{':
			parts = append(parts, m.value)
		default:
			others = append(others, m)
		}
	}
	if o := object(others); len(o) > len("{}") {
		parts = append(parts, o)
	}
	return slices.Concat([]byte{'['}, bytes.Join(parts, []byte{','}), []byte{']'})
}

// member is a member of an object, in its order.
type member struct {
	name  string
	value jsontext.Value
}

func membersOf(text jsontext.Value) (list []member, err error) {
	in := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))
	if token, err := in.ReadToken(); err != nil || token.Kind() != '{' {
		return nil, errors.New("want an object")
	}
	for in.PeekKind() == '"' {
		token, err := in.ReadToken()
		if err != nil {
			return nil, err
		}
		m := member{name: token.String()}
		value, err := in.ReadValue()
		if err != nil {
			return nil, err
		}
		m.value = slices.Clone(value)
		list = append(list, m)
	}
	if _, err = in.ReadToken(); err == nil {
		if _, err = in.ReadToken(); err == io.EOF {
			return list, nil
		}
	}
	return nil, cmp.Or(err, errors.New("want one object"))
}

// object returns the object of the members that Vowpal Wabbit reads: it skips names that begin with _.
func object(members []member) []byte {
	var parts [][]byte
	for _, m := range members {
		if !strings.HasPrefix(m.name, "_") {
			quoted, _ := jsontext.AppendQuote(nil, m.name)
			parts = append(parts, slices.Concat(quoted, []byte{':'}, m.value))
		}
	}
	return slices.Concat([]byte{'{'}, bytes.Join(parts, []byte{','}), []byte{'}'})
}

// fieldsOf returns the values inside members, each by its path and by its last name, and all as "*". Lists of objects
// share the name of the list; plain values in lists are left out.
func fieldsOf(members []member) (fields, error) {
	all := object(members)
	f := fields{"*": api.Object("", string(all))}
	err := walk(all, place{}, func(at place, v api.Value) {
		if !at.isElement {
			f[at.path], f[at.name] = v, v
		}
	})
	return f, err
}

// place is where a value is in an object.
type place struct {
	path      string // the names with dots
	name      string // the last of them
	lists     int    // how many lists there are around it
	i, n      int    // its place in the innermost one, and the length of that
	isElement bool   // whether it is a plain element of the list
	depth     int    // how many lists and objects there are around it
}

const maxDepth = 100

// walk calls visit for the values inside an object or a list, in their order. Lists of lists are left out.
func walk(text jsontext.Value, at place, visit func(at place, v api.Value)) error {
	if at.depth++; at.depth > maxDepth { // each reads those inside it again
		return fmt.Errorf("lists and objects are nested more than %d deep", maxDepth-1)
	}
	switch text.Kind() {
	case '{':
		members, err := membersOf(text)
		if err != nil {
			return err
		}
		path := at.path
		for _, m := range members {
			at.path, at.name, at.isElement = m.name, m.name, false
			if path != "" {
				at.path = path + "." + m.name
			}
			if err := walk(m.value, at, visit); err != nil {
				return err
			}
		}
		return nil
	case '[':
		var list []jsontext.Value
		if err := json.Unmarshal(text, &list, jsontext.AllowDuplicateNames(true)); err != nil {
			return err
		}
		isInner := at.isElement
		at.lists, at.n, at.isElement = at.lists+1, len(list), true
		for i, v := range list {
			if at.i = i; isInner {
				continue
			}
			if err := walk(v, at, visit); err != nil {
				return err
			}
		}
		return nil
	}
	v, err := scalar(text)
	if err == nil {
		visit(at, v)
	}
	return err
}

func scalar(text jsontext.Value) (api.Value, error) {
	switch text.Kind() {
	case '0':
		if table.IsCode(string(text)) {
			return api.Text("", string(text)), nil
		}
		var n float64
		err := json.Unmarshal(text, &n)
		return api.Number("", n), err
	case 't', 'f':
		return api.Text("", string(text)), nil
	case 'n':
		return api.Value{}, nil
	}
	var t string
	err := json.Unmarshal(text, &t)
	return api.Text("", t), err
}

// context reads the user and the actions.
func (f *found) context(text jsontext.Value, own *rank) error {
	c, err := membersOf(text)
	if err != nil {
		return err
	}
	if f.user, err = fieldsOf(c); err != nil {
		return err
	}
	if own != nil {
		if err := f.user.rank(own.users, "", logged(c, "FromUrl")); err != nil {
			return fmt.Errorf("FromUrl: %w", err)
		}
	}
	var actions []jsontext.Value
	list, _ := valueOf(c, "_multi")
	if json.Unmarshal(list, &actions, jsontext.AllowDuplicateNames(true)) != nil || len(actions) == 0 {
		return errors.New("_multi is missing: it has the actions")
	}
	for i, text := range actions {
		item := foundItem{id: strconv.Itoa(i + 1)}
		isSlot, err := item.read(text, own)
		if err != nil {
			return fmt.Errorf("_multi/%d: %w", i, err)
		}
		if isSlot {
			f.skip = ofSlates
		}
		f.items = append(f.items, item)
	}
	return nil
}

// read reads an action, and reports whether it belongs to a slot of slates.
func (item *foundItem) read(text jsontext.Value, own *rank) (isSlot bool, err error) {
	members, err := membersOf(text)
	if err != nil {
		return false, err
	}
	if item.fields, err = fieldsOf(members); err != nil {
		return false, err
	}
	if v := item.fields["i.id"]; v.Kind == api.IsText && v.Text != "" { // Personalizer's
		item.id = v.Text
	}
	features := members[:0:0]
	for _, m := range members {
		switch m.name {
		case "_tag", "_id":
			if item.id = string(m.value); m.value.Kind() == '"' {
				err = json.Unmarshal(m.value, &item.id)
			}
		case "_revenue":
			item.revenue = new(float64)
			err = json.Unmarshal(m.value, item.revenue)
		case "_slot_id":
			isSlot = true
		case "i":
		default:
			features = append(features, m)
		}
		if err != nil {
			return false, fmt.Errorf("%s: %w", m.name, err)
		}
	}
	if own != nil {
		err = item.fields.rank(own.items, item.id, logged(features, "j"))
	}
	return isSlot, err
}

// rank adds the values of a Rank with these features.
func (f fields) rank(of personalizer.Features, id string, features jsontext.Value) error {
	values, err := of.Logged(features, id)
	for _, v := range values {
		f[v.Name] = v
	}
	return err
}

// outcomesOf reads the items shown and their rewards.
func (s *source) outcomesOf(f *found, l *vwLine) error {
	if f.skip != "" {
		return nil
	}
	list, first, skip, err := l.outcomes()
	if f.skip = skip; skip != "" || err != nil {
		return err
	}
	for k := range list {
		o := &list[k]
		if err := o.check(k, first, len(f.items)); err != nil {
			return err
		}
		if o.Original != nil && o.Cost != nil && *o.Original != *o.Cost {
			f.skip = "are of Personalizer's Apprentice mode: their reward is not that of the action in the log"
			return nil
		}
		id := f.items[o.actions[0]-first].id
		f.shown = append(f.shown, id)
		switch reward := o.reward(); {
		case s.mapping.Rewards != "choice" && reward > 1 && l.Vitrine == nil:
			return fmt.Errorf("slot %d: the reward is %v, more than 1: set rewards = \"choice\" in the mapping if "+
				"each positive reward is an item taken", k, reward)
		case s.mapping.Rewards != "choice":
			f.rewards = append(f.rewards, max(reward, 0))
		case reward > 0:
			f.taken = append(f.taken, id)
		}
	}
	if len(list) == 1 {
		f.propensity = list[0].p[0]
		f.law = list[0].law(len(f.items), first)
	}
	return nil
}

// outcomes returns the outcome of each slot, and the number of the first action; or why the line cannot be learned
// from.
func (l *vwLine) outcomes() (list []vwOutcome, first int, skip string, err error) {
	activated := slices.ContainsFunc(l.Rewards, func(r vwReward) bool {
		return r.Value != nil || r.Activated || r.Deferred != nil && !*r.Deferred
	})
	switch {
	case l.Skip, l.Deferred && l.Outcomes == nil && !activated:
		return nil, 0, "were deferred and not activated", nil
	case l.Outcomes == nil && (l.Cost == nil || len(l.Actions) == 0):
		return nil, 0, noLabel, nil
	case l.Outcomes == nil: // a contextual bandit counts actions from 1
		return []vwOutcome{{Cost: l.Cost, Original: l.Original, actions: l.Actions, p: l.P, Rewards: l.Rewards}}, 1, "",
			nil
	}
	for k := range l.Outcomes {
		o := &l.Outcomes[k]
		if o.actions != nil { // of the text
			continue
		}
		if o.Cost == nil || o.Actions.Kind() != '[' {
			return nil, 0, ofSlates, nil
		}
		if err := json.Unmarshal(o.Actions, &o.actions); err != nil {
			return nil, 0, "", fmt.Errorf("slot %d: _a: %w", k, err)
		}
		if err := json.Unmarshal(o.P, &o.p); err != nil {
			return nil, 0, "", fmt.Errorf("slot %d: _p: %w", k, err)
		}
	}
	return l.Outcomes, 0, "", nil
}

// check reports why the outcome of slot k is not one of n actions from first on.
func (o *vwOutcome) check(k, first, n int) error {
	switch {
	case len(o.actions) == 0 || o.actions[0] < first || o.actions[0]-first >= n:
		return fmt.Errorf("slot %d shows the action %v of %d", k, o.actions, n)
	case len(o.p) != len(o.actions):
		return fmt.Errorf("slot %d has %d propensities for %d actions", k, len(o.p), len(o.actions))
	case !(o.p[0] > 0 && o.p[0] <= 1):
		return fmt.Errorf("slot %d: the propensity is %v: must be in (0, 1]", k, o.p[0])
	}
	return nil
}

// law returns the law of a page of one item, if the log gives the probability of each action.
func (o *vwOutcome) law(n, first int) *offer.SamplingLaw {
	if len(o.actions) != n {
		return nil
	}
	all := make([]float64, n)
	sum := 0.0
	for k, a := range o.actions {
		if a < first || a-first >= n || !(o.p[k] >= 0 && o.p[k] <= 1) {
			return nil
		}
		all[a-first] += o.p[k]
		sum += o.p[k]
	}
	if math.Abs(sum-1) > offer.Tolerance {
		return nil
	}
	return &offer.SamplingLaw{Kind: offer.DrawItems, Epsilon: 1, Size: 1, Probability: all, Slot: make([]uint32, n)}
}
