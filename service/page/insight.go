package page

import (
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/bandit"
	"vitrine/service/api"
	"vitrine/service/earnings"
	"vitrine/service/feature"
)

// ItemRow is a row under which an item was shown.
type ItemRow struct {
	Item    int // index in the insight's list
	Row     []float64
	Revenue float64
}

// Value adds item utilities and feature effects to an insight.
func Value(x *api.Insight, e bandit.Explainer, rows []ItemRow, s *feature.Schema) {
	features := mat.NewDense(len(rows), s.Width(), nil)
	for i := range rows {
		features.SetRow(i, rows[i].Row)
	}
	mean, sd := make([]float64, len(rows)), make([]float64, len(rows))
	hasMean, hasSD := e.Value(mean, sd, features)
	if !hasMean {
		return
	}
	for i, r := range rows {
		item := &x.Items[r.Item]
		if item.Utility = usable(mean[i]); item.Utility == nil {
			continue
		}
		worth := vitrine.ExpectedRevenue(vitrine.Assortment{0}, mean[i:i+1], []float64{r.Revenue})
		item.SlotWorth = &worth
		if hasSD {
			item.SD = usable(sd[i])
		}
	}
	x.Effects, x.Background = effectsOf(e, s, features)
}

// Positions returns the sales of each page position, with the policy's learned position effects.
func Positions(places []earnings.Sold, pi vitrine.Policy) []api.Position {
	learned := placeEffects(pi)
	list := []api.Position{}
	for k, s := range places {
		p := api.Position{Position: k + 1, Shown: s.Shown, Taken: s.Taken}
		if learned != nil {
			p.Effect = usable(vitrine.PlaceEffect(learned, k))
		}
		list = append(list, p)
	}
	return list
}
