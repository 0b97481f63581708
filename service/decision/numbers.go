package decision

import (
	"vitrine/internal/state"
	"vitrine/service/api"
)

func groups(n *state.Numbers, list []api.Group) {
	for i := range list {
		n.Integers(&list[i].Rounds, &list[i].Purchases)
		n.Floats(&list[i].Revenue, &list[i].Squares)
	}
}

func comparison(n *state.Numbers, c *api.Comparison) {
	n.Integers(&c.Rounds, &c.Agreements, &c.Estimated)
	n.Floats(&c.Policy, &c.Baseline)
}
