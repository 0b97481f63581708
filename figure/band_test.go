package figure

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"vitrine/internal/expect"
)

// 1, 2, 3, 4, 10 have the mean 4 and the squared deviations 9 + 4 + 1 + 0 + 36 = 50, so the variance is 12.5 and the
// squared standard error 2.5. The 97.5 % point of Student's t with 4 degrees of freedom is 2.776445 in tables. The 10 %
// quantile lies 0.4 of the way from 1 to 2, the 90 % quantile 0.6 of the way from 4 to 10.
func TestBandOf(t *testing.T) {
	five := []float64{10, 2, 1, 4, 3}
	for _, test := range []struct {
		band   Band
		values []float64
		want   interval
	}{
		{SE, five, interval{4, 4 - 2*math.Sqrt(2.5), 4 + 2*math.Sqrt(2.5)}},
		{SD, five, interval{4, 4 - math.Sqrt(12.5), 4 + math.Sqrt(12.5)}},
		{CI, five, interval{4, 4 - 2.776445*math.Sqrt(2.5), 4 + 2.776445*math.Sqrt(2.5)}},
		{Quantiles, five, interval{4, 1.4, 7.6}},
		{NoBand, five, interval{4, 4, 4}},
		{Quantiles, []float64{1, 2}, interval{1.5, 1.1, 1.9}},
		{SE, []float64{3}, interval{3, 3, 3}},
		{CI, []float64{3}, interval{3, 3, 3}},
		{Quantiles, []float64{3}, interval{3, 3, 3}},
	} {
		expect.Equal(t, test.band.of(test.values), test.want, bands[test.band], "of", test.values,
			cmp.AllowUnexported(interval{}), cmpopts.EquateApprox(0, 1e-6))
	}
	expect.List(t, five, []float64{10, 2, 1, 4, 3}, "the values were changed")
}

func TestBandNote(t *testing.T) {
	for _, test := range []struct {
		band   Band
		at     interval
		seeds  int
		format string
		want   string
	}{
		{SE, interval{5, 4, 6}, 30, "%.*f", "5.0 ± 1.0"},
		{SE, interval{-5, -6, -4}, 30, "%+.*f", "−5.0 ± 1.0"},
		{SD, interval{5, 4, 6}, 30, "%+.*f", "+5.0 ± 1.0"},
		{Quantiles, interval{-1, -2, 3}, 30, "%+.*f", "−1.0 (−2.0 to +3.0)"},
		{NoBand, interval{5, 5, 5}, 30, "%.*f", "5.0"},
		{SE, interval{5, 5, 5}, 1, "%.*f", "5.0"},
		{SE, interval{0, 0, 0}, 30, "%+.*f", "0"},
	} {
		expect.Equal(t, test.band.note(test.at, test.seeds, test.format, 1), test.want, bands[test.band], "of", test.at)
	}
}

func TestParseBand(t *testing.T) {
	for _, name := range Bands() {
		b, ok := ParseBand(name)
		if !ok || bands[b] != name {
			t.Errorf("%s is read as %v, %v", name, b, ok)
		}
	}
	if _, ok := ParseBand("iqr"); ok {
		t.Error("iqr is a band")
	}
}

// The spread is taken over the differences rather than the regrets.
func TestMinusIsPaired(t *testing.T) {
	p := Panel{Name: "p", Title: "P", Curves: []Curve{
		{"a", [][]float64{{1, 10}, {2, 100}}},
		{"b", [][]float64{{2, 12}, {2, 103}}},
	}}
	got, ok := p.Minus("a")
	want := Panel{Name: "p", Title: "P", Against: "a", Curves: []Curve{
		{"a", [][]float64{{0, 0}, {0, 0}}},
		{"b", [][]float64{{1, 2}, {0, 3}}},
	}}
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Errorf("ok %v, -want +got:\n%s", ok, diff)
	}
	if _, ok := p.Minus("c"); ok {
		t.Error("a policy that is not there is subtracted")
	}
}
