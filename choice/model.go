package choice

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"gonum.org/v1/gonum/mat"

	"vitrine/internal/fields"
	"vitrine/internal/replace"
)

// modelFormat identifies a model file, and modelVersion the version of its fields.
const (
	modelFormat  = "vitrine choice model"
	modelVersion = 1
)

// modelFile is the JSON form of a Result.
type modelFile struct {
	Format       string            `json:"format"`
	Version      int               `json:"version"`
	Spec         *Spec             `json:"spec"`
	Alternatives []string          `json:"alternatives"`
	Outside      bool              `json:"outside"`
	Scale        *Scale            `json:"network_scale,omitempty"`
	Mirrored     []string          `json:"mirrored,omitempty"`
	Columns      []string          `json:"columns,omitempty"`
	Coefficients []coefficientFile `json:"coefficients"`
	Covariance   [][]float64       `json:"covariance,omitempty"`
	Frequencies  []frequencyFile   `json:"frequencies"`
	Errors       string            `json:"errors"`
	Clusters     int               `json:"clusters,omitzero"`

	LogLikelihood      float64   `json:"log_likelihood"`
	Null               float64   `json:"null_log_likelihood"`
	ConstantsOnly      *float64  `json:"constants_log_likelihood,omitempty"`
	RhoSquared         *float64  `json:"rho_squared"` // null if every choice offers a single alternative
	AdjustedRhoSquared *float64  `json:"adjusted_rho_squared"`
	AIC                float64   `json:"aic"`
	BIC                float64   `json:"bic"`
	Choices            int       `json:"choices"`
	Rows               int       `json:"rows"`
	ZeroWeight         int       `json:"zero_weight,omitzero"`
	Checksums          Checksums `json:"checksums"`
	Steps              int       `json:"steps"`
	Decrement          *float64  `json:"decrement"` // null if NaN
	Converged          bool      `json:"converged"`
	Separated          []string  `json:"separated,omitempty"`
}

// frequencyFile describes an alternative, or the outside option if its name is empty.
type frequencyFile struct {
	Alternative string  `json:"alternative"`
	Offered     float64 `json:"offered"`
	Chosen      float64 `json:"chosen"`
}

type coefficientFile struct {
	Name          string   `json:"name"`
	Estimate      *float64 `json:"estimate"`       // null if infinite
	StandardError *float64 `json:"standard_error"` // null if the data do not determine it
	Z             *float64 `json:"z"`
	P             *float64 `json:"p"`
}

// finite returns v for JSON, or nil: JSON cannot express NaN or infinities.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// JSON returns the model as JSON, for [ReadModel].
func (r *Result) JSON() ([]byte, error) {
	if n := r.Spec.Utility.Network; n != nil && n.Model != nil {
		return nil, fmt.Errorf("a model file cannot hold the utility family %T: only a network of hidden widths",
			n.Model)
	}
	f := modelFile{Format: modelFormat, Version: modelVersion, Spec: r.Spec, Alternatives: r.Alternatives,
		Outside: r.Outside, Scale: r.Scale, Mirrored: r.Mirrored, Columns: r.Columns,
		Errors: r.Errors, Clusters: r.Clusters, LogLikelihood: r.LogLikelihood, Null: r.Null, ConstantsOnly: finite(r.ConstantsOnly),
		RhoSquared: finite(r.RhoSquared()), AdjustedRhoSquared: finite(r.AdjustedRhoSquared()), AIC: r.AIC(),
		BIC:     r.BIC(),
		Choices: r.Choices, Rows: r.Rows, ZeroWeight: r.ZeroWeight, Checksums: r.Checksums, Steps: r.Steps, Decrement: finite(r.Decrement), Converged: r.Converged,
		Separated: r.Separated}
	f.Errors = cmp.Or(f.Errors, "classic")
	se, z, p := r.StandardErrors(), r.Z(), r.P()
	for j, name := range r.Names {
		estimate := finite(r.Coefficients[j])
		if slices.Contains(r.Separated, name) {
			estimate = nil
		}
		f.Coefficients = append(f.Coefficients, coefficientFile{name, estimate, finite(se[j]), finite(z[j]),
			finite(p[j])})
		if row := mat.Row(nil, j, r.Covariance); finite(row[j]) != nil {
			f.Covariance = append(f.Covariance, row)
		}
	}
	if len(f.Covariance) < len(r.Names) {
		f.Covariance = nil
	}
	for a, n := range r.Chosen {
		label := ""
		if a < len(r.Alternatives) {
			label = r.Alternatives[a]
		}
		f.Frequencies = append(f.Frequencies, frequencyFile{label, r.Offered[a], n})
	}
	text, err := json.Marshal(f, json.Deterministic(true), jsontext.Multiline(true), jsontext.WithIndent("  "))
	return append(text, '\n'), err
}

