package imdb

import (
	"errors"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/fields"
)

// version is the version of the stages and the cache. Increment it when their results change.
const version = 1

// kind distinguishes datasets by reviews and version.
func kind(key string) string { return fmt.Sprintf("imdb %d %s", version, key) }

// fields encodes or decodes the dataset without its model.
func (d *Dataset) fields(f *fields.Fields) (x []float64) {
	if !f.Reads() {
		x = d.Features.RawMatrix().Data
	}
	f.Floats(&x)
	f.Floats(&d.Params)
	r := &d.Report
	f.Count(&r.Reviews, &r.Terms, &r.Nonzeros)
	f.Floats(&r.SingularValues)
	f.Float(&r.ExplainedVariance, &r.Accuracy, &r.MeanUtility, &r.SDUtility)
	return x
}

// encode returns the dataset for the reviews with the given digest, with a checksum.
func (d *Dataset) encode(key string) ([]byte, error) {
	f := fields.Snapshot(kind(key))
	d.fields(f)
	return f.Seal()
}

// decode inverts encode.
func decode(content []byte, key string) (*Dataset, error) {
	f, err := fields.OpenKind(kind(key), content)
	if err != nil {
		return nil, err
	}
	d := &Dataset{Model: newModel(Dim)}
	x := d.fields(f)
	if err := f.Close(); err != nil {
		return nil, err
	}
	if len(x) == 0 || len(x)%Dim != 0 || len(d.Params) != d.Model.NumParams() || len(d.Report.SingularValues) != Dim {
		return nil, errors.New("it has another shape than this version writes")
	}
	d.Features = mat.NewDense(len(x)/Dim, Dim, x)
	return d, nil
}
