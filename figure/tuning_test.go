package figure_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"vitrine/figure"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// tuneFile is a tune.json.
const tuneFile = `{"tuning": "t", "title": "T", "policy": "ucb-mnl", "parameters": ["radius", "lambda"], "settings": 2,
"results": [
 {"values": ["0.3", "1"], "seeds": 40, "regret": 5.5, "regret_se": 0.5, "over_winner": 0, "over_winner_se": 0},
 {"stopped": true, "values": ["3", "1"], "seeds": 1, "regret": 9, "regret_se": 0, "over_winner": 2}],
"configured": {"values": ["1", "1/10"], "seeds": 40, "regret": 6, "regret_se": 0.5, "over_winner": 0.5, "over_winner_se": 0.25}}`

func readTuning(t testing.TB, text string) (figure.Tuning, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tune.json")
	fatal.If(t, os.WriteFile(path, []byte(text), 0o644))
	return figure.ReadTuning(path)
}

func TestReadTuning(t *testing.T) {
	got := fatal.Or(readTuning(t, tuneFile))(t)
	want := figure.Tuning{
		Name: "t", Title: "T", Policy: "ucb-mnl", Parameters: []string{"radius", "lambda"},
		Settings: []figure.Setting{
			{Values: []string{"0.3", "1"}, Seeds: 40, Regret: 5.5, SE: 0.5},
			{Stopped: true, Values: []string{"3", "1"}, Seeds: 1, Regret: 9, SE: math.NaN(), Over: 2,
				OverSE: math.NaN()},
		},
		Configured: figure.Setting{Values: []string{"1", "1/10"}, Seeds: 40, Regret: 6, SE: 0.5, Over: 0.5,
			OverSE: 0.25},
	}
	expect.Equal(t, got, want, cmpopts.EquateNaNs())
}

func TestReadTuningErrors(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{tuneFile, "", "tune.json: unexpected end of JSON input; tune again, it continues where it stopped"},
		{`"results"`, `"else"`, "no parameters or no results"},
		{`["radius", "lambda"]`, "[]", "no parameters or no results"},
		{`"3", "1"`, `"3"`, "a setting with 1 values and 1 seeds: want 2 values and seeds from 1"},
		{`"seeds": 40`, `"seeds": 0`, "a setting with 2 values and 0 seeds: want 2 values"},
		{`"configured"`, `"else"`, "a setting with 0 values and 0 seeds: want 2 values"},
		{`"regret": 6`, `"regret": 1e300`, "1e+300 is too large to be drawn"},
		{`"over_winner_se": 0.25`, `"over_winner_se": -1e300`, "-1e+300 is too large to be drawn"},
		{"ucb-mnl", `\u0001`, `"\x01" is not printable`},
		{"1/10", `\u0001`, `"\x01" is not printable`},
	} {
		expect.Part(readTuning(t, strings.Replace(tuneFile, c.old, c.new, 1)))(t, c.want)
	}
	expect.Part(figure.ReadTuning("nowhere/tune.json"))(t, "nowhere/tune.json")
}

// setting returns a setting of three parameters with made-up regrets.
func setting(over float64, seeds int, values ...string) figure.Setting {
	return figure.Setting{Values: values, Stopped: seeds < 40, Seeds: seeds, Regret: 12 + over, SE: 1.3, Over: over,
		OverSE: over / 4}
}

