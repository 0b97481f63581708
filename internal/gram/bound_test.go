package gram_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/gram"
	_ "vitrine/internal/rapidseed"
)

// randomGram draws a V between λI and nearly singular, with λ from 1e-9 to 1e6 and vectors of size 1e-3 to 1e4. It also
// returns the direction added most often.
func randomGram(rng *rand.Rand, d int) (*gram.Matrix, []float64) {
	v := gram.New(d, []float64{1, 10, 1e-9, 1e-4, 1e6}[rng.IntN(5)])
	size := []float64{1, 1, 1e-3, 1e2, 1e4}[rng.IntN(5)]
	often := make([]float64, d)
	for j := range often {
		often[j] = rng.NormFloat64()
	}
	for range rng.IntN(4 * d) {
		g := make([]float64, d)
		for j := range g {
			g[j] = size * (often[j]*float64(rng.IntN(2)) + rng.NormFloat64()*float64(rng.IntN(2)))
		}
		v.Add(rng.Float64(), g)
	}
	return v, often
}

// hardVectors draws vectors of any size, some of them in directions in which the bound is tight.
func hardVectors(rng *rand.Rand, v *gram.Matrix, often []float64, n int) *mat.Dense {
	d := len(often)
	var sym mat.EigenSym
	sym.Factorize(v.Sym(nil), true)
	var axes mat.Dense
	sym.VectorsTo(&axes)
	g := mat.NewDense(n, d, nil)
	for i := range n {
		row := g.RawRowView(i)
		size := math.Pow(10, float64(rng.IntN(9)-4))
		switch rng.IntN(6) {
		case 0: // an eigenvector: the bound without components is tight for one
			mat.Col(row, rng.IntN(d), &axes)
		case 1:
			copy(row, often)
		case 2:
			row[rng.IntN(d)] = 1
		case 3: // within the span of a few eigenvectors
			for range 3 {
				c, k := rng.NormFloat64(), rng.IntN(d)
				for j := range row {
					row[j] += c * axes.At(j, k)
				}
			}
		case 4:
			size = []float64{0, 1e-160, 1e-165, 1e-300, 1e150, 1e160, 1e300}[rng.IntN(7)]
			fallthrough
		default:
			for j := range row {
				row[j] = rng.NormFloat64()
			}
		}
		for j := range row {
			row[j] *= size
		}
	}
	return g
}

// For vectors of any size, including directions in which the bound is tight, every bound exceeds the norm that Norms
// computes.
func TestBoundIsAboveTheNorm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		d, n := 1+rng.IntN(24), 64
		v, often := randomGram(rng, d)
		inv := v.Inverse()
		m := rng.IntN(d + 2)
		b := inv.Bound(m)
		if b.NumDirections() > m {
			t.Fatalf("%d directions, want at most %d", b.NumDirections(), m)
		}
		g := hardVectors(rng, v, often, n)
		norms := make([]float64, n)
		inv.Norms(norms, g)
		bounds := make([]float64, n)
		for i := range n {
			row := g.RowView(i)
			bounds[i] = b.Of(mat.Dot(row, row))
		}
		start := append([]float64(nil), bounds...)
		var squares, along, sketched []float64
		for i := range n {
			row := g.RowView(i)
			squares = append(squares, mat.Dot(row, row))
		}
		check := func(known int) {
			for i, norm := range norms {
				if gram.Norm(bounds[i]) < norm {
					t.Fatalf("d = %d, %d of %d components: bound %v of a norm of %v",
						d, known, b.NumDirections(), gram.Norm(bounds[i]), norm)
				}
			}
		}
		check(0)
		for k := range b.NumDirections() {
			before := append([]float64(nil), bounds...)
			b.Tighten(bounds, k, k+1, g)
			for i := range bounds {
				q := mat.NewVecDense(d, b.Directions(k, k+1))
				component := mat.Dot(q, g.RowView(i))
				along = append(along, component)
				want := before[i] - component*component
				if start[i] < 1e280 && math.Abs(bounds[i]-want) > 1e-9*start[i] {
					t.Fatalf("Tighten gives %v, want %v", bounds[i], want)
				}
				if bounds[i] > before[i] {
					t.Fatalf("a component raised the bound from %v to %v", before[i], bounds[i])
				}
			}
			check(k + 1)
			sketched = append(sketched[:0], bounds...)
			b.Sketches(sketched, squares, along[:(k+1)/2*n])
			b.Less(sketched, along[(k+1)/2*n:])
			for i, bound := range sketched {
				if start[i] < 1e280 && math.Abs(bound-bounds[i]) > 1e-9*start[i] || gram.Norm(bound) < norms[i] {
					t.Fatalf("Sketches gives the bound %v, want %v of a norm of %v", bound, bounds[i], norms[i])
				}
			}
		}
	})
}

