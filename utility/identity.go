package utility

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"math"
	"math/rand/v2"
	"strconv"

	"gonum.org/v1/gonum/mat"
)

// Identity returns the text by which a snapshot recognises a family: families with equal identities compute the same
// utilities. For a family of this package, the identity is its String; for a sum, it combines the identities of both
// parts. For any other family, it consists of the type, the String if there is one, the dimensions and a fingerprint:
//
//	main.Cubic d_w=7 fingerprint=5a0e…
//
// The fingerprint covers the prior's precisions, and the utilities and gradients of fixed items at fixed parameters. It
// uses four digits of each, so it is the same on all machines. Two families that differ only elsewhere need different
// Strings.
func Identity(m Model) string {
	switch m := m.(type) {
	case *Sum:
		return Identity(m.g) + " plus " + Identity(m.h)
	case LinearSum:
		return Identity(m.Sum)
	}
	name := fmt.Sprintf("%T", m)
	if s, ok := m.(fmt.Stringer); ok {
		switch m.(type) {
		case *Linear, *Expansion, *MLP, *Additive:
			return s.String()
		}
		name += fmt.Sprintf(" %q", s.String())
	}
	return fmt.Sprintf("%s d_w=%d fingerprint=%x", name, m.NumParams(), fingerprint(m)[:8])
}

// fingerprint returns a checksum of a family's precisions, utilities and gradients at fixed items and parameters.
func fingerprint(m Model) []byte {
	const items = 6
	sum := sha256.New()
	rng := rand.New(rand.NewPCG(0x7669747269, 0x6e65))
	w := make([]float64, m.NumParams())
	Precisions(m, w)
	digest(sum, w)
	x, u, g := mat.NewDense(items, m.NumFeatures(), nil), make([]float64, items), mat.NewDense(items, len(w), nil)
	for _, scale := range []float64{1, 3} {
		for j := range w {
			w[j] = rng.Float64() - 0.5
		}
		x.Apply(func(int, int, float64) float64 { return scale * (2*rng.Float64() - 1) }, x)
		Linearize(m, u, g, w, x)
		digest(sum, u)
		for i := range items {
			digest(sum, g.RawRowView(i))
		}
	}
	return sum.Sum(nil)
}

// digest adds numbers to four digits. It adds a number as 0 if it looks like the rounding left over from larger numbers
// that cancelled.
func digest(sum hash.Hash, v []float64) {
	size := 0.0
	for _, e := range v {
		size = max(size, math.Abs(e))
	}
	var text []byte
	for _, e := range v {
		if math.Abs(e) <= 1e-9*size {
			e = 0
		}
		text = strconv.AppendFloat(text, e, 'e', 3, 64)
		text = append(text, ' ')
	}
	sum.Write(text)
}
