package figure_test

import (
	"bytes"
	"encoding/xml"
	"flag"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"vitrine/figure"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/panics"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files in testdata, then read the diff")

// grow returns a curve of T rounds that ends near slope·T, with a standard deviation over the seeds of a third of the
// mean.
func grow(policy string, seeds, rounds int, slope float64) figure.Curve {
	deviation := make([]float64, seeds)
	for k := range deviation {
		deviation[k] = float64(k) - float64(seeds-1)/2
	}
	if seeds > 1 {
		floats.Scale(1/stat.StdDev(deviation, nil), deviation)
	}
	c := figure.Curve{Policy: policy}
	for _, z := range deviation {
		run := make([]float64, rounds)
		for i := range run {
			t := float64(i + 1)
			run[i] = slope * t * (1 - t/float64(3*rounds)) * (1 + z/3)
		}
		c.Regret = append(c.Regret, run)
	}
	return c
}

// four returns panels that differ as much as panels can.
func four() []figure.Panel {
	return []figure.Panel{{
		Name:  "main-gaussian-realizable",
		Title: "Gaussian contexts, realizable",
		Curves: []figure.Curve{
			grow("onl-mnl", 30, 8, 1), grow("ucb-mnl", 30, 8, 5), grow("ucb-mnl-tuned", 30, 8, 1.2),
			grow("uniform", 30, 8, 9), grow("oracle", 30, 8, 0),
		},
	}, {
		Name:   "single-seed",
		Curves: []figure.Curve{grow("onl-mnl", 1, 3, 1), grow("my <own> & only", 1, 3, 2)},
	}, {
		Name:   "one-round",
		Curves: []figure.Curve{grow("greedy", 2, 1, 0.5)},
	}, {
		Name:   "no-regret",
		Curves: []figure.Curve{grow("oracle", 5, 1000, 0)},
	}}
}

// grid arranges the four panels in two rows under heads.
func grid() figure.Composite {
	p := four()
	return figure.Composite{Heads: []string{"Left", "Right"}, Rows: [][]figure.Panel{p[:2], p[2:]}}
}

func TestWriteSVGGolden(t *testing.T) {
	read := fatal.Or(figure.ReadPanel(filepath.Join("testdata", "regret.csv")))(t)
	for _, test := range []struct {
		golden  string
		picture figure.Picture
	}{
		{"panel_golden.svg", read},
		{"composite_golden.svg", grid()},
		{"landscape_golden.svg", landscape()},
		{"theory_golden.svg", study()},
		{"forest_golden.svg", forest()},
	} {
		t.Run(test.golden, func(t *testing.T) {
			got := svg(t, test.picture)
			path := filepath.Join("testdata", test.golden)
			if *rewrite {
				fatal.If(t, os.WriteFile(path, []byte(got), 0o644))
			}
			want := fatal.Or(os.ReadFile(path))(t)
			expect.Equal(t, strings.Split(got, "\n"), strings.Split(string(want), "\n"),
				"the picture has changed; look at it, and run the test with -rewrite where that is meant")
		})
	}
}

func TestWriteSVGIsWellFormed(t *testing.T) {
	panels := four()
	panels[0].Title += "\x01 & <\v>"
	for _, p := range panels {
		var text strings.Builder
		decoder := xml.NewDecoder(strings.NewReader(svg(t, p)))
		for {
			token, err := decoder.Token()
			if err == io.EOF {
				break
			}
			fatal.If(t, err, "panel", p.Name)
			if characters, ok := token.(xml.CharData); ok {
				text.Write(characters)
				text.WriteByte('\n')
			}
		}
		for _, c := range p.Curves {
			expect.Contains(t, text.String(), "\n"+c.Policy+"\n", "panel", p.Name, "does not name", c.Policy)
		}
		if strings.Contains(text.String(), "NaN") {
			t.Errorf("panel %s has no place for something", p.Name)
		}
	}
}

