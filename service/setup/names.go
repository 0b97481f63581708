package setup

import "vitrine/service/api"

const (
	MaxID       = 200 // bytes of an item's id
	MaxUnit     = 200 // of a unit
	MaxDecision = 128 // of a decision's id
	MaxName     = 64  // of a placement's name
)

// IsName reports whether a name is legal for a placement.
func IsName(name string) bool {
	return name != "" && len(name) <= MaxName && CheckDecision("", name) == nil
}

// CheckDecision reports an id in a field that must be escaped in a URL. Ids that the engine makes contain a ~.
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
