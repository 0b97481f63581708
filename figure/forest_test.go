package figure_test

import (
	"math"
	"strings"
	"testing"

	"vitrine/figure"
	"vitrine/internal/expect"
)

// forest returns made-up estimates.
func forest() figure.Forest {
	return figure.Forest{
		Title: "multinomial logit", Subtitle: "estimates and 95 % intervals of 240 choices, robust standard errors",
		Axis: "coefficient",
		Rows: []figure.ForestRow{
			{"constant[bus]", -1.0027, -2.531, 0.5259},
			{"cost", -0.2537, -0.4464, -0.0609},
			{"a variable with a name that is much too long for the place that names have in this picture", 0.5340,
				0.2680, 0.8},
			{"income[train]", 0.2, math.Inf(-1), math.Inf(1)},
			{"separated", math.NaN(), math.NaN(), math.NaN()},
		},
	}
}

// Numbers that are not finite do not appear in the picture, but in words.
func TestForestOfWhatIsNotFinite(t *testing.T) {
	picture := svg(t, forest())
	if strings.Contains(picture, "NaN") || strings.Contains(picture, "Inf") {
		t.Error("the picture has a place that is not a number")
	}
	for _, want := range []string{"no estimate", "0.2, no interval", "−0.2537 [−0.4464, −0.0609]"} {
		expect.Contains(t, picture, want, "the picture")
	}
	for _, rows := range [][]figure.ForestRow{nil, {{"a", math.NaN(), 0, math.NaN()}}, {{"a", 3, 3, 3}}} {
		if picture := svg(t, figure.Forest{Rows: rows}); strings.Contains(picture, "NaN") {
			t.Errorf("rows %v have a place that is not a number", rows)
		}
	}
}
