package records

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"vitrine/service/api"
	"vitrine/service/offer"
	"vitrine/service/personalizer"
)

// drawOf returns the way to draw a page of a name.
func drawOf(name string) (uint8, bool) {
	for kind, n := range offer.DrawNames {
		if n == name {
			return kind, true
		}
	}
	return 0, false
}

// of returns the law of a decision with n items, of which the policy's own page has some.
func (l *Law) of(page []uint32, n int) *offer.Draw {
	kind, _ := drawOf(l.Draw)
	d := &offer.Draw{Kind: kind, Epsilon: l.Share, Size: min(l.Size, n), Page: page}
	if kind == offer.DrawSlots {
		d.Size = len(page)
	}
	return d
}

// itemPropensity is the column of the probabilities of items, "" if the law has none.
func (l *Law) itemPropensity() string {
	if l.Draw != "items" {
		return ""
	}
	return cmp.Or(l.Propensity, "item_propensity")
}

// drawOfItems returns the law by which the item of each slot was drawn by itself, given the probability and the slot of each
// item. Slots are numbered in the order in which they come.
func drawOfItems(p []float64, slots []string) (*offer.Draw, error) {
	d := &offer.Draw{Kind: offer.DrawItems, Epsilon: 1, Probability: p}
	numbers := map[string]uint32{}
	sum := map[string]float64{}
	for i, slot := range slots {
		if _, ok := numbers[slot]; !ok {
			numbers[slot] = uint32(len(numbers))
		}
		d.Slot = append(d.Slot, numbers[slot])
		sum[slot] += p[i]
	}
	for slot, v := range sum {
		if math.Abs(v-1) > offer.Tolerance {
			return nil, fmt.Errorf("the probabilities of the items of slot %q have the sum %v: must be 1", slot, v)
		}
	}
	d.Size = len(numbers)
	return d, nil
}

// law is how a page was drawn, as exports have it.
type law struct {
	Draw        string    `json:"draw"`
	Share       float64   `json:"share"`
	Size        int       `json:"size"`
	Page        []string  `json:"page"`
	Swaps       string    `json:"swaps"` // base64
	Probability []float64 `json:"probability"`
	Slot        []uint32  `json:"slot"`
}

// draw returns the law for a decision with the given items.
func (l *law) draw(items []foundItem) (*offer.Draw, error) {
	kind, ok := drawOf(l.Draw)
	if !ok {
		return nil, fmt.Errorf("draw is %q: want sets, slots, pages or items", l.Draw)
	}
	d := &offer.Draw{Kind: kind, Epsilon: l.Share, Size: l.Size, Probability: l.Probability, Slot: l.Slot}
	page, err := places(l.Page, items)
	if err != nil {
		return nil, err
	}
	if d.Page = page; l.Swaps != "" && !slices.IsSorted(d.Page) {
		return nil, errors.New("swaps belong to a page in the order of the items: list it so")
	}
	slices.Sort(d.Page)
	if l.Swaps != "" {
		if d.Swaps, err = base64.StdEncoding.DecodeString(l.Swaps); err != nil {
			return nil, fmt.Errorf("swaps: %w", err)
		}
	}
	return d, nil
}

// places returns where the items of a page are.
func places(page []string, items []foundItem) (list []uint32, err error) {
	for _, id := range page {
		i := slices.IndexFunc(items, func(o foundItem) bool { return o.id == id })
		if i < 0 {
			return nil, fmt.Errorf("page has %q, which is not among the items", id)
		}
		list = append(list, uint32(i))
	}
	return list, nil
}

