package config

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/gonum/mat"

	"vitrine/choice"
	"vitrine/env"
)

// choicesSource describes the data for the pool choices.
const choicesSource = "your own: a folder with spec.toml, as vitrine fit takes it, or model.json, as it writes " +
	"it, and the table choices.csv or choices.parquet, plain, .gz or .zst"

// specs are the models for public tables of choices.
//
//go:embed tables/*.toml
var specs embed.FS

// table is a public table of choices.
type table struct {
	file, spec, about string
	raw               bool // whether features keep the table's units
}

var (
	// Cameras in a conjoint study (Allenby, Brazell, Howell and Rossi 2014).
	camera     = table{"camera.csv", "camera.toml", "camera of the R package bayesm", true}
	modeCanada = table{"ModeCanada.csv", "modecanada.toml", "ModeCanada of the R package mlogit", false}
	heating    = table{"Heating.csv", "heating.toml", "Heating of the R package mlogit", false}
	fishing    = table{"Fishing.csv", "fishing.toml", "Fishing of the R package mlogit", false}
)

func (t table) Source() string {
	return fmt.Sprintf("the data set %s, as a file %s with its column names", t.about, t.file)
}

// load makes a pool from the table at path, or in the directory there.
func (t table) load(ctx context.Context, path string, l Loading) (*env.Pool, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, t.file)
	}
	text, err := specs.ReadFile("tables/" + t.spec)
	if err != nil {
		return nil, err
	}
	spec, err := choice.ReadSpec(t.spec, text)
	if err != nil {
		return nil, err
	}
	return poolOf(ctx, path, spec, nil, t.raw, l)
}

// loadChoices makes a pool from the user's own table of choices.
func loadChoices(ctx context.Context, path string, l Loading) (*env.Pool, error) {
	model, err := choice.ReadModel(filepath.Join(path, "model.json"))
	var spec *choice.Spec
	switch {
	case err == nil:
		spec = model.Spec
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	default:
		model = nil
		if spec, err = choice.ReadSpecFile(filepath.Join(path, "spec.toml")); err != nil {
			return nil, err
		}
	}
	name, err := choicesTable(path)
	if err != nil {
		return nil, err
	}
	return poolOf(ctx, name, spec, model, false, l)
}

// poolOf makes a pool from the table at path. Its items are the distinct alternatives, and its sets are the choices. An
// item's features are the coefficients' variables, divided by their root mean squares unless raw, and a network's
// inputs, standardised. The utilities come from the model, which is fitted to the choices if it is nil. A world has an
// outside option of utility 0 whether the table has one or not.
func poolOf(ctx context.Context, path string, spec *choice.Spec, model *choice.Result, raw bool,
	l Loading) (*env.Pool, error) {
	read := 0
	data, err := choice.Load(ctx, path, spec, func(done, total int64) {
		if now := int(100 * done / max(total, 1)); now > read {
			read = now
			l.Progress("reading", now, 100)
		}
	})
	if err != nil {
		return nil, err
	}
	fitted := model == nil
	if fitted {
		if model, err = choice.Fit(ctx, spec, data, choice.Options{}); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	if !model.Converged {
		return nil, fmt.Errorf("%s: the model has no finite estimate: vitrine fit says more", path)
	}
	items, err := model.Items(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	family, params, err := model.Utility()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	pool := &env.Pool{Features: mat.NewDense(len(items.X), family.NumFeatures(), nil), Model: family,
		Params: append([]float64(nil), params...), Sets: items.Sets}
	for i, row := range items.X {
		pool.Features.SetRow(i, row)
	}
	for j := range model.Listed() {
		if raw {
			break
		}
		scale := rootMeanSquare(mat.Col(nil, j, pool.Features))
		pool.Params[j] *= scale
		for i := range items.X {
			pool.Features.Set(i, j, pool.Features.At(i, j)/scale)
		}
	}
	how := "not fitted again"
	if fitted {
		how = fmt.Sprintf("log-likelihood %.6f", model.LogLikelihood)
	}
	l.Note(fmt.Sprintf("%d choices, %d distinct items of %d features; %s",
		data.Choices, len(items.X), family.NumFeatures(), how))
	return pool, nil
}

// rootMeanSquare returns a feature's unit, or 1 for a zero feature.
func rootMeanSquare(v []float64) float64 {
	largest := 0.0
	for _, x := range v {
		largest = max(largest, math.Abs(x))
	}
	if largest == 0 {
		return 1
	}
	sum := 0.0
	for _, x := range v {
		sum += x / largest * x / largest
	}
	return largest * math.Sqrt(sum/float64(len(v)))
}

// choicesTable returns the path of the only table choices.* in a directory.
func choicesTable(path string) (string, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return "", err
	}
	var found []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "choices.") {
			found = append(found, filepath.Join(path, e.Name()))
		}
	}
	switch len(found) {
	case 0:
		return "", &os.PathError{Op: "open", Path: filepath.Join(path, "choices.csv"), Err: os.ErrNotExist}
	case 1:
		return found[0], nil
	}
	return "", errors.New("there are several tables: " + strings.Join(found, ", "))
}
