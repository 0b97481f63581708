package choice

import (
	"math"
	"slices"
	"testing"

	"vitrine/internal/fatal"
	"vitrine/internal/table"
)

// A condition in a sum or a product counts as 1 or 0, on either side.
func TestConditionsInProducts(t *testing.T) {
	f := &frame{names: []string{"cost", "pass", "mode"}, n: 2,
		columns: []table.Column{{Number: []float64{6, 8}}, {Number: []float64{0, 1}}, {Text: []string{"car", "bus"}}}}
	for source, want := range map[string][]float64{
		"cost * (pass == 0)":                 {6, 0},
		"(mode == 'car') * cost / 2":         {3, 0},
		"cost * (pass == 0) / 100 + 1":       {1.06, 1},
		"cost - (pass == 1 or mode == 'x')":  {6, 7},
		"1 + not (cost > 7)":                 {2, 1},
		"2 ** (cost > 7)":                    {1, 2},
		"-cost * (mode in ['bus', 'train'])": {0, -8},
		"(pass == 1) + (cost > 1)":           {1, 2},
	} {
		e, err := parseExpression(source, f.names, nil)
		fatal.If(t, err)
		have, _, err := e.numbers(f)
		if err != nil || !slices.EqualFunc(have, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }) {
			t.Errorf("%s is %v, %v, want %v", source, have, err, want)
		}
	}
}

// A column that is empty in the first batches is compared with text, and may hold text or numbers later.
func TestBlankColumns(t *testing.T) {
	blank := table.Column{Number: []float64{nan, nan}}
	f := &frame{names: []string{"note", "cost"}, n: 2, columns: []table.Column{blank, {Number: []float64{1, 2}}}}
	e := fatal.Or(parseExpression("note == 'x' or cost > 1", f.names, nil))(t)
	for _, batch := range []struct {
		note table.Column
		want []float64
	}{{blank, []float64{0, 1}}, {table.Column{Text: []string{"x", "y"}}, []float64{1, 1}}, {blank, []float64{0, 1}}} {
		f.columns[0] = batch.note
		if have, _, err := e.numbers(f); err != nil || !slices.Equal(have, batch.want) {
			t.Errorf("%v is %v, %v, want %v", batch.note, have, err, batch.want)
		}
	}
	f.columns[0] = table.Column{Number: []float64{3, nan}}
	if _, _, err := e.numbers(f); err == nil || e.program != nil {
		t.Errorf("a number is compared with text: %v", err)
	}
}