// readLines reads the lines of vitrine export.
func readLines(s *source) error {
	return s.lines(func(place string, text []byte) error {
		var l struct {
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
			User       api.Values                `json:"user"`
			Shown      []string                  `json:"shown"`
			Propensity jsontext.Value            `json:"propensity"`
			Law        *law                      `json:"law"`
			Status     string                    `json:"status"`
			Choice     jsontext.Value            `json:"choice"` // an item, null or a list of items
			Others     map[string]jsontext.Value `json:",embed"`
		}
		err := json.Unmarshal(text, &l)
		if err != nil {
			return api.JSONError(err)
		}
		f := &found{place: place, id: l.ID, user: named(l.User), shown: l.Shown}
		switch l.Status {
		case "chosen", "expired", "late", "":
		default:
			f.skip = "have the status " + l.Status
		}
		switch l.Choice.Kind() {
		case '"':
			f.taken = make([]string, 1)
			err = json.Unmarshal(l.Choice, &f.taken[0])
		case '[':
			err = json.Unmarshal(l.Choice, &f.taken)
		case 'n', 0:
		default:
			err = errors.New("want an item, null or a list of items")
		}
		if err != nil {
			return fmt.Errorf("choice: %w", err)
		}
		for _, item := range l.Items {
			if item.Row != nil {
				return fmt.Errorf("item %q has a row without names: its configuration was not in the log that was exported", item.ID)
			}
			f.items = append(f.items, foundItem{item.ID, named(item.Features), item.Revenue})
		}
		if l.Time != "" {
			if f.time, err = moment(l.Time); err != nil {
				return fmt.Errorf("time: %w", err)
			}
		}
		if l.Propensity != nil && string(l.Propensity) != "null" {
			p, err := probability("propensity", api.Text("", string(l.Propensity)))
			if err != nil {
				return err
			}
			f.propensity = p
		}
		if l.Law != nil {
			if f.law, err = l.Law.draw(f.items); err != nil {
				return fmt.Errorf("law: %w", err)
			}
		} else if m := s.mapping.Law; m != nil && m.Page != "" {
			var page []string
			if err := json.Unmarshal(l.Others[m.Page], &page); err != nil {
				return fmt.Errorf("%s: want the policy's own page, a list of items: %w", m.Page, err)
			}
			own, err := places(page, f.items)
			if err != nil {
				return fmt.Errorf("%s: %w", m.Page, err)
			}
			slices.Sort(own)
			f.law = m.of(own, len(f.items))
		} else if m != nil && m.Draw == "items" {
			p, slots := make([]float64, len(l.Items)), make([]string, len(l.Items))
			for i, item := range l.Items {
				p[i], slots[i] = item.Propensity, item.Slot
			}
			if f.law, err = drawOfItems(p, slots); err != nil {
				return err
			}
		}
		return s.add(f)
	})
}

// named returns values by their names.
func named(values api.Values) fields {
	f := fields{}
	for _, v := range values {
		f[v.Name] = v
	}
	return f
}

// vwLine is a line of Vowpal Wabbit's dsjson. A contextual bandit has _label_cost, slots that share their actions (CCB) have
// _outcomes with a cost each.
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

// ofSlates is why slates are left out.
const ofSlates = "have one reward for a page of slots, and not for an item (slates)"

// vwReward is a reward that came, or an activation of a deferred event.
type vwReward struct {
	Value     *float64 `json:"v"`
	Activated bool     `json:"ActionTaken"`
	Deferred  *bool    `json:"DeferredAction"` // false in the activations of earlier logs
}

// reward returns minus the cost: that of the label, or of the first reward if the log was written before it came.
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

// vwVitrine is what an export of ours adds, under a name that Vowpal Wabbit ignores.
type vwVitrine struct {
	Choice     string   `json:"choice"`
	Propensity *float64 `json:"propensity"`
	Law        *law     `json:"law"`
}

// readDecisions reads lines of dsjson.
func readDecisions(s *source) error {
	own := s.ofRank()
	return s.lines(func(place string, text []byte) error {
		var l vwLine
		// Azure's own exports name _label_probability twice.
		if err := json.Unmarshal(text, &l, jsontext.AllowDuplicateNames(true)); err != nil {
			return api.JSONError(err)
		}
		f := &found{place: place, id: l.ID}
		if own != nil && l.ID != "" && s.placement != "" {
			f.id = personalizer.DecisionOf(s.placement, l.ID)
		}
		if l.Context == nil { // an outcome without its decision
			f.skip = "have no context"
			return s.add(f)
		}
		if l.Time != "" {
			var err error
			if f.time, err = moment(l.Time); err != nil {
				return fmt.Errorf("the Timestamp: %w", err)
			}
		}
		if err := f.context(l.Context, own); err != nil {
			return fmt.Errorf("c: %w", err)
		}
		if err := s.outcomesOf(f, &l); err != nil {
			return err
		}
		if v := l.Vitrine; v != nil {
			if f.rewards, f.taken = nil, nil; v.Choice != "" {
				f.taken = []string{v.Choice}
			}
			if f.propensity = 0; v.Propensity != nil {
				f.propensity = *v.Propensity
			}
			if f.law = nil; v.Law != nil {
				d, err := v.Law.draw(f.items)
				if err != nil {
					return fmt.Errorf("_vitrine.law: %w", err)
				}
				f.law = d
			}
		}
		return s.add(f)
	})
}