// searches returns tunings that differ as much as tunings can.
func searches() map[string]figure.Tuning {
	heat := figure.Tuning{Name: "heat-map", Title: "Two parameters, and a third", Policy: "p",
		Parameters: []string{"radius", "intercept", "lambda"}, Configured: setting(0.4, 40, "1", "true", "0.1")}
	heat.Configured.Stopped = false
	for _, radius := range []string{"0", "0.3", "1", "3"} {
		for i, lambda := range []string{"10", "1", "0.1"} {
			for _, intercept := range []string{"true", "false"} {
				over := math.Pow(float64(len(heat.Settings)), 1.5)
				heat.Settings = append(heat.Settings, setting(over, 40-15*min(i, 2), radius, intercept, lambda))
			}
		}
	}
	line := figure.Tuning{Name: "one-parameter", Policy: "p", Parameters: []string{"lambda", "intercept"},
		Configured: setting(0.4, 40, "10", "true")}
	for i, lambda := range []string{"3", "10", "1", "30", "0.3"} {
		line.Settings = append(line.Settings, setting(0.4*float64(i), 40-10*i/2, lambda, "true"))
	}
	dots := figure.Tuning{Name: "drawn-at-random", Title: "Thirty draws", Policy: "p",
		Parameters: []string{"lambda", "radius"}, Configured: setting(2.5, 40, "1", "1")}
	for i := range 30 {
		dots.Settings = append(dots.Settings, setting(float64(i)/2, 40-i, fmt.Sprintf("%.4g",
			math.Pow(10, float64(i*7%30)/10-1)), fmt.Sprintf("%.4g", float64(i*11%30)/10)))
	}
	words := figure.Tuning{Name: "one-setting", Policy: "p", Parameters: []string{"utility.hidden"},
		Settings: []figure.Setting{{Values: []string{"[3, 15]"}, Seeds: 1, Regret: 3, SE: math.NaN(),
			OverSE: math.NaN()}}}
	words.Configured = figure.Setting{Values: []string{"[3]/[15]"}, Seeds: 1, Regret: 3, SE: math.NaN(),
		OverSE: math.NaN()}
	all := map[string]figure.Tuning{}
	for _, t := range []figure.Tuning{heat, line, dots, words} {
		all[t.Name] = t
	}
	return all
}

func TestWriteTuningSVGGolden(t *testing.T) {
	for name, search := range searches() {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			fatal.If(t, figure.WriteSVG(&out, search))
			decoder := xml.NewDecoder(bytes.NewReader(out.Bytes()))
			for {
				if _, err := decoder.Token(); err == io.EOF {
					break
				} else {
					fatal.If(t, err)
				}
			}
			if strings.Contains(out.String(), "NaN") {
				t.Error("something has no place")
			}
			path := filepath.Join("testdata", "tuning-"+name+"_golden.svg")
			if *rewrite {
				fatal.If(t, os.WriteFile(path, out.Bytes(), 0o644))
			}
			want := fatal.Or(os.ReadFile(path))(t)
			expect.Equal(t, strings.Split(out.String(), "\n"), strings.Split(string(want), "\n"),
				"the picture has changed; look at it, and run the test with -rewrite where that is meant")
		})
	}
}

// Both pictures are complete, and a missing directory is named.
func TestWriteTuning(t *testing.T) {
	stem := filepath.Join(t.TempDir(), "tune")
	fatal.If(t, figure.Write(stem, searches()["heat-map"]))
	file := fatal.Or(os.Open(stem + ".png"))(t)
	defer file.Close()
	if _, err := png.Decode(file); err != nil {
		t.Error(err)
	}
	expect.Part(figure.Write("nowhere/tune", searches()["one-setting"]))(t, "nowhere/tune.svg")
}

// For any bytes, ReadTuning returns an error or a tuning that can be drawn.
func FuzzReadTuning(f *testing.F) {
	f.Add(tuneFile)
	f.Add(strings.Replace(tuneFile, `"3"`, `"1e-300"`, 1))
	many := figure.Tuning{Name: "t", Policy: "p", Parameters: []string{"radius", "lambda"}}
	for i := range 41 {
		many.Configured = figure.Setting{Values: []string{fmt.Sprint(1e99 * float64(i-20)), fmt.Sprint(1 / float64(i+1))},
			Seeds: 2, Regret: 5, SE: 1, Over: float64(i)}
		many.Settings = append(many.Settings, many.Configured)
	}
	many.Configured.Over, many.Configured.OverSE = -1e100, 1e100
	f.Add(string(fatal.Or(json.Marshal(many))(f)))
	f.Fuzz(func(t *testing.T, file string) {
		got, err := readTuning(t, file)
		if err != nil {
			return
		}
		var out bytes.Buffer
		fatal.If(t, figure.WriteSVG(&out, got))
		if bytes.Contains(out.Bytes(), []byte("=\"NaN")) {
			t.Error("something has no place")
		}
	})
}
