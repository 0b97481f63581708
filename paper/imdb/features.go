package imdb

import (
	"context"
	"fmt"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"vitrine/internal/sparse"
	"vitrine/internal/text"
)

// Dim is the number d of features per review.
const Dim = 30

// features represents the reviews as points in R^d.
type features struct {
	x         *mat.Dense // a row per review
	terms     int        // size of the vocabulary
	nonzeros  int        // number of nonzero TF-IDF weights
	values    []float64  // the d largest singular values
	explained float64    // share of the weights' variance
}

// reduce represents the TF-IDF weights A of all reviews, held out or not, by their truncated singular value
// decomposition A ≈ U Σ Vᵀ: the features of review i are row i of U Σ. The weights are not centred.
func reduce(ctx context.Context, reviews []Review, rng *rand.Rand, report Reporter) (*features, error) {
	var counts text.Counts
	for i, r := range reviews {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		counts.Add(r.Text)
		report.progress(Counting, i+1, len(reviews))
	}
	a := counts.TFIDF().Weights
	if m, n := a.Dims(); min(m, n) < Dim {
		return nil, fmt.Errorf("%d reviews with %d words: want at least %d of both", m, n, Dim)
	}
	svd, err := sparse.TruncatedSVD(ctx, a, Dim, rng, func(converged int) {
		report.progress(Decomposing, converged, Dim)
	})
	if err != nil {
		return nil, err
	}
	var x mat.Dense
	x.Mul(svd.U, mat.NewDiagDense(Dim, svd.Values))
	return &features{
		x:         &x,
		terms:     a.Columns,
		nonzeros:  len(a.Value),
		values:    svd.Values,
		explained: variance(&x) / totalVariance(a),
	}, nil
}

// variance returns the sum of the columns' population variances.
func variance(x *mat.Dense) float64 {
	_, d := x.Dims()
	sum := 0.0
	for j := range d {
		sum += stat.PopVariance(mat.Col(nil, j, x), nil)
	}
	return sum
}

// totalVariance returns the sum of the columns' population variances.
func totalVariance(a *sparse.Matrix) float64 {
	m, _ := a.Dims()
	mean := make([]float64, a.Columns)
	sum := 0.0
	for p, j := range a.Column {
		mean[j] += a.Value[p] / float64(m)
		sum += a.Value[p] * a.Value[p] / float64(m)
	}
	for _, v := range mean {
		sum -= v * v
	}
	return sum
}