// rank has the features of a placement as a Rank of Personalizer has them.
type rank struct{ items, users personalizer.Features }

// ofRank returns nil for logs that are not Personalizer's.
func (s *source) ofRank() *rank {
	if s.format != "personalizer" {
		return nil
	}
	return &rank{personalizer.FeaturesOf(s.config, true), personalizer.FeaturesOf(s.config, false)}
}

// logged returns what a Rank listed as features: the log's list, and the other members that clients add who log for themselves.
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
	name          string
	quoted, value jsontext.Value
}

func membersOf(text jsontext.Value) (list []member, err error) {
	in := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))
	if token, err := in.ReadToken(); err != nil || token.Kind() != '{' {
		return nil, errors.New("want an object")
	}
	for in.PeekKind() == '"' {
		quoted, err := in.ReadValue()
		if err != nil {
			return nil, err
		}
		m := member{quoted: slices.Clone(quoted)}
		name, err := jsontext.AppendUnquote(nil, quoted)
		if err != nil {
			return nil, err
		}
		value, err := in.ReadValue()
		if err != nil {
			return nil, err
		}
		m.name, m.value = string(name), slices.Clone(value)
		list = append(list, m)
	}
	_, err = in.ReadToken()
	return list, err
}

// isHidden reports whether Vowpal Wabbit skips a member.
func isHidden(name string) bool { return strings.HasPrefix(name, "_") }

// object returns the object of the members that Vowpal Wabbit reads.
func object(members []member) []byte {
	var parts [][]byte
	for _, m := range members {
		if !isHidden(m.name) {
			parts = append(parts, slices.Concat(m.quoted, []byte{':'}, m.value))
		}
	}
	return slices.Concat([]byte{'{'}, bytes.Join(parts, []byte{','}), []byte{'}'})
}

// fieldsOf returns the values of members, by their paths. "*" is all of them.
func fieldsOf(members []member) (fields, error) {
	f := fields{"*": api.Object("", string(object(members)))}
	for _, m := range members {
		if isHidden(m.name) {
			continue
		}
		if err := f.flatten(m.name, m.value); err != nil {
			return nil, err
		}
	}
	return f, nil
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
	for _, m := range c {
		if m.name == "_multi" {
			err = json.Unmarshal(m.value, &actions, jsontext.AllowDuplicateNames(true))
		}
	}
	if err != nil || len(actions) == 0 {
		return errors.New("_multi is missing: it has the actions")
	}
	for i, text := range actions {
		item := foundItem{id: strconv.Itoa(i + 1)}
		a, err := membersOf(text)
		if err != nil {
			return fmt.Errorf("_multi/%d: %w", i, err)
		}
		if item.fields, err = fieldsOf(a); err != nil {
			return fmt.Errorf("_multi/%d: %w", i, err)
		}
		if v := item.fields["i.id"]; v.Kind == api.IsText && v.Text != "" { // Personalizer's
			item.id = v.Text
		}
		features := a[:0:0]
		for _, m := range a {
			switch m.name {
			case "_tag", "_id":
				if m.value.Kind() == '"' {
					err = json.Unmarshal(m.value, &item.id)
				} else {
					item.id = string(m.value)
				}
			case "_revenue":
				item.revenue = new(float64)
				err = json.Unmarshal(m.value, item.revenue)
			case "_slot_id":
				f.skip = ofSlates
			case "i":
			default:
				features = append(features, m)
			}
			if err != nil {
				return fmt.Errorf("_multi/%d/%s: %w", i, m.name, err)
			}
		}
		if own != nil {
			if err := item.fields.rank(own.items, item.id, logged(features, "j")); err != nil {
				return fmt.Errorf("_multi/%d: %w", i, err)
			}
		}
		f.items = append(f.items, item)
	}
	return nil
}

// rank adds the values that a Rank with these features has.
func (f fields) rank(of personalizer.Features, id string, features jsontext.Value) error {
	values, err := of.Logged(features, id)
	for _, v := range values {
		f[v.Name] = v
	}
	return err
}

