package records

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"vitrine/service/api"
	"vitrine/service/offer"
)

// law is how a page was drawn, as exports have it.
type law struct {
	Draw  string   `json:"draw"`
	Share float64  `json:"share"`
	Size  int      `json:"size"`
	Page  []string `json:"page"`
	Swaps string   `json:"swaps"` // base64
}

// draw returns the law for a decision with the given items.
func (l *law) draw(items []foundItem) (*offer.Draw, error) {
	kind, ok := map[string]uint8{"sets": offer.DrawSets, "slots": offer.DrawSlots, "pages": offer.DrawPages}[l.Draw]
	if !ok {
		return nil, fmt.Errorf("draw is %q: want sets, slots or pages", l.Draw)
	}
	d := &offer.Draw{Kind: kind, Epsilon: l.Share, Size: l.Size}
	for _, id := range l.Page {
		i := slices.IndexFunc(items, func(o foundItem) bool { return o.id == id })
		if i < 0 {
			return nil, fmt.Errorf("page has %q, which is not among the items", id)
		}
		d.Page = append(d.Page, uint32(i))
	}
	if l.Swaps != "" && !slices.IsSorted(d.Page) {
		return nil, errors.New("swaps belong to a page in the order of the items: list it so")
	}
	slices.Sort(d.Page)
	var err error
	if l.Swaps != "" {
		if d.Swaps, err = base64.StdEncoding.DecodeString(l.Swaps); err != nil {
			return nil, fmt.Errorf("swaps: %w", err)
		}
	}
	return d, nil
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
			} `json:"items"`
			User       api.Values     `json:"user"`
			Shown      []string       `json:"shown"`
			Propensity jsontext.Value `json:"propensity"`
			Law        *law           `json:"law"`
			Status     string         `json:"status"`
			Choice     *string        `json:"choice"`
		}
		if err := json.Unmarshal(text, &l); err != nil {
			return api.JSONError(err)
		}
		f := &found{place: place, id: l.ID, user: named(l.User), shown: l.Shown}
		switch l.Status {
		case "chosen", "expired", "late", "":
		default:
			f.skip = "have the status " + l.Status
		}
		if l.Choice != nil {
			f.choice = *l.Choice
		}
		for _, item := range l.Items {
			if item.Row != nil {
				return fmt.Errorf("item %q has a row without names: its configuration was not in the log that was exported", item.ID)
			}
			f.items = append(f.items, foundItem{item.ID, named(item.Features), item.Revenue})
		}
		if l.Time != "" {
			var err error
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
			d, err := l.Law.draw(f.items)
			if err != nil {
				return fmt.Errorf("law: %w", err)
			}
			f.law = d
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

// vwLine is a line of Vowpal Wabbit's dsjson. A contextual bandit has _label_cost, a slate of slots
// (CCB) _outcomes.
type vwLine struct {
	Time     string         `json:"Timestamp"`
	ID       string         `json:"EventId"`
	Context  jsontext.Value `json:"c"`
	Cost     *float64       `json:"_label_cost"`
	Actions  []int          `json:"a"`
	P        []float64      `json:"p"`
	Outcomes []vwOutcome    `json:"_outcomes"`
	Later    []struct {
		Reward *float64 `json:"v"`
	} `json:"o"`
	Vitrine *vwVitrine `json:"_vitrine"`
}

type vwOutcome struct {
	Cost    float64   `json:"_label_cost"`
	Actions []int     `json:"_a"`
	P       []float64 `json:"_p"`
}

// vwVitrine is what an export of ours adds, under a name that Vowpal Wabbit ignores.
type vwVitrine struct {
	Choice     string   `json:"choice"`
	Propensity *float64 `json:"propensity"`
	Law        *law     `json:"law"`
}

// readDecisions reads lines of dsjson.
func readDecisions(s *source) error {
	return s.lines(func(place string, text []byte) error {
		var l vwLine
		if err := json.Unmarshal(text, &l); err != nil {
			return api.JSONError(err)
		}
		f := &found{place: place, id: l.ID}
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
		if err := f.context(l.Context); err != nil {
			return fmt.Errorf("c: %w", err)
		}
		if err := f.outcomes(&l); err != nil {
			return err
		}
		if v := l.Vitrine; v != nil {
			f.choice = v.Choice
			if f.propensity = 0; v.Propensity != nil {
				f.propensity = *v.Propensity
			}
			if v.Law != nil {
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

// context reads the user and the actions.
func (f *found) context(text jsontext.Value) error {
	var c map[string]jsontext.Value
	if err := json.Unmarshal(text, &c); err != nil {
		return err
	}
	f.user = fields{}
	for name, v := range c {
		if name[:min(1, len(name))] == "_" {
			continue
		}
		if err := f.user.flatten(name, v); err != nil {
			return err
		}
	}
	var actions []jsontext.Value
	if err := json.Unmarshal(c["_multi"], &actions); err != nil || len(actions) == 0 {
		return errors.New("_multi is missing: it has the actions")
	}
	for i, text := range actions {
		item := foundItem{id: strconv.Itoa(i + 1), fields: fields{"*": api.Object("", string(text))}}
		var a map[string]jsontext.Value
		if err := json.Unmarshal(text, &a); err != nil {
			return fmt.Errorf("_multi/%d: %w", i, err)
		}
		for _, name := range []string{"_tag", "_id"} {
			if v, ok := a[name]; ok {
				_ = json.Unmarshal(v, &item.id)
			}
		}
		if v, ok := a["_revenue"]; ok {
			item.revenue = new(float64)
			if err := json.Unmarshal(v, item.revenue); err != nil {
				return fmt.Errorf("_multi/%d/_revenue: %w", i, err)
			}
		}
		for name, v := range a {
			if name[:min(1, len(name))] != "_" {
				if err := item.fields.flatten(name, v); err != nil {
					return fmt.Errorf("_multi/%d: %w", i, err)
				}
			}
		}
		f.items = append(f.items, item)
	}
	return nil
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

// outcomes reads what was shown and what was taken: the slot of negative cost.
func (f *found) outcomes(l *vwLine) error {
	list := l.Outcomes
	if list == nil {
		if l.Cost == nil || len(l.Actions) == 0 {
			f.skip = "have no label"
			return nil
		}
		o := vwOutcome{Cost: *l.Cost, Actions: l.Actions, P: l.P}
		for _, later := range l.Later {
			if later.Reward != nil && -*later.Reward < o.Cost {
				o.Cost = -*later.Reward
			}
		}
		list = []vwOutcome{o}
	}
	for k, o := range list {
		base := 1 // a contextual bandit counts actions from 1, slots from 0
		if l.Outcomes != nil {
			base = 0
		}
		if len(o.Actions) == 0 || o.Actions[0]-base < 0 || o.Actions[0]-base >= len(f.items) {
			return fmt.Errorf("slot %d shows the action %v of %d", k, o.Actions, len(f.items))
		}
		if len(o.P) != len(o.Actions) {
			return fmt.Errorf("slot %d has %d propensities for %d actions", k, len(o.P), len(o.Actions))
		}
		if !(o.P[0] > 0 && o.P[0] <= 1) {
			return fmt.Errorf("slot %d: the propensity is %v: must be in (0, 1]", k, o.P[0])
		}
		id := f.items[o.Actions[0]-base].id
		f.shown = append(f.shown, id)
		switch {
		case o.Cost < 0 && f.choice != "":
			f.skip = "have two items taken"
		case o.Cost < 0:
			f.choice = id
		}
		if len(list) == 1 {
			f.propensity = o.P[0]
		}
	}
	return nil
}
