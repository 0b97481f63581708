package page_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/bandit"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/page"
	"vitrine/service/setup"
)

// taste explains a utility of rows with the columns x, kind (2), brand (2) and dull.
type taste func(x float64, kind, brand int) float64

func (u taste) Value(mean, sd []float64, rows *mat.Dense) (hasMean, hasSD bool) {
	for i := range mean {
		row := rows.RawRowView(i)
		mean[i], sd[i] = u(row[0], int(row[2]), int(row[4])), 0.5
	}
	return true, true
}

func (taste) IsLinear() bool { return false }

func (taste) Reasons(*vitrine.Context, *rand.Rand) bandit.Reasons { return bandit.Reasons{} }

// An effect is divided by the category that changes its shape most, of shoppers if one does, and the segments have the
// shares that their shoppers would buy.
func TestSegments(t *testing.T) {
	c := fatal.Or(setup.Parse([]byte(`{"max_size":3,"policy":{"name":"ucb-mnl"},"features":[{"name":"x","kind":"number"},
		{"name":"kind","kind":"category","from":"shopper","values":["a","b"]},{"name":"brand","kind":"category","values":["c","d"]},{"name":"dull","kind":"number"}]}`)))(t)
	square := func(v float64) float64 { return v * v }
	for _, test := range []struct {
		what, by string
		u        taste
		values   []string
	}{
		{"kinds that want other numbers", "kind", func(x float64, kind, _ int) float64 {
			return 1 - square(x-float64(2*kind-1))
		}, []string{"a", "b"}},
		{"brands that want other numbers", "brand", func(x float64, _, brand int) float64 {
			return 1 - square(x-float64(2*brand-1))
		}, []string{"c", "d"}},
		{"both, brands more so", "kind", func(x float64, kind, brand int) float64 {
			return 1 - square(x-float64(2*brand-1)) - square(x-0.5*float64(2*kind-1))
		}, []string{"a", "b"}},
		{"none", "", func(x float64, _, _ int) float64 { return -x }, nil},
	} {
		var rows []page.ItemRow
		x := new(api.Insight)
		for i := range 8 {
			rows = append(rows, page.ItemRow{Item: i, Row: []float64{float64(i)/3.5 - 1, float64(1 - i%2),
				float64(i % 2), float64(1 - i/2%2), float64(i / 2 % 2), 3}, Revenue: 1})
			x.Items = append(x.Items, api.ItemInsight{ID: fmt.Sprint(i)})
		}
		page.Value(x, test.u, rows, c.Schema())
		e := x.Effects[0]
		if e.Feature != "x" || e.By != test.by || len(e.Segments) != len(test.values) {
			t.Errorf("%s: the effect of %s is divided by %q in %d", test.what, e.Feature, e.By, len(e.Segments))
			continue
		}
		for s, segment := range e.Segments {
			if segment.Value != test.values[s] || len(segment.Points) != 9 {
				t.Errorf("%s: segment %d is %q with %d points", test.what, s, segment.Value, len(segment.Points))
			}
			for _, p := range segment.Points {
				want := 0.0
				for i := range 8 {
					kind, brand := i%2, i/2%2
					if test.by == "kind" {
						kind = s
					} else {
						brand = s
					}
					want += 1 / (1 + math.Exp(-test.u(p.Value.(float64), kind, brand))) / 8
				}
				if math.Abs(p.Share-want) > 1e-12 {
					t.Errorf("%s: of %s %v would buy at %v, want %v", test.what, segment.Value, p.Share, p.Value, want)
				}
			}
		}
		for _, other := range x.Effects[1:] {
			if other.Feature == "dull" && other.By != "" {
				t.Errorf("%s: a feature without an effect is divided by %q", test.what, other.By)
			}
		}
	}
}