// If all components but one are known, the bound equals the norm up to the added margin.
func TestBoundIsTight(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	const d, n = 9, 50
	v := gram.New(d, 2)
	g := mat.NewDense(n, d, nil)
	for i := range n {
		for j := range d {
			g.Set(i, j, rng.NormFloat64())
		}
		v.Add(1, g.RawRowView(i))
	}
	b := v.Inverse().Bound(d)
	expect.Equal(fatal.T(t), b.NumDirections(), d-1, "directions below the largest eigenvalue")
	norms, bounds := make([]float64, n), make([]float64, n)
	v.Inverse().Norms(norms, g)
	for i := range n {
		bounds[i] = b.Of(mat.Dot(g.RowView(i), g.RowView(i)))
	}
	b.Tighten(bounds, 0, d-1, g)
	for i, norm := range norms {
		if got := gram.Norm(bounds[i]); got < norm || got > norm*(1+1e-9) {
			t.Errorf("bound %v, norm %v", got, norm)
		}
	}
}

// A row's norm does not depend on the other rows: a search computes it in a different batch from the full computation.
func TestNormsPosition(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, d := range []int{1, 2, 3, 8, 16, 31, 76, 121} {
		const n = 40
		v, _ := randomGram(rng, d)
		inv := v.Inverse()
		g := mat.NewDense(n, d, nil)
		g.Apply(func(int, int, float64) float64 { return rng.NormFloat64() }, g)
		norms := make([]float64, n)
		inv.Norms(norms, g)
		for from := range n {
			to := from + 1 + rng.IntN(n-from)
			some := make([]float64, to-from)
			inv.Norms(some, g.Slice(from, to, 0, d).(*mat.Dense))
			for i, norm := range some {
				if norm != norms[from+i] {
					t.Fatalf("d = %d: row %d has norm %v among %d rows, %v among %d",
						d, from+i, norm, to-from, norms[from+i], n)
				}
			}
		}
	}
}

// No direction of λI is better known than another.
func TestBoundOfAMultipleOfTheIdentity(t *testing.T) {
	b := gram.New(5, 4).Inverse().Bound(5)
	expect.Equal(t, b.NumDirections(), 0, "directions")
	if got := gram.Norm(b.Of(9)); got < 1.5 || got > 1.5*(1+1e-10) {
		t.Errorf("bound %v of a norm of 1.5", got)
	}
}

// The bound holds however wrong the given eigenvectors and eigenvalues are, because it measures and adds both the rest
// of V⁻¹ and the vectors' deviation from orthonormality.
func TestBoundOfWrongEigenvectors(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 8))
	wrong := map[string]func(mu []float64, q *mat.Dense){
		"values":         func(mu []float64, _ *mat.Dense) { mu[len(mu)-1] *= 0.9 },
		"all values":     func(mu []float64, _ *mat.Dense) { clear(mu) },
		"small values":   func(mu []float64, _ *mat.Dense) { mu[0] = -mu[len(mu)-1] },
		"turned vectors": func(_ []float64, q *mat.Dense) { turn(q, 0.1) },
		"short vectors":  func(_ []float64, q *mat.Dense) { q.Scale(0.9, q) },
		"long vectors":   func(_ []float64, q *mat.Dense) { q.Scale(1.1, q) },
		"noise": func(_ []float64, q *mat.Dense) {
			q.Apply(func(_, _ int, v float64) float64 { return v + 0.01*rng.NormFloat64() }, q)
		},
	}
	for name, change := range wrong {
		for range 50 {
			d := 2 + rng.IntN(8)
			v, often := randomGram(rng, d)
			p := mat.NewSymDense(d, nil)
			var inverse mat.Dense
			if inverse.Inverse(v.Sym(nil)) != nil {
				continue
			}
			for i := range d {
				for j := range i + 1 {
					p.SetSym(i, j, (inverse.At(i, j)+inverse.At(j, i))/2)
				}
			}
			var eigen mat.EigenSym
			if !eigen.Factorize(p, true) {
				t.Fatal("no eigenvectors")
			}
			mu, axes, q := eigen.Values(nil), new(mat.Dense), new(mat.Dense)
			eigen.VectorsTo(axes)
			q.CloneFrom(axes)
			change(mu, q)
			b := gram.NewBound(p, mu, q, d)
			g := mat.NewDense(d+2, d, nil)
			for i := range d {
				g.SetRow(i, mat.Col(nil, i, axes))
			}
			g.SetRow(d, often)
			g.SetRow(d+1, normals(rng, d))
			bounds := make([]float64, d+2)
			for i := range bounds {
				bounds[i] = b.Of(mat.Dot(g.RowView(i), g.RowView(i)))
			}
			b.Tighten(bounds, 0, b.NumDirections(), g)
			for i, bound := range bounds {
				x := g.RowView(i)
				if want := math.Sqrt(max(mat.Inner(x, p, x), 0)); gram.Norm(bound) < want*(1-1e-9) {
					t.Fatalf("%s, d = %d, row %d: bound %v of a norm of %v", name, d, i, gram.Norm(bound), want)
				}
			}
		}
	}
}

// turn rotates the first and the last vector towards each other.
func turn(q *mat.Dense, angle float64) {
	d, _ := q.Dims()
	sin, cos := math.Sincos(angle)
	for i := range d {
		a, b := q.At(i, 0), q.At(i, d-1)
		q.Set(i, 0, cos*a-sin*b)
		q.Set(i, d-1, sin*a+cos*b)
	}
}
