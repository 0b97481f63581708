package bandit

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/fields"
	"vitrine/internal/portable"
)

// sketch summarises the distribution of a feature in constant memory. Each value of level h stands for 2^h items. A
// level with sketchWidth values is sorted, and every other value moves one level up, from the first and from the second
// in turns (Munro and Paterson 1980; Manku, Rajagopalan and Lindsay 1998). It draws nothing, so the same items leave
// the same bytes everywhere.
type sketch struct {
	n      int      // items
	turns  []uint64 // of each level, how often it was halved
	levels [][]float64
}

const (
	sketchWidth = 128 // of a level; even
	sketchItems = 64  // of a context, the most that are counted
	maxLevels   = 40
)

// add counts an item.
func (s *sketch) add(v float64) {
	s.n++
	if len(s.levels) == 0 {
		s.grow()
	}
	s.levels[0] = append(s.levels[0], v)
	for h := 0; len(s.levels[h]) == sketchWidth && h < maxLevels-1; h++ {
		if h+1 == len(s.levels) {
			s.grow()
		}
		slices.Sort(s.levels[h])
		for i := int(s.turns[h] % 2); i < sketchWidth; i += 2 {
			s.levels[h+1] = append(s.levels[h+1], s.levels[h][i])
		}
		s.turns[h]++
		s.levels[h] = s.levels[h][:0]
	}
}

// grow adds an empty level.
func (s *sketch) grow() {
	s.levels, s.turns = append(s.levels, make([]float64, 0, sketchWidth)), append(s.turns, 0)
}

// mass is a value of a feature, and the number of items with it.
type mass struct{ value, weight float64 }

// masses returns the distinct values, in order.
func (s *sketch) masses() (all []mass) {
	weight := 1.0
	for _, level := range s.levels {
		for _, v := range level {
			all = append(all, mass{v, weight})
		}
		weight *= 2
	}
	slices.SortFunc(all, func(a, b mass) int { return cmp.Compare(a.value, b.value) })
	distinct := all[:0]
	for _, m := range all {
		if k := len(distinct); k > 0 && distinct[k-1].value == m.value {
			distinct[k-1].weight += m.weight
			continue
		}
		distinct = append(distinct, m)
	}
	return distinct
}

// fields passes over the summary.
func (s *sketch) fields(f *fields.Fields) {
	f.Count(&s.n)
	fields.Integers(f, &s.turns)
	fields.List(f, &s.levels, func(level *[]float64, f *fields.Fields) {
		f.Floats(level)
		f.Check(len(*level) < sketchWidth && !slices.ContainsFunc(*level, func(v float64) bool { return v-v != 0 }),
			"a level of %d values", len(*level))
	})
	f.Check(len(s.turns) == len(s.levels) && len(s.levels) <= maxLevels, "%d levels of values, and turns of %d",
		len(s.levels), len(s.turns))
}

// sketches summarise the first features, one sketch each; nil if no feature is summarised.
type sketches []*sketch

func newSketches(d int) sketches {
	all := make(sketches, d)
	for j := range all {
		all[j] = new(sketch)
	}
	return all
}

// add counts a context's items, evenly spaced if there are many.
func (s sketches) add(x *mat.Dense) {
	n, _ := x.Dims()
	if n == 0 {
		return
	}
	counted := min(n, sketchItems)
	for j, c := range s {
		from := c.n % n
		for k := range counted {
			c.add(x.At((k*n+from)/counted%n, j))
		}
	}
}

// bend is a normal score of a feature: linear between the knots (x, s), and beyond the last by at most one unit.
type bend struct{ x, s []float64 }

// knotSpacing is the least distance of the scores of two knots.
const knotSpacing = 0.1

// A feature is bent if the correlation of its values and their normal scores is at most bentBelow, and stays bent up to
// straightAbove. A uniform distribution's is 0.977, an exponential one's 0.903, and a log-normal one's with σ = 1,
// 0.763.
const (
	bentBelow     = 0.95
	straightAbove = 0.97
)

