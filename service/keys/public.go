package keys

import (
	"fmt"
	"net/http"

	"vitrine/service/api"
)

// Everybody can read a public key, for example in a web page. With a public key a caller decides and reports outcomes,
// but money comes from the catalogue and never from the caller. Filters read neither revenues nor shoppers' pasts, and
// answers leave out estimates, from which revenues would follow.

// checkPublic returns why a key must not be public.
func (k *Key) checkPublic() error {
	for _, scope := range k.Scopes {
		if k.Public && scope != ScopeDecide && scope != ScopeOutcome {
			return fmt.Errorf("key %q: scope %q: a public key may hold only %s and %s: make a second key, and keep it "+
				"secret", k.Name, scope, ScopeDecide, ScopeOutcome)
		}
	}
	return nil
}

// maxUnits limits the units of an item that a public key may report. The policy learns from at most as many of a page.
const maxUnits = 20

// Check returns why a caller must not send a body with the key, or nil.
func (k *Key) Check(body any) error {
	if !k.Public {
		return nil
	}
	switch b := body.(type) {
	case *api.Request:
		for i := range b.Items {
			if b.Items[i].Revenue != nil {
				return errPublic(fmt.Sprintf("/items/%d/revenue", i), "put the item with its revenue into the catalogue")
			}
		}
	case *api.Outcome:
		for i, c := range b.Choices {
			switch at := fmt.Sprintf("/choices/%d/", i); {
			case c.Value != nil:
				return errPublic(at+"value", "leave it out, and the item counts with its revenue")
			case c.Quantity != nil && *c.Quantity > maxUnits:
				return api.Fieldf(at+"quantity", "must be at most %d with a public key: report more from your server, with a "+
					"key that is not public", maxUnits)
			}
		}
	case *api.Correction, *api.Measurements:
		return api.NewProblem(http.StatusForbidden, "forbidden", "a public key must not send this, because everybody can "+
			"read the key: send it from your server, with a key that is not public")
	}
	return nil
}

func errPublic(field, remedy string) error {
	return api.Fieldf(field, "must not come with a public key, which everybody can read: %s, or send it from your server, "+
		"with a key that is not public", remedy)
}
