package imdb

import (
	"errors"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/state"
)

// version is the version of the stages and the cache. A change of their results needs a new one.
const version = 1

// kind distinguishes datasets of other reviews and other versions.
func kind(key string) string { return fmt.Sprintf("imdb %d %s", version, key) }

// encode returns the dataset of the reviews with the given digest, with its
// checksum.
func (d *Dataset) encode(key string) ([]byte, error) {
	e := state.NewEncoder(kind(key))
	e.Floats(d.Features.RawMatrix().Data)
	e.Floats(d.Params)
	r := d.Report
	e.Count(r.Reviews)
	e.Count(r.Terms)
	e.Count(r.Nonzeros)
	e.Floats(r.SingularValues)
	e.Float(r.ExplainedVariance)
	e.Float(r.Accuracy)
	e.Float(r.MeanUtility)
	e.Float(r.SDUtility)
	return e.Bytes()
}

// decode reads what encode wrote.
func decode(content []byte, key string) (*Dataset, error) {
	s, err := state.NewDecoder(kind(key), content)
	if err != nil {
		return nil, err
	}
	m := newModel(Dim)
	x, w := s.FloatSlice(), s.FloatSlice()
	d := &Dataset{Model: m, Params: w, Report: Report{
		Reviews:           s.Count(),
		Terms:             s.Count(),
		Nonzeros:          s.Count(),
		SingularValues:    s.FloatSlice(),
		ExplainedVariance: s.Float(),
		Accuracy:          s.Float(),
		MeanUtility:       s.Float(),
		SDUtility:         s.Float(),
	}}
	if err := s.Close(); err != nil {
		return nil, err
	}
	if len(x) == 0 || len(x)%Dim != 0 || len(w) != m.NumParams() || len(d.Report.SingularValues) != Dim {
		return nil, errors.New("it has another shape than this version writes")
	}
	d.Features = mat.NewDense(len(x)/Dim, Dim, x)
	return d, nil
}