// flatten adds the values inside an object, each by its path with dots and by its last name. Lists of
// objects share the name of the list.
func (f fields) flatten(path string, text jsontext.Value) error {
	switch text.Kind() {
	case '{':
		var inner map[string]jsontext.Value
		if err := json.Unmarshal(text, &inner); err != nil {
			return err
		}
		for name, v := range inner {
			if err := f.flatten(path+"."+name, v); err != nil {
				return err
			}
			if k := v.Kind(); k != '{' && k != '[' {
				if v, err := scalar(v); err == nil {
					f[name] = v
				}
			}
		}
		return nil
	case '[':
		var list []jsontext.Value
		if err := json.Unmarshal(text, &list); err != nil {
			return err
		}
		for _, v := range list {
			if v.Kind() == '{' {
				if err := f.flatten(path, v); err != nil {
					return err
				}
			}
		}
		return nil
	}
	v, err := scalar(text)
	if err == nil {
		f[path] = v
	}
	return err
}

func scalar(text jsontext.Value) (api.Value, error) {
	switch text.Kind() {
	case '0':
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

// outcomesOf reads what was shown and what it earned.
func (s *source) outcomesOf(f *found, l *vwLine) error {
	if f.skip != "" {
		return nil
	}
	activated := l.Rewards != nil && slices.ContainsFunc(l.Rewards, func(r vwReward) bool {
		return r.Value != nil || r.Activated || r.Deferred != nil && !*r.Deferred
	})
	list := l.Outcomes
	first := 0
	switch {
	case l.Skip, l.Deferred && list == nil && !activated:
		f.skip = "were deferred and not activated"
		return nil
	case list != nil:
		for k := range list {
			o := &list[k]
			if o.Cost == nil || o.Actions.Kind() != '[' {
				f.skip = ofSlates
				return nil
			}
			if err := json.Unmarshal(o.Actions, &o.actions); err != nil {
				return fmt.Errorf("slot %d: _a: %w", k, err)
			}
			if err := json.Unmarshal(o.P, &o.p); err != nil {
				return fmt.Errorf("slot %d: _p: %w", k, err)
			}
		}
	case l.Cost == nil || len(l.Actions) == 0:
		f.skip = "have no label"
		return nil
	default: // a contextual bandit counts actions from 1
		first = 1
		list = []vwOutcome{{Cost: l.Cost, Original: l.Original, actions: l.Actions, p: l.P, Rewards: l.Rewards}}
	}
	for k := range list {
		o := &list[k]
		if len(o.actions) == 0 || o.actions[0]-first < 0 || o.actions[0]-first >= len(f.items) {
			return fmt.Errorf("slot %d shows the action %v of %d", k, o.actions, len(f.items))
		}
		if len(o.p) != len(o.actions) {
			return fmt.Errorf("slot %d has %d propensities for %d actions", k, len(o.p), len(o.actions))
		}
		if !(o.p[0] > 0 && o.p[0] <= 1) {
			return fmt.Errorf("slot %d: the propensity is %v: must be in (0, 1]", k, o.p[0])
		}
		if o.Original != nil && o.Cost != nil && *o.Original != *o.Cost {
			f.skip = "are of Personalizer's Apprentice mode: their reward is not that of the action in the log"
			return nil
		}
		id := f.items[o.actions[0]-first].id
		f.shown = append(f.shown, id)
		switch reward := o.reward(); {
		case s.mapping.Rewards == "choice":
			if reward > 0 {
				f.taken = append(f.taken, id)
			}
			continue
		case reward > 1 && l.Vitrine == nil:
			return fmt.Errorf("slot %d: the reward is %v, more than 1: set rewards = \"choice\" in the mapping if each positive reward is an item taken", k, reward)
		default:
			f.rewards = append(f.rewards, max(reward, 0))
		}
	}
	if len(list) == 1 {
		f.propensity = list[0].p[0]
		f.law = lawOf(list[0].actions, list[0].p, len(f.items), first)
	}
	return nil
}

// lawOf returns the law of a page of one item, if the log has the probability of each action.
func lawOf(actions []int, p []float64, n, first int) *offer.Draw {
	if len(actions) != n {
		return nil
	}
	all := make([]float64, n)
	sum := 0.0
	for k, a := range actions {
		if a-first < 0 || a-first >= n || !(p[k] >= 0 && p[k] <= 1) {
			return nil
		}
		all[a-first] += p[k]
		sum += p[k]
	}
	if math.Abs(sum-1) > offer.Tolerance {
		return nil
	}
	return &offer.Draw{Kind: offer.DrawItems, Epsilon: 1, Size: 1, Probability: all, Slot: make([]uint32, n)}
}
