package figure

import (
	"fmt"
	"io"
	"math"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgsvg"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/panics"
	"vitrine/paper/experiments"
)

func TestPaperName(t *testing.T) {
	for label, want := range map[string]string{
		"onl-mnl": "ONL-MNL", "ucb-mnl-tuned": "UCB-MNL (tuned)", "ofu-mnl-plus": "OFU-MNL+",
		"ofu-mnl-plus-tuned": "OFU-MNL+ (tuned)", "eps-greedy-mnl": "ε-greedy-MNL", "feel-good-ts": "feel-good-TS",
		"greedy": "greedy", "my_policy": "my_policy", "plus": "plus",
	} {
		expect.Equal(t, PaperName(label), want, label, "is")
	}
}

// contenders returns the labels in an embedded experiment's file.
func contenders(t *testing.T, name string) (labels []string) {
	t.Helper()
	text := fatal.Or(experiments.Read(name))(t)
	var file struct {
		Policy []struct{ Name, Label string }
	}
	fatal.If(t, toml.Unmarshal(text, &file))
	for _, p := range file.Policy {
		if p.Label == "" {
			p.Label = p.Name
		}
		labels = append(labels, p.Label)
	}
	return labels
}

// No two policies in an experiment or a figure are drawn or printed alike, whichever of its policies are played.
func TestPoliciesOfAFigureAreToldApart(t *testing.T) {
	pictures := map[string][]string{}
	for _, name := range experiments.Names() {
		pictures[name] = []string{name}
	}
	for _, f := range experiments.Figures(experiments.Names()) {
		for _, row := range f.Rows {
			for _, p := range row {
				pictures["the figure "+f.Name] = append(pictures["the figure "+f.Name], p.Experiment)
			}
		}
	}
	for picture, names := range pictures {
		var panels []Panel
		for _, name := range names {
			panels = append(panels, panelOf(contenders(t, name)...))
		}
		if len(panels[0].Curves) == 0 {
			t.Fatalf("%s has no policies", picture)
		}
		drawn, printed := map[string]string{}, map[string]string{}
		for policy, s := range styles(policies(panels...)...) {
			look := fmt.Sprint(s)
			if other, ok := drawn[look]; ok {
				t.Errorf("%s: %s and %s have one colour and dash: give one of them a line in style.go",
					picture, policy, other)
			}
			drawn[look] = policy
			name := PaperName(policy)
			if other, ok := printed[name]; ok {
				t.Errorf("%s: %s and %s are both printed as %s", picture, policy, other, name)
			}
			printed[name] = policy
		}
	}
}

// spy is a canvas that records the places of horizontal lines of text.
type spy struct {
	*vgsvg.Canvas
	turned int
	lines  []struct {
		vg.Rectangle
		text string
	}
}

func (s *spy) Push() { s.Canvas.Push(); s.turned++ }
func (s *spy) Pop()  { s.Canvas.Pop(); s.turned-- }

func (s *spy) FillString(f font.Face, pt vg.Point, text string) {
	s.Canvas.FillString(f, pt, text)
	if s.turned == 0 {
		box := vg.Rectangle{Min: pt, Max: vg.Point{X: pt.X + textWidth(f, text), Y: pt.Y + ascent*f.Font.Size}}
		s.lines = append(s.lines, struct {
			vg.Rectangle
			text string
		}{box, text})
	}
}

// steep returns a panel of policies with regrets as in the paper: some end close together, one far above.
func steep(title string, policies ...string) Panel {
	p := Panel{Name: "p", Title: title}
	for j, policy := range policies {
		c := Curve{Policy: policy}
		for k := range 5 {
			run := make([]float64, 1000)
			for i := range run {
				run[i] = float64((i+1)*(k+3)) * (0.01 + 0.002*float64(j*j))
			}
			c.Regret = append(c.Regret, run)
		}
		p.Curves = append(p.Curves, c)
	}
	return p
}

var nine = []string{"onl-mnl", "bma-mnl", "ucb-mnl-tuned", "ts-mnl-tuned", "ofu-mnl-plus-tuned", "eps-greedy-mnl",
	"log-barrier-online", "greedy", "uniform"}