// bend returns the normal scores of a feature,
//
//	s(v) = (Φ⁻¹(rank of v) − their mean) / their deviation,   rank = (items below v + ½ items at v) / items
//
// and the correlation of values and scores. The scores of two values are an affine function of them.
func (s *sketch) bend() (b bend, correlation float64) {
	all := s.masses()
	score := make([]float64, len(all))
	below, n := 0.0, float64(s.n)
	var mean, center, square, spread, product float64
	for i, m := range all {
		score[i] = normalQuantile((below + float64(m.weight/2)) / n)
		below += m.weight
		mean += float64(m.weight * m.value / n)
		center += float64(m.weight * score[i] / n)
	}
	for i, m := range all {
		dv, ds := m.value-mean, score[i]-center
		square += float64(m.weight * dv * dv)
		spread += float64(m.weight * ds * ds)
		product += float64(m.weight * dv * ds)
	}
	if !(square > 0 && spread > 0) {
		return b, 1
	}
	scale := math.Sqrt(spread / n)
	for i, m := range all {
		v := (score[i] - center) / scale
		last := len(b.s) - 1
		if last < 0 || i == len(all)-1 || v >= b.s[last]+knotSpacing {
			b.x, b.s = append(b.x, m.value), append(b.s, v)
		}
	}
	return b, product / math.Sqrt(square) / math.Sqrt(spread)
}

// of returns the score of a value.
func (b bend) of(v float64) float64 {
	k := len(b.x)
	i, _ := slices.BinarySearch(b.x, v)
	i = max(1, min(i, k-1))
	s := b.s[i-1] + float64((v-b.x[i-1])/(b.x[i]-b.x[i-1])*(b.s[i]-b.s[i-1]))
	return max(b.s[0]-1, min(b.s[k-1]+1, s))
}

// settled is the size of the scores at which a bend is compared with a later one: the ranks of rarer values move with
// each of them.
const settled = 2

// stands reports whether every score moved by at most a quarter of their deviation.
func (b bend) stands(later bend) bool {
	if len(b.x) == 0 || len(later.x) == 0 {
		return len(b.x) == len(later.x)
	}
	for i, s := range b.s {
		if math.Abs(s) <= settled && !(math.Abs(later.of(b.x[i])-s) <= standstill) {
			return false
		}
	}
	return true
}

// scores returns the standardisation by normal scores for the features that are far from normal, and by moments for the
// others, and whether any feature is far from normal. That depends on which are bent now.
func (s *moments) scores(now standardisation) (z standardisation, any bool) {
	z = s.standardisation()
	z.bends = make([]bend, len(z.shift))
	for j, c := range s.sketches {
		limit := bentBelow
		if now.bends != nil && len(now.bends[j].x) > 0 {
			limit = straightAbove
		}
		if b, r := c.bend(); r < limit && len(b.x) > 2 {
			z.bends[j], any = b, true
			z.shift[j], z.scale[j] = 0, 1
		}
	}
	return z, any
}

// normalQuantile returns Φ⁻¹(p) to seven digits (Wichura 1988, algorithm AS 241, PPND7), for p from 10⁻⁹ to 1 − 10⁻⁹.
func normalQuantile(p float64) float64 {
	p = max(1e-9, min(1-1e-9, p))
	q := p - 0.5
	if math.Abs(q) <= 0.425 {
		r := 0.180625 - float64(q*q)
		return q * polynomial(r, 3.3871327179, 50.434271938, 159.29113202, 59.109374720) /
			polynomial(r, 1, 17.895169469, 78.757757664, 67.187563600)
	}
	r := math.Sqrt(-portable.Log(min(p, 1-p))) - 1.6
	return math.Copysign(polynomial(r, 1.4234372777, 2.7568153900, 1.3067284816, 0.17023821103)/polynomial(r, 1,
		0.73700164250, 0.12021132975), q)
}

// polynomial returns Σ_k c_k x^k.
func polynomial(x float64, c ...float64) (sum float64) {
	for _, v := range slices.Backward(c) {
		sum = float64(sum*x) + v
	}
	return sum
}
