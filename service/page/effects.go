package page

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"vitrine/bandit"
	"vitrine/internal/portable"
	"vitrine/service/api"
	"vitrine/service/feature"
)

const (
	maxBackground = 32      // rows over which effects are averaged
	maxEffects    = 30      // features
	maxEffectRows = 1 << 13 // rows for all effects together
	numberPoints  = 9
	maxValues     = 100 // of a category

	maxSegmented  = 8    // features with effects divided by segments
	maxBy         = 4    // categories that may divide them
	maxSegments   = 8    // values of such a category
	maxSegmentRow = 12   // rows over which an effect in a segment is averaged
	leastChange   = 0.02 // of the share that would buy: segments that differ less are not shown
)

// effectsOf returns the partial dependence of the utility on each number and category, over evenly spaced rows,
//
//	PD_f(v) = mean over the rows x of u(x with the value v of f)
//
// where crosses of f change with it, and likewise the mean share that would buy, 1/(1+exp(−u)). A number runs from its
// smallest to its largest value in the rows. The first effects are divided by the category that changes their shape
// most.
func effectsOf(e bandit.Explainer, s *feature.Schema, rows *mat.Dense) (list []api.Effect, background int) {
	n, _ := rows.Dims()
	var grids []grid
	points := 0
	for k, p := range s.Parts() {
		g := gridOf(s, rows, k, p)
		if len(g.values) > 0 && len(grids) < maxEffects {
			grids = append(grids, g)
			points += len(g.values)
		}
	}
	if points == 0 {
		return nil, 0
	}
	d := &dependence{e: e, s: s, rows: rows}
	background = max(1, min(n, maxBackground, maxEffectRows/points))
	for i, g := range grids {
		p := s.Parts()[g.part]
		effect := api.Effect{Feature: p.Name, Kind: p.Kind, Points: d.points(g, background)}
		if i < maxSegmented && len(g.values) > 1 {
			effect.By, effect.Segments = d.divide(g, grids)
		}
		list = append(list, effect)
	}
	return list, background
}

// grid holds the values of a feature at which its effect is computed.
type grid struct {
	part   int
	values []float64 // of a number, or the column of a category
}

func gridOf(s *feature.Schema, rows *mat.Dense, k int, p feature.Part) grid {
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
		for b := range min(s.NumValues(k), maxValues) {
			g.values = append(g.values, float64(b))
		}
	}
	return g
}

// setting gives a feature a value.
type setting struct {
	part  int
	value float64
}

// dependence computes partial dependences over rows.
type dependence struct {
	e    bandit.Explainer
	s    *feature.Schema
	rows *mat.Dense

	moved    *mat.Dense
	mean, sd []float64
	columns  []float64
}

// at returns the mean utility of count of the rows, each with the same values of some features.
func (d *dependence) at(count int, settings ...setting) api.EffectPoint {
	n, width := d.rows.Dims()
	if d.moved == nil || len(d.mean) != count {
		d.moved, d.mean, d.sd = mat.NewDense(count, width, nil), make([]float64, count), make([]float64, count)
	}
	for i := range count {
		row := d.moved.RawRowView(i)
		copy(row, d.rows.RawRowView(i*n/count))
		for _, set := range settings {
			p := d.s.Parts()[set.part]
			d.columns = append(d.columns[:0], make([]float64, p.Size)...)
			if d.columns[0] = set.value; p.Kind == "category" {
				d.columns[0] = 0
				d.columns[int(set.value)] = 1
			}
			d.s.Set(row, set.part, d.columns)
		}
	}
	_, hasSD := d.e.Value(d.mean, d.sd, d.moved)
	point := api.EffectPoint{Value: valueOf(d.s.Value(d.moved.RawRowView(0), settings[0].part)),
		Utility: meanOf(d.mean), Share: d.share(0)}
	if hasSD {
		point.SD, point.Low, point.High = usable(meanOf(d.sd)), usable(d.share(-1)), usable(d.share(1))
	}
	return point
}

// share returns the mean share that would buy at the mean utilities plus so many standard deviations.
func (d *dependence) share(deviations float64) float64 {
	sum := 0.0
	for i, u := range d.mean {
		if deviations != 0 {
			u += float64(deviations * d.sd[i])
		}
		sum += 1 / (1 + portable.Exp(-u))
	}
	return sum / float64(len(d.mean))
}

// points returns the effect of a feature, among the rows with another value.
func (d *dependence) points(g grid, count int, among ...setting) (list []api.EffectPoint) {
	for _, v := range g.values {
		point := d.at(count, append([]setting{{g.part, v}}, among...)...)
		if usable(point.Utility) != nil {
			list = append(list, point)
		}
	}
	return list
}

// divide divides the effect of a feature by the category that changes its shape most. Categories of shoppers come
// first.
func (d *dependence) divide(g grid, grids []grid) (by string, segments []api.EffectSegment) {
	parts := d.s.Parts()
	n, _ := d.rows.Dims()
	count := min(n, maxSegmentRow)
	for _, ofShoppers := range []bool{true, false} {
		most, tried := leastChange, 0
		for _, other := range grids {
			_, isShopper := d.s.User(parts[other.part].Name)
			if parts[other.part].Kind != "category" || other.part == g.part || isShopper != ofShoppers ||
				len(other.values) < 2 || tried == maxBy {
				continue
			}
			tried++
			var curves []api.EffectSegment
			for _, v := range other.values[:min(len(other.values), maxSegments)] {
				list := d.points(g, count, setting{other.part, v})
				d.columns = append(d.columns[:0], make([]float64, parts[other.part].Size)...)
				d.columns[int(v)] = 1
				row := slices.Clone(d.rows.RawRowView(0))
				d.s.Set(row, other.part, d.columns)
				curves = append(curves, api.EffectSegment{Value: d.s.Value(row, other.part).Text, Points: list})
			}
			if change := changeOf(curves); change > most {
				most, by, segments = change, parts[other.part].Name, curves
			}
		}
		if by != "" {
			break
		}
	}
	return by, segments
}

// changeOf returns how much the shapes of curves differ: the mean over the points of the difference between the largest
// and the smallest share, after each curve's own mean was subtracted.
func changeOf(curves []api.EffectSegment) (change float64) {
	points := len(curves[0].Points)
	means := make([]float64, len(curves))
	for i, c := range curves {
		if len(c.Points) != points {
			return 0
		}
		for _, p := range c.Points {
			means[i] += p.Share / float64(points)
		}
	}
	for v := range points {
		low, high := math.Inf(1), math.Inf(-1)
		for i, c := range curves {
			low, high = min(low, c.Points[v].Share-means[i]), max(high, c.Points[v].Share-means[i])
		}
		change += (high - low) / float64(points)
	}
	return change
}

func meanOf(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}
