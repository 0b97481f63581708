package assortment_test

import (
	"testing"

	"vitrine/assortment"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// Only a quota without other rules contains all sets of one size.
func TestFull(t *testing.T) {
	for name, c := range map[string]struct {
		rules assortment.Rules
		full  bool
	}{
		"all pages of two": {assortment.Rules{Items: 4, Min: 2, Max: 2}, true},
		"all items":        {assortment.Rules{Items: 2, Min: 2, Max: 3}, true},
		"one or two":       {assortment.Rules{Items: 4, Min: 1, Max: 2}, false},
		"a pinned item":    {assortment.Rules{Items: 4, Min: 2, Max: 2, Include: []int{1}}, false},
		"an excluded item": {assortment.Rules{Items: 4, Min: 2, Max: 2, Exclude: []int{1}}, false},
		"a group":          {assortment.Rules{Items: 4, Min: 2, Max: 2, Groups: []assortment.Group{{Items: []int{1, 2}, Max: 1}}}, false},
		"a limit":          {assortment.Rules{Items: 4, Min: 2, Max: 2, Limits: []assortment.Limit{{Group: []int32{0, 0, -1, -1}, Max: 1}}}, false},
	} {
		size, full := fatal.Or(assortment.NewQuota(c.rules))(t).Full()
		expect.Equal(t, full, c.full, name)
		expect.Equal(t, size, 2, name)
	}
}
