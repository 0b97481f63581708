package decision

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"vitrine"
	"vitrine/assortment"
	"vitrine/service/api"
	"vitrine/service/feature"
)

// Slots. A request with slots fills all of them: the k-th item shown is in the k-th slot.
//
// The policy chooses among the sets that fill them, and explored sets are drawn among these. The first slot
// has the item with the largest choice probability such that the other slots can be filled, the next slot the
// one among the rest, and so on.

const (
	maxSlotID = 1024    // bytes
	maxNote   = 1 << 14 // total length of the ids of all slots
)

// nameSlots notes the ids of the slots: all slots have one, or none has.
func (r *request) nameSlots() error {
	if len(r.Slots) == 0 {
		return nil
	}
	ids := make([]string, len(r.Slots))
	for k, s := range r.Slots {
		field := fmt.Sprintf("/slots/%d/id", k)
		switch {
		case (s.ID == "") != (r.Slots[0].ID == ""):
			return api.Fieldf(field, "all slots have an id, or none has")
		case len(s.ID) > maxSlotID || !utf8.ValidString(s.ID):
			return api.Fieldf(field, "must have at most %d bytes of UTF-8", maxSlotID)
		case s.ID != "" && slices.Contains(ids[:k], s.ID):
			return api.Fieldf(field, "%q is the id of an earlier slot too", s.ID)
		}
		ids[k] = s.ID
	}
	if ids[0] == "" {
		return nil
	}
	note, err := json.Marshal(ids)
	if len(note) > maxNote {
		return api.Fieldf("/slots", "the ids take more than %d bytes", maxNote)
	}
	r.note = string(note)
	return err
}

// transversal returns the sets that fill the slots.
func (r *request) transversal(c *Config, index map[string]int) (vitrine.Constraint, error) {
	for _, other := range []struct {
		field string
		has   bool
	}{{"/size", r.Size != 0}, {"/include", r.Include != nil}, {"/at_most", len(r.AtMost)+len(c.AtMost) > 0}} {
		if other.has {
			return nil, api.Fieldf(other.field, "does not go together with slots")
		}
	}
	if len(r.Slots) == 0 {
		return nil, api.Fieldf("/slots", "must have at least one slot")
	}
	if len(r.Slots) > c.MaxSize {
		return nil, api.Fieldf("/slots", "%d slots, the placement shows at most %d items", len(r.Slots), c.MaxSize)
	}
	everywhere := present(r.Exclude, index)
	slots := make([]assortment.Slot, len(r.Slots))
	for k, s := range r.Slots {
		slots[k] = assortment.Slot{Name: fmt.Sprintf("slot %d", k+1), Exclude: append(present(s.Exclude, index), everywhere...)}
	}
	family, err := assortment.NewTransversal(r.len(), slots, len(slots))
	if err != nil {
		return nil, api.Fieldf("/slots", "%v", err)
	}
	return family, nil
}

// family returns the sets that may be shown.
func (r *request) family(c *Config, index map[string]int) (vitrine.Constraint, error) {
	if r.Slots != nil {
		return r.transversal(c, index)
	}
	size := cmp.Or(r.Size, c.MaxSize)
	if len(r.Include) == 0 && len(r.Exclude) == 0 && len(r.AtMost) == 0 && len(c.AtMost) == 0 {
		return assortment.AtMost(size), nil
	}
	rules := assortment.Rules{Items: r.len(), Max: size, Name: func(i int) string { return fmt.Sprintf("item %q", r.id(i)) }}
	var err error
	if rules.Include, err = find("/include", r.Include, index); err != nil {
		return nil, err
	}
	rules.Exclude = present(r.Exclude, index)
	for _, l := range c.AtMost {
		rules.Groups = append(rules.Groups, r.byCategory(c.schema, l)...)
	}
	limited := map[string]bool{}
	for i, l := range r.AtMost {
		field := fmt.Sprintf("/at_most/%d", i)
		if l.Items == nil {
			if err := checkCategory(l, field, c.schema, limited); err != nil {
				return nil, err
			}
			rules.Groups = append(rules.Groups, r.byCategory(c.schema, l)...)
			continue
		}
		if l.Feature != "" || l.Most < 0 {
			return nil, api.Fieldf(field, "must have items or a feature, and most ≥ 0")
		}
		rules.Groups = append(rules.Groups, assortment.Group{Name: fmt.Sprintf("at_most %d", i), Items: present(l.Items, index), Max: l.Most})
	}
	family, err := assortment.NewLaminar(rules)
	if err != nil {
		return nil, api.Fieldf("", "%v", err)
	}
	return family, nil
}

// byCategory returns a group for every category of the items.
func (r *request) byCategory(s *feature.Schema, l api.Limit) []assortment.Group {
	var groups []assortment.Group
	of := map[string]int{}
	for i := range r.len() {
		v := r.category(s, i, l.Feature)
		g, ok := of[v]
		if !ok {
			g = len(groups)
			of[v] = g
			groups = append(groups, assortment.Group{Name: fmt.Sprintf("%s %q", l.Feature, v), Max: l.Most})
		}
		groups[g].Items = append(groups[g].Items, i)
	}
	return groups
}

// present returns where those of the ids are that the request has. A rule that says what not to show also holds
// on a day without the item.
func present(ids []string, index map[string]int) []int {
	at := []int{}
	for _, id := range ids {
		if i, ok := index[id]; ok {
			at = append(at, i)
		}
	}
	return at
}

// find returns where the ids are, all of which must be there.
func find(field string, ids []string, index map[string]int) ([]int, error) {
	at := make([]int, len(ids))
	for k, id := range ids {
		i, ok := index[id]
		if !ok {
			return nil, api.Fieldf(fmt.Sprintf("%s/%d", field, k), "%q is not among the items", id)
		}
		at[k] = i
	}
	return at, nil
}

// rules are those of a request, as the log has them.
type rules struct {
	Size    int         `json:"size,omitzero"`
	Include []string    `json:"include,omitzero"`
	Exclude []string    `json:"exclude,omitzero"`
	AtMost  []api.Limit `json:"at_most,omitzero"`
	Slots   []api.Slot  `json:"slots,omitzero"`
}

const (
	maxRulesText = 1 << 14 // bytes
	tooManyRules = "null"  // stands for more
)

// logged returns the rules of a request for the log, "" if it has none.
func (r *request) logged() string {
	if r.Size == 0 && len(r.Include) == 0 && len(r.Exclude) == 0 && len(r.AtMost) == 0 && r.Slots == nil {
		return ""
	}
	text, err := json.Marshal(rules{r.Size, r.Include, r.Exclude, r.AtMost, r.Slots}, json.Deterministic(true))
	if err != nil || len(text) > maxRulesText {
		return tooManyRules
	}
	return string(text)
}

// rule gives a request the rules that a log has. It reports whether the log has them.
func (r *request) rule(text string) bool {
	if text == "" {
		return true
	}
	var logged *rules
	if err := json.Unmarshal([]byte(text), &logged); err != nil || logged == nil {
		return false
	}
	r.Size, r.Include, r.Exclude, r.AtMost, r.Slots = logged.Size, logged.Include, logged.Exclude, logged.AtMost, logged.Slots
	return true
}