// A picture has exactly the requested width. Its lines of text stay inside and never overlap.
func TestLookWidth(t *testing.T) {
	one := steep("Realizability (Gaussian)", nine...)
	long := steep("A title that is longer than two inches are, and than three and more",
		"a-policy-with-quite-a-long-label-which-is-legal", "onl-mnl")
	two := Composite{Rows: [][]Panel{{one, one}, {one, one}}, Title: "Four panels"}
	headed := Composite{Rows: [][]Panel{{one, one, one}, {one, one, one}}, Heads: []string{"Left", "Middle", "Right"}}
	for _, inches := range []vg.Length{0, 2, 3.3, 5.5, 7, 12} {
		for _, band := range []Band{SE, Quantiles} {
			look := Look{Width: inches * vg.Inch, Band: band, Log: band == SE, Paper: band == SE}
			for name, picture := range map[string]Picture{
				"a panel": one.With(look), "long names": long.With(look), "two columns": two.With(look),
				"three columns": headed.With(look),
			} {
				page := picture.compose()
				if inches > 0 && (page.width < look.Width-1e-6 || page.width > look.Width+1e-6) {
					t.Errorf("%s of %v in is %v in wide", name, inches, page.width/vg.Inch)
				}
				canvas := &spy{Canvas: vgsvg.New(page.width, page.height)}
				page.paint(canvas)
				for i, a := range canvas.lines {
					if a.Min.X < 0 || a.Max.X > page.width || a.Min.Y < 0 || a.Max.Y > page.height {
						t.Errorf("%s of %v in: %q leaves the picture", name, inches, a.text)
					}
					for _, b := range canvas.lines[:i] {
						if a.Min.X < b.Max.X && b.Min.X < a.Max.X && a.Min.Y < b.Max.Y && b.Min.Y < a.Max.Y {
							t.Errorf("%s of %v in: %q meets %q", name, inches, a.text, b.text)
						}
					}
				}
			}
		}
	}
}

func TestLogScalePanics(t *testing.T) {
	p := panelOf("onl-mnl", "oracle")
	p.Curves[0].Regret, p.Curves[1].Regret = [][]float64{{0, 1}}, [][]float64{{0, 1e-9}}
	if policy, ok := p.Zero(); !ok || policy != "oracle" {
		t.Errorf("regret 0 is that of %q, %v", policy, ok)
	}
	positive := Panel{Name: "p", Curves: p.Curves[:1]}
	if policy, ok := positive.Zero(); ok {
		t.Errorf("%s has regret 0", policy)
	}
	differences, _ := positive.Minus("onl-mnl")
	for _, bad := range []Panel{p, differences} {
		if panics.Value(func() { bad.With(Look{Log: true}).compose() }) == nil {
			t.Errorf("%v has a logarithm", bad)
		}
	}
	if err := WriteSVG(io.Discard, positive.With(Look{Log: true})); err != nil { // 0 in round 1 is fine
		t.Error(err)
	}
}

// Where revenues are small, so are regrets that count, and their numbers have more decimals.
func TestSmallRegrets(t *testing.T) {
	p := panelOf("ucb-mnl", "uniform")
	p.Curves[0].Regret, p.Curves[1].Regret = [][]float64{{1e-7, 4e-7}}, [][]float64{{8e-5, 1.6e-4}}
	if policy, ok := p.Zero(); ok {
		t.Errorf("%s has regret 0", policy)
	}
	plot := newRegretPlot(p, Look{Log: true})
	expect.Equal(t, plot.highest(), 1.6e-4)
	expect.Equal(t, decimals(plot.highest()), 5)
	if s := plot.span(); s.low > math.Log10(1e-7) {
		t.Errorf("the axis begins at 10^%v", s.low)
	}
	p.Curves[0].Regret, p.Curves[1].Regret = [][]float64{{1e-14, 1e-14}}, [][]float64{{0, 1e-13}}
	expect.Equal(t, newRegretPlot(p, Look{}).highest(), 1, "of rounding errors")
}
