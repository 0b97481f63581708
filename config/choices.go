package config

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/choice"
	"vitrine/env"
	"vitrine/utility"
)

// choicesSource says what the pool choices is made from.
const choicesSource = "your own: a folder with spec.toml, as vitrine fit takes it, and the table choices.csv or choices.parquet, plain, .gz or .zst"

// loadChoices makes a pool of a table of choices: its items are the distinct alternatives, each with
// the variables of the coefficients as features, and their utility is the multinomial logit model
// that is fitted to the choices. A world has an outside option of utility 0 whether the table has one
// or not.
func loadChoices(ctx context.Context, path string, l Loading) (*env.Pool, error) {
	spec, err := choice.ReadSpecFile(filepath.Join(path, "spec.toml"))
	if err != nil {
		return nil, err
	}
	table, err := choicesTable(path)
	if err != nil {
		return nil, err
	}
	read := 0
	data, err := choice.Load(ctx, table, spec, func(done, total int64) {
		if now := int(100 * done / max(total, 1)); now > read {
			read = now
			l.Progress("reading", now, 100)
		}
	})
	if err != nil {
		return nil, err
	}
	r, err := choice.Fit(ctx, spec, data, choice.Options{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", table, err)
	}
	if !r.Converged {
		return nil, fmt.Errorf("%s: the model has no finite estimate: vitrine fit says more", table)
	}
	items, err := r.Items(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", table, err)
	}
	x := mat.NewDense(len(items), len(r.Names), nil)
	for i, row := range items {
		for j, v := range row {
			if math.Abs(v) > vitrine.MaxFeature {
				return nil, fmt.Errorf("%s: %s is %v, beyond ±%v: divide the variable in spec.toml", table, r.Names[j], v, vitrine.MaxFeature)
			}
		}
		x.SetRow(i, row)
	}
	l.Note(fmt.Sprintf("%d choices, %d distinct items of %d features; log-likelihood %.6f", data.Choices, len(items), len(r.Names), r.LogLikelihood))
	return &env.Pool{Features: x, Model: utility.NewLinear(len(r.Names), false), Params: r.Coefficients}, nil
}

// choicesTable returns the path of the one table choices.* in a folder.
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
