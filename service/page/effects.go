package page

import (
	"slices"

	"gonum.org/v1/gonum/mat"

	"vitrine/bandit"
	"vitrine/service/api"
	"vitrine/service/feature"
)

const (
	maxBackground = 32   // rows over which effects are averaged
	maxEffects    = 30   // features
	maxEffectRows = 4096 // rows for all effects together
	numberPoints  = 9
	maxValues     = 20 // of a category
)

// effectsOf returns the partial dependence of the utility on each number and category, over evenly spaced rows,
//
//	PD_f(v) = mean over the rows x of u(x with the value v of f)
//
// where crosses of f change with it. A number runs from its smallest to its largest value in the rows.
func effectsOf(e bandit.Explainer, s *feature.Schema, rows *mat.Dense) (list []api.Effect, background int) {
	n, d := rows.Dims()
	type grid struct {
		part   int
		values []float64 // of a number, or the column of a category
	}
	var grids []grid
	points := 0
	for k, p := range s.Parts() {
		g := grid{part: k}
		switch p.Kind {
		case "number":
			column := mat.Col(nil, p.From, rows)
			low, high := slices.Min(column), slices.Max(column)
			for i := range numberPoints {
				g.values = append(g.values, low+float64((high-low)*float64(i)/(numberPoints-1)))
			}
			if low == high {
				g.values = g.values[:1]
			}
		case "category":
			for b := range s.NumValues(k) {
				if b < maxValues {
					g.values = append(g.values, float64(b))
				}
			}
		}
		if len(g.values) > 0 && len(grids) < maxEffects {
			grids = append(grids, g)
			points += len(g.values)
		}
	}
	if points == 0 {
		return nil, 0
	}
	background = max(1, min(n, maxBackground, maxEffectRows/points))
	moved := mat.NewDense(background, d, nil)
	mean, sd := make([]float64, background), make([]float64, background)
	for _, g := range grids {
		p := s.Parts()[g.part]
		effect := api.Effect{Feature: p.Name, Kind: p.Kind}
		columns := make([]float64, p.Size)
		for _, v := range g.values {
			clear(columns)
			if columns[0] = v; p.Kind == "category" {
				columns[0] = 0
				columns[int(v)] = 1
			}
			for i := range background {
				row := moved.RawRowView(i)
				copy(row, rows.RawRowView(i*n/background))
				s.Set(row, g.part, columns)
			}
			_, hasSD := e.Value(mean, sd, moved)
			point := api.EffectPoint{Value: valueOf(s.Value(moved.RawRowView(0), g.part)), Utility: meanOf(mean)}
			if hasSD {
				point.SD = usable(meanOf(sd))
			}
			if usable(point.Utility) != nil {
				effect.Points = append(effect.Points, point)
			}
		}
		list = append(list, effect)
	}
	return list, background
}

func meanOf(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}
