package catalogue

import (
	"cmp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"vitrine/service/api"
	"vitrine/service/feature"
)

// maxNamed limits the ids named in a selection.
const maxNamed = 100

// Selection lists the items that a request may be offered.
type Selection struct {
	Slots []int32 // in increasing order; meaningless if All
	All   bool    // all items of the catalogue

	Unknown, Unavailable []string // excluded candidates, the first 100 of each kind
	Missing              int      // number of excluded candidates of both kinds
}

// Select returns the items with the given ids (all items if ids is nil) that are available at a time and satisfy a
// filter for a shopper with the given past. The filter must have caught up. Every item satisfies nil.
func (c *Catalogue) Select(dst []int32, ids []string, satisfied *Filter, past []feature.Past, now int64) (s Selection) {
	if ids == nil && satisfied == nil && c.limited == 0 {
		return Selection{All: true}
	}
	s.Slots = dst[:0]
	known := c.personal(satisfied, past)
	if ids == nil {
		for slot := range int32(c.Len()) {
			holds := satisfied.has(slot)
			if len(known) > 0 && known[0].slot == slot {
				holds, known = known[0].holds, known[1:]
			}
			if holds && c.isOpen(slot, now) {
				s.Slots = append(s.Slots, slot)
			}
		}
		return s
	}
	for _, id := range ids {
		slot, ok := c.index.find(id)
		switch {
		case !ok:
			s.Unknown = s.miss(s.Unknown, id)
		case !c.isOpen(slot, now):
			s.Unavailable = s.miss(s.Unavailable, id)
		default:
			holds := satisfied.has(slot)
			if at, found := slices.BinarySearchFunc(known, slot, func(k personal, slot int32) int {
				return cmp.Compare(k.slot, slot)
			}); found {
				holds = known[at].holds
			}
			if holds {
				s.Slots = append(s.Slots, slot)
			}
		}
	}
	slices.Sort(s.Slots)
	s.Slots = slices.Compact(s.Slots)
	return s
}

func (s *Selection) miss(list []string, id string) []string {
	s.Missing++
	if len(list) < maxNamed {
		list = append(list, id)
	}
	return list
}

// Why an item may not be shown.
const (
	Unavailable = "unavailable" // as its fields say
	NotYet      = "not-yet"     // before its window
	Over        = "over"        // after its window
	Unfit       = "unfit"       // it lacks features that the placement needs
)

// WhyNot returns why an item may not be shown at a time, or "".
func (c *Catalogue) WhyNot(slot int32, now int64) string {
	switch state := c.states[slot]; {
	case state&unavailable != 0:
		return Unavailable
	case state&unfit != 0:
		return Unfit
	case state&inWindow == 0:
		return ""
	}
	var f fields
	switch f.begin(c.kept.at(slot)); {
	case now < f.from:
		return NotYet
	case now >= f.until:
		return Over
	}
	return ""
}

// Mentions reports whether an item's id, groups, texts, or texts and numbers in its payload contain a text in lower case.
func (c *Catalogue) Mentions(slot int32, text string) bool {
	f := new(fields)
	c.read(f, slot)
	has := func(s string) bool { return strings.Contains(strings.ToLower(s), text) }
	return has(f.id) || inPayload(f.payload, has) || slices.ContainsFunc(f.groups, has) ||
		slices.ContainsFunc(f.values, func(v api.Value) bool { return v.Kind == api.IsText && has(v.Text) }) ||
		slices.ContainsFunc(f.attributes, func(v api.Value) bool { return v.Kind == api.IsText && has(v.Text) })
}

// inPayload reports whether has holds for a text or a number in a payload. Only a payload with escapes may contain a text
// that its bytes lack.
func inPayload(payload string, has func(string) bool) bool {
	if !has(payload) && !strings.Contains(payload, `\`) {
		return false
	}
	for d := jsontext.NewDecoder(strings.NewReader(payload)); ; {
		t, err := d.ReadToken()
		in, n := d.StackIndex(d.StackDepth())
		switch isName := in == '{' && n%2 == 1; {
		case err != nil: // the end
			return false
		case !isName && (t.Kind() == '"' || t.Kind() == '0') && has(t.String()):
			return true
		}
	}
}
