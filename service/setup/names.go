package setup

import (
	"fmt"
	"unicode/utf8"

	"vitrine/service/api"
	"vitrine/service/eventlog"
)

const (
	MaxID       = 1024 // bytes of an item's id in a request: Personalizer's have 256 characters
	MaxUnit     = 200  // of a unit
	MaxDecision = 128  // of a decision's id
	MaxName     = 64   // of a placement's name
)

// IsName reports whether a name is legal for a placement.
func IsName(name string) bool {
	return name != "" && len(name) <= MaxName && CheckDecision("", name) == nil
}

// CheckShopper reports an impossible id of a shopper. The error does not quote the id, which may be in no log.
func CheckShopper(id string) error {
	if len(id) > MaxUnit || !utf8.ValidString(id) {
		return api.Fieldf("/shopper_id", "must have at most %d bytes of UTF-8", MaxUnit)
	}
	return nil
}

// CheckDecision reports an id in a field that must be escaped in a URL.
func CheckDecision(field, id string) error {
	if len(id) > MaxDecision {
		return api.Fieldf(field, "must have at most %d bytes", MaxDecision)
	}
	for _, c := range []byte(id) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-', c == ':':
		default:
			return api.Fieldf(field, "%q: must be of letters, digits, '.', '_', '-' and ':'", id)
		}
	}
	if id == "." || id == ".." {
		return api.Fieldf(field, "%q: is no name in a URL", id)
	}
	return nil
}

// CheckChoices reports choices that no page can have.
func CheckChoices(choices []api.Choice) error {
	if len(choices) > MaxSize {
		return api.Fieldf("/choices", "has %d items, and a page shows at most %d: report each item once, with its quantity", len(choices), MaxSize)
	}
	seen := map[string]int{}
	for k, c := range choices {
		at := fmt.Sprintf("/choices/%d", k)
		before, again := seen[c.Item]
		switch q, v := c.Quantity, c.Value; {
		case c.Item == "":
			return api.Fieldf(at+"/item", "must be the id of an item that was shown")
		case again:
			return api.Fieldf(at+"/item", "%q is also choice %d: report each item once, with its quantity",
				api.Abbreviate(c.Item, 200), before)
		case q != nil && (*q < 1 || *q > eventlog.MaxQuantity):
			return api.Fieldf(at+"/quantity", "%d: must be from 1 to %d; leave out an item that was not taken", *q,
				eventlog.MaxQuantity)
		case v != nil && *v < 0:
			return api.Fieldf(at+"/value", "%v: must not be negative; report a return later, as a correction", *v)
		case v != nil:
			if err := api.CheckAmount(at+"/value", *v, 0); err != nil {
				return err
			}
		}
		seen[c.Item] = k
	}
	return nil
}