// A policy looks the same, whichever policies are drawn with it.
func TestWriteSVGStylesDoNotDependOnTheOthers(t *testing.T) {
	alone := figure.Panel{Name: "alone", Curves: []figure.Curve{grow("ts-mnl", 1, 2, 1)}}
	among := figure.Panel{Name: "among", Curves: []figure.Curve{grow("x", 1, 2, 2), grow("onl-mnl",
		1, 2, 3), grow("ts-mnl", 1, 2, 1)}}
	const skyBlueDashes = "stroke:#56B4E9;stroke-width:1.6;stroke-dasharray:5,2"
	for _, p := range []figure.Panel{alone, among} {
		if n := strings.Count(svg(t, p), skyBlueDashes); n != 2 {
			t.Errorf("panel %s draws %d lines in the style of ts-mnl, want the curve and its label", p.Name, n)
		}
	}
}

func TestWriteSVGThinsLongCurves(t *testing.T) {
	long := figure.Panel{Name: "long", Curves: []figure.Curve{grow("onl-mnl", 30, 100_000, 0.1)}}
	if size := len(svg(t, long)); size > 30_000 {
		t.Errorf("a curve of 100000 rounds takes %d bytes", size)
	}
}

func TestWritePNGAtPrintResolution(t *testing.T) {
	for _, test := range []struct {
		name     string
		picture  figure.Picture
		min, max int
	}{
		{"one panel", four()[0], 2300, 3000},
		{"two by two", grid(), 1800, 2000},
		{"landscape", landscape(), 1800, 2000},
	} {
		var picture bytes.Buffer
		fatal.If(t, figure.WritePNG(&picture, test.picture))
		size := fatal.Or(png.DecodeConfig(&picture))(t)
		if size.Width < test.min || size.Width > test.max {
			t.Errorf("%s is %d dots wide, want %d to %d", test.name, size.Width, test.min, test.max)
		}
	}
}

// Every kind of picture is drawn in every format.
func TestFormats(t *testing.T) {
	for name, picture := range map[string]figure.Picture{
		"panel": four()[0], "composite": grid(), "landscape": landscape(), "theory": study(),
		"tuning": searches()["heat-map"],
	} {
		for _, f := range figure.Formats() {
			expect.Error(t, f.Write(io.Discard, picture), nil, name, "as", f.Name)
		}
	}
}

func TestWriteLeavesBothPicturesAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	for range 2 { // overwriting the first time
		fatal.If(t, figure.Write(filepath.Join(dir, "regret"), four()[2]))
	}
	entries := fatal.Or(os.ReadDir(dir))(t)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	expect.Equal(t, names, []string{"regret.png", "regret.svg"})
	written := fatal.Or(os.ReadFile(filepath.Join(dir, "regret.svg")))(t)
	if want := svg(t, four()[2]); string(written) != want {
		t.Error("regret.svg is not what WriteSVG writes")
	}
}

func TestWriteNamesThePathThatItCannotWrite(t *testing.T) {
	stem := filepath.Join(t.TempDir(), "missing", "regret")
	expect.Part(figure.Write(stem, four()[2]))(t, stem+".svg", stem)
}

func TestWriteSVGPanicsWithNothingToDraw(t *testing.T) {
	for _, p := range []figure.Picture{
		figure.Composite{},
		figure.Panel{Name: "no curves"},
		figure.Panel{Name: "no rounds", Curves: []figure.Curve{{Policy: "greedy"}}},
		figure.Panel{Name: "twice", Curves: []figure.Curve{grow("greedy", 1, 3, 1), grow("greedy", 1, 3, 1)}},
		figure.Panel{Name: "uneven", Curves: []figure.Curve{grow("greedy", 1, 3, 1), grow("uniform", 1, 4, 1)}},
		figure.Composite{Rows: [][]figure.Panel{{four()[0], {Name: "no curves"}}}},
		figure.Panel{Name: "NaN", Curves: []figure.Curve{{Policy: "greedy", Regret: [][]float64{{1, math.NaN()}}}}},
		figure.Panel{Name: "infinite", Curves: []figure.Curve{{Policy: "greedy", Regret: [][]float64{{math.Inf(1)}}}}},
	} {
		if panics.Value(func() { svg(t, p) }) == nil {
			t.Errorf("%v: no panic", p)
		}
	}
}

func svg(t *testing.T, p figure.Picture) string {
	t.Helper()
	var text strings.Builder
	fatal.If(t, figure.WriteSVG(&text, p))
	return text.String()
}
