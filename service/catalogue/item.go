package catalogue

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"vitrine/service/api"
	"vitrine/service/feature"
)

const (
	// MaxItems limits the items of a catalogue.
	MaxItems = 1_000_000

	maxID         = 200     // bytes
	maxName       = 100     // bytes of an attribute's or a group's name
	maxText       = 1000    // bytes of an attribute's value
	maxPayload    = 1 << 14 // bytes
	maxAttributes = 100
	maxGroups     = 100
)

// reserved lists the names of an item's other fields in filters.
var reserved = []string{"id", "revenue", "space", "groups", "payload", "available", feature.PastSeen,
	feature.PastBought}

// Encode returns the record of an item with the schema's features. Errors have the type *[api.FieldError], with fields
// below field.
func Encode(item *api.CatalogueItem, s *feature.Schema, field string) (string, error) {
	item = bare(item)
	if err := check(item, s, field); err != nil {
		return "", err
	}
	values, err := new(feature.Placer).Item(slices.Clone(item.Features), s, func() string {
		return field + "/features/"
	})
	if err != nil {
		return "", err
	}
	return encode(item, values), nil
}

// bare returns an item without explicit zero times and null payloads, which mean the same as absent fields.
func bare(item *api.CatalogueItem) *api.CatalogueItem {
	b := *item
	for _, t := range []**time.Time{&b.ValidFrom, &b.ValidUntil} {
		if *t != nil && (*t).IsZero() {
			*t = nil
		}
	}
	if string(b.Payload) == "null" {
		b.Payload = nil
	}
	return &b
}

func check(item *api.CatalogueItem, s *feature.Schema, field string) error {
	wrong := func(of, format string, args ...any) error { return api.Fieldf(field+of, format, args...) }
	if err := checkID(item.ID, field); err != nil {
		return err
	}
	if v := item.Revenue; v != nil && !(*v >= 0 && *v <= api.MaxAmount) {
		return api.CheckAmount(field+"/revenue", *v, 0)
	}
	if item.Space != nil {
		if err := CheckSpace(field+"/space", *item.Space); err != nil {
			return err
		}
	}
	for _, t := range []struct {
		of string
		at *time.Time
	}{{"/valid_from", item.ValidFrom}, {"/valid_until", item.ValidUntil}} {
		if t.at != nil && (t.at.Year() < 1700 || t.at.Year() > 2200) {
			return wrong(t.of, "%s: must be between the years 1700 and 2200", t.at.Format(time.RFC3339Nano))
		}
	}
	if a, b := item.ValidFrom, item.ValidUntil; a != nil && b != nil && !a.Before(*b) {
		return wrong("/valid_until", "%s: must be after valid_from, %s", b.Format(time.RFC3339Nano),
			a.Format(time.RFC3339Nano))
	}
	if err := cmp.Or(checkGroupNames(item.Groups, field), checkAttributes(item.Attributes, s, field)); err != nil {
		return err
	}
	if len(item.Payload) > maxPayload {
		return wrong("/payload", "has %d bytes, at most %d", len(item.Payload), maxPayload)
	}
	if len(item.Payload) > 0 && !item.Payload.IsValid() {
		return wrong("/payload", "is not JSON")
	}
	return nil
}

func checkGroupNames(groups []string, field string) error {
	if len(groups) > maxGroups {
		return api.Fieldf(field+"/groups", "has %d groups, at most %d", len(groups), maxGroups)
	}
	for i, g := range groups {
		switch at := fmt.Sprintf("%s/groups/%d", field, i); {
		case g == "" || len(g) > maxName || !utf8.ValidString(g):
			return api.Fieldf(at, "%q: must have from 1 to %d bytes of UTF-8", api.Abbreviate(g, 40), maxName)
		case slices.Contains(groups[:i], g):
			return api.Fieldf(at, "%q is a duplicate", g)
		}
	}
	return nil
}

func checkAttributes(attributes map[string]any, s *feature.Schema, field string) error {
	if len(attributes) > maxAttributes {
		return api.Fieldf(field+"/attributes", "has %d attributes, at most %d", len(attributes), maxAttributes)
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		at := field + "/attributes/" + api.Pointer(name)
		if !isName(name) {
			return api.Fieldf(at, "the name must have from 1 to %d letters from a to z, digits and '_', and not begin "+
				"with a digit", maxName)
		}
		if _, ok := s.Item(name); ok || slices.Contains(reserved, name) {
			return api.Fieldf(at, "%q is a field or a feature of items: give the attribute another name", name)
		}
		switch v := attributes[name].(type) {
		case bool:
		case float64:
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return api.Fieldf(at, "%v: must be finite", v)
			}
		case string:
			if len(v) > maxText || !utf8.ValidString(v) {
				return api.Fieldf(at, "must have at most %d bytes of UTF-8", maxText)
			}
		default:
			return api.Fieldf(at, "must be a number, a string, true or false")
		}
	}
	return nil
}

func checkID(id, field string) error {
	if id == "" || len(id) > maxID || !utf8.ValidString(id) {
		return api.Fieldf(field+"/id", "%q: must have from 1 to %d bytes of UTF-8", api.Abbreviate(id, 40), maxID)
	}
	if id == "." || id == ".." {
		return api.Fieldf(field+"/id", "%q: is no name in a URL", id)
	}
	return nil
}

