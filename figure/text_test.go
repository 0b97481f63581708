package figure

import (
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
)

func TestPiecesOfALine(t *testing.T) {
	for text, want := range map[string]string{
		"β_T":                  "β T",
		"t_0 and λ as √T":      "t 0  and λ as √T",
		"a, β_t, where β_T=10": "a, β t , where β T =10",
		"onl-mnl-t_0-25":       "onl-mnl-t 0 -25",
		"my_policy":            "my_policy",
		"start_time t_05":      "start_time t_05",
		"plain":                "plain",
	} {
		var got []string
		lowered := 0
		for _, p := range pieces(faces().text, text) {
			got = append(got, p.text)
			if p.drop > 0 {
				lowered++
			}
		}
		if s := strings.Join(got, " "); s != want || lowered != len(got)/2 {
			t.Errorf("%q is set as %q with %d subscripts, want %q", text, s, lowered, want)
		}
	}
}

func TestFit(t *testing.T) {
	f := faces().title
	for _, room := range []float64{400, 120, 60, 20} {
		face, text := fit(f, vg.Length(room), "A title of some length")
		if w := textWidth(face, text); w > vg.Length(room)+1e-6 {
			t.Errorf("in %v points: %q is %v wide", room, text, w)
		}
		if face.Font.Size < minText || face.Font.Size > f.Font.Size {
			t.Errorf("in %v points: size %v", room, face.Font.Size)
		}
		if room >= 120 && strings.Contains(text, "…") {
			t.Errorf("in %v points it is cut to %q", room, text)
		}
	}
}
