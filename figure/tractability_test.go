package figure

import (
	"bytes"
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/paper/tractability"
)

func surveyed() Tractability {
	s := Tractability{}
	s.Setting = tractability.Setting{Items: []int{5, 50, 500}, Size: 2, Sizes: []int{1, 2, 4}, Among: 50, Rounds: 9}
	for _, c := range s.Setting.Cells() {
		s.Points = append(s.Points,
			tractability.Point{Policy: "onl-mnl", Cell: c, Offer: 1e-6 * float64(c.Items), Round: 2e-5},
			tractability.Point{Policy: "log-barrier-mnl", Cell: c, Offer: 1e-5 * float64(c.Items*c.Items), Round: 1e-4},
		)
		if c.Items*c.Size > 150 {
			s.Points[len(s.Points)-1] = tractability.Point{Policy: "log-barrier-mnl", Cell: c, Refused: "12345"}
		}
	}
	return s
}

func svg(t *testing.T, p Picture) string {
	t.Helper()
	var text bytes.Buffer
	fatal.If(t, WriteSVG(&text, p))
	return text.String()
}

// Refused sizes are marked in all four plots, with their number of assortments.
func TestTractabilityShowsWhatIsRefused(t *testing.T) {
	text := svg(t, surveyed())
	expect.Equal(t, strings.Count(text, "refused: 12345"), 4, "plots say what was refused")
	for _, want := range []string{"(a) an offer, median, K = 2", "(d) a round, mean of 9, N = 50", "items N", "10 µs",
		"log-barrier-mnl"} {
		expect.Contains(t, text, want, "the figure")
	}
}

// An unfinished survey, or one with times of 0, is drawn as far as it goes.
func TestTractabilityOfFewPoints(t *testing.T) {
	s := surveyed()
	for n := range s.Points {
		part := s
		part.Points = append([]tractability.Point(nil), s.Points[:n+1]...)
		for k := range part.Points {
			part.Points[k].Offer = 0
		}
		if text := svg(t, part); strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
			t.Errorf("%d points are drawn at no place", n+1)
		}
	}
}

func TestSeconds(t *testing.T) {
	for power, want := range map[int]string{-9: "1 ns", -7: "100 ns", -6: "1 µs", -2: "10 ms", 0: "1 s", 3: "1000 s"} {
		if got := seconds(power); got != want {
			t.Errorf("10^%d seconds are %q, want %q", power, got, want)
		}
	}
}