// isName reports whether an attribute's name can be written in a filter.
func isName(name string) bool {
	for i, c := range []byte(name) {
		switch {
		case c == '_', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9' && i > 0:
		default:
			return false
		}
	}
	return name != "" && len(name) <= maxName
}

// patched returns an item with a patch merged into it. Features, attributes and the members of a payload merge by name;
// null removes one. The zero time removes a bound, and the payload null removes the payload.
func patched(item, patch *api.CatalogueItem) *api.CatalogueItem {
	p := *item
	for _, v := range patch.Features {
		at := slices.IndexFunc(p.Features, func(o api.Value) bool { return o.Name == v.Name })
		if at < 0 {
			p.Features = append(p.Features, v)
		} else {
			p.Features[at] = v
		}
	}
	if patch.Groups != nil {
		p.Groups = patch.Groups
	}
	p.Revenue, p.Space, p.Available = cmp.Or(patch.Revenue, p.Revenue), cmp.Or(patch.Space,
		p.Space), cmp.Or(patch.Available, p.Available)
	p.ValidFrom, p.ValidUntil = cmp.Or(patch.ValidFrom, p.ValidFrom), cmp.Or(patch.ValidUntil, p.ValidUntil)
	for name, v := range patch.Attributes {
		if p.Attributes == nil {
			p.Attributes = map[string]any{}
		}
		if v == nil {
			delete(p.Attributes, name)
		} else {
			p.Attributes[name] = v
		}
	}
	if patch.Payload != nil {
		p.Payload = mergedPayload(item.Payload, patch.Payload)
	}
	return &p
}

// mergedPayload merges two objects. A payload that is no object is replaced.
func mergedPayload(payload, patch jsontext.Value) jsontext.Value {
	var members, changes map[string]jsontext.Value
	_ = json.Unmarshal(payload, &members)
	_ = json.Unmarshal(patch, &changes)
	if changes == nil || members == nil && len(payload) > 0 {
		return bytes.Clone(patch)
	}
	if members == nil {
		members = map[string]jsontext.Value{}
	}
	before := maps.Clone(members)
	for name, v := range changes {
		if members[name] = v; string(v) == "null" {
			delete(members, name)
		}
	}
	if maps.EqualFunc(members, before, func(a, b jsontext.Value) bool { return bytes.Equal(a, b) }) {
		return payload
	}
	merged, err := json.Marshal(members, json.Deterministic(true))
	if err != nil {
		return bytes.Clone(patch)
	}
	return merged
}

// Checker returns a check of whether an item suits a placement's features. Of a patch, only the given values are checked.
func Checker(features []api.Feature, isPatch bool) (func(*api.CatalogueItem) error, error) {
	features = slices.Clone(features)
	for i := range features {
		switch f := &features[i]; {
		case !isPatch || f.Default != nil:
		case f.Kind == "number":
			f.Default = f.Center
		case f.Values != nil:
			f.Default = f.Values[0]
		case f.Kind == "category" || f.Kind == "text":
			f.Default = ""
		}
	}
	schema, err := feature.New(features)
	if err != nil {
		return nil, err
	}
	empty := New(schema)
	return func(item *api.CatalogueItem) error {
		id := item.ID
		if isPatch {
			item = patched(&api.CatalogueItem{ID: id}, item)
		}
		record, err := Encode(item, schema, "")
		if err == nil {
			_, err = empty.NewChange([]string{record}, nil)
		}
		if field, ok := errors.AsType[*api.FieldError](err); ok {
			err = api.Fieldf(strings.TrimPrefix(field.Field, "/items/0"), "%s", field.Message)
		}
		if err != nil {
			return fmt.Errorf("item %q: %w", api.Abbreviate(id, 40), err)
		}
		return nil
	}, nil
}

// DefaultSpace is the space of an item that does not set it.
const DefaultSpace = 1

const (
	unitsOfSpace = 1_000_000 // in a space of 1
	maxSpace     = 1_000_000_000
)

// SpaceUnits converts a space or a capacity to millionths. ok is false if it is negative, more than 10⁹, or not a
// multiple of a millionth, up to the rounding of decimal sums such as 0.1 + 0.2.
func SpaceUnits(space float64) (units int64, ok bool) {
	const (
		rounding    = 1e-14
		maxRounding = 0.2 // in units: a float64 near 10⁹ is less exact
	)
	v := space * unitsOfSpace
	whole := math.Round(v)
	return int64(whole), space >= 0 && space <= maxSpace && math.Abs(v-whole) <= min(rounding*v, maxRounding)
}

// SpaceOf converts millionths to a space.
func SpaceOf(units int64) float64 { return float64(units) / unitsOfSpace }

// CheckSpace returns an error about the field if SpaceUnits rejects its value.
func CheckSpace(field string, space float64) error {
	if !(space >= 0 && !math.IsInf(space, 0)) {
		return api.Fieldf(field, "%v: must be finite and not negative", space)
	}
	if space > maxSpace {
		return api.Fieldf(field, "%v: must be at most 10⁹", space)
	}
	if _, ok := SpaceUnits(space); !ok {
		return api.Fieldf(field,
			"%v: must have at most 6 decimals, so that spaces can be summed exactly: round a space up, a capacity down",
			space)
	}
	return nil
}
