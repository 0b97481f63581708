package page

import (
	"testing"

	"vitrine"
	"vitrine/service/api"
	"vitrine/service/setup"
)

// Alternatives returns the best set other than the one shown, and the costs of a request's rules, by utilities and
// revenues of its items. family has the sets that the rules allow.
func Alternatives(c *setup.Config, r *api.Request, shown vitrine.Assortment, u,
	revenue []float64) (next vitrine.Assortment, earns float64, ok bool, rules []api.RuleCost,
	family vitrine.Constraint) {
	q := &Request{Request: r, items: r.Items}
	v := &alternatives{request: q, config: c, index: q.places(), u: u, r: revenue}
	next, earns, ok = v.next(shown)
	family, _ = q.family(c, v.index)
	return next, earns, ok, v.rules(), family
}

// SetMaxSteps sets how many steps a search under limits that cross may take, until the end of a test.
func SetMaxSteps(t testing.TB, steps int) {
	before := maxSteps
	maxSteps = steps
	t.Cleanup(func() { maxSteps = before })
}