// Write writes the model to a file atomically.
func (r *Result) Write(path string) error {
	text, err := r.JSON()
	if err != nil {
		return err
	}
	return replace.File(path, text)
}

// ReadModel reads a model written by [Result.Write].
func ReadModel(path string) (*Result, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r, err := decodeModel(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

func decodeModel(text []byte) (*Result, error) {
	var kind struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(text, &kind); err != nil || kind.Format != modelFormat {
		return nil, errors.New("it is not a model that vitrine fit wrote")
	}
	if kind.Version != modelVersion {
		return nil, fields.UnknownFormat("the model", kind.Version, modelVersion)
	}
	var f modelFile
	if err := json.UnmarshalRead(bytes.NewReader(text), &f, json.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	if f.Spec == nil {
		return nil, errors.New("spec is missing")
	}
	if f.Checksums.Choices == "" {
		return nil, errors.New("it holds no checksums of its data: fit the model again")
	}
	check := f.Spec.check
	if f.Spec.Data.Form == "" { // a model of data from a Builder
		check = f.Spec.checkModel
	}
	if err := check(); err != nil {
		return nil, err
	}
	n := len(f.Coefficients)
	if err := f.Scale.check(f.Spec.Utility.Network); err != nil {
		return nil, err
	}
	r := &Result{Spec: f.Spec, Alternatives: f.Alternatives, Outside: f.Outside, Scale: f.Scale, Mirrored: f.Mirrored, Columns: f.Columns,
		Errors: f.Errors, Clusters: f.Clusters,
		Covariance: mat.NewSymDense(max(n, 1), nil), LogLikelihood: f.LogLikelihood, Null: f.Null, ConstantsOnly: nan,
		Choices: f.Choices, Rows: f.Rows, ZeroWeight: f.ZeroWeight, Checksums: f.Checksums, Steps: f.Steps, Decrement: nan, Converged: f.Converged,
		Separated: f.Separated}
	if f.ConstantsOnly != nil {
		r.ConstantsOnly = *f.ConstantsOnly
	}
	if f.Decrement != nil {
		r.Decrement = *f.Decrement
	}
	for _, c := range f.Frequencies {
		r.Offered, r.Chosen = append(r.Offered, c.Offered), append(r.Chosen, c.Chosen)
	}
	if f.Covariance != nil && (len(f.Covariance) != n || slices.ContainsFunc(f.Covariance, func(row []float64) bool {
		return len(row) != n
	})) {
		return nil, fmt.Errorf("the covariance is not of %d coefficients", n)
	}
	for i, c := range f.Coefficients {
		if c.Estimate == nil {
			return nil, fmt.Errorf("there is no finite estimate of %s", c.Name)
		}
		r.Names = append(r.Names, c.Name)
		r.Coefficients = append(r.Coefficients, *c.Estimate)
		for j := i; j < n; j++ {
			v := nan
			if f.Covariance != nil {
				v = f.Covariance[i][j]
			}
			r.Covariance.SetSym(i, j, v)
		}
	}
	// The names come from the specification.
	l, err := r.likelihood(&Data{Alternatives: r.Alternatives, Variables: r.Spec.expressions()})
	if err != nil {
		return nil, err
	}
	if !slices.Equal(l.names(), r.Names) {
		return nil, fmt.Errorf("its coefficients are %q, and those of its specification %q", r.Names, l.names())
	}
	return r, nil
}
