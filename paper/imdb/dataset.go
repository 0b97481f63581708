package imdb

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"vitrine/internal/stream"
	"vitrine/utility"
)

// Dataset is the experiment's world: the held-out reviews as items, and their true utility.
type Dataset struct {
	Features *mat.Dense    // N×30, a row per item
	Model    utility.Model // f_w: 30-32-1 with relu
	Params   []float64     // w
	Report   Report
}

// Report holds figures for checking a [Dataset].
type Report struct {
	Reviews           int       // total number
	Terms             int       // size of the vocabulary
	Nonzeros          int       // number of nonzero TF-IDF weights
	SingularValues    []float64 // the 30 largest, for the weights
	ExplainedVariance float64   // by the 30 features, in [0, 1]
	Accuracy          float64   // for the sign of f_w on the held-out reviews, in [0, 1]
	MeanUtility       float64   // over the held-out reviews
	SDUtility         float64
}

// compute runs the stages after reading.
func compute(ctx context.Context, reviews []Review, report Reporter) (*Dataset, error) {
	f, err := reduce(ctx, reviews, stream.New(0, 0, stream.World), report)
	if err != nil {
		return nil, err
	}
	var rows, items []float64
	var rowLabels, itemLabels []int
	for i, held := range HeldOut(reviews) {
		x, label := f.x.RawRowView(i), reviews[i].Label
		if held {
			items, itemLabels = append(items, x...), append(itemLabels, label)
		} else {
			rows, rowLabels = append(rows, x...), append(rowLabels, label)
		}
	}
	m := newModel(Dim)
	w, err := train(ctx, m, mat.NewDense(len(rowLabels), Dim, rows), rowLabels, stream.New(0, 0, stream.Learner),
		func(epoch int) { report.progress(Training, epoch, epochs) })
	if err != nil {
		return nil, err
	}
	d := &Dataset{
		Features: mat.NewDense(len(itemLabels), Dim, items),
		Model:    m,
		Params:   w,
		Report: Report{
			Reviews:           len(reviews),
			Terms:             f.terms,
			Nonzeros:          f.nonzeros,
			SingularValues:    f.values,
			ExplainedVariance: f.explained,
		},
	}
	d.judge(itemLabels)
	return d, nil
}

// String returns the report as one line.
func (r Report) String() string {
	return fmt.Sprintf("%d reviews, %d words, %d weights; singular values %.5f … %.4f, explained variance %.4f; "+
		"held out: accuracy %.4f, utility %+.4f ± %.4f",
		r.Reviews, r.Terms, r.Nonzeros, r.SingularValues[0], r.SingularValues[len(r.SingularValues)-1],
		r.ExplainedVariance, r.Accuracy, r.MeanUtility, r.SDUtility)
}

// judge adds figures about the items' utilities to the report, given the items' labels.
func (d *Dataset) judge(label []int) {
	u := make([]float64, len(label))
	d.Model.Utilities(u, d.Params, d.Features)
	right := 0
	for i, v := range u {
		if (v > 0) == (label[i] == 1) {
			right++
		}
	}
	d.Report.Accuracy = float64(right) / float64(len(u))
	mean, variance := stat.PopMeanVariance(u, nil)
	d.Report.MeanUtility, d.Report.SDUtility = mean, math.Sqrt(variance)
}
