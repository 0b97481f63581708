package figure_test

import (
	"bytes"
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

const tuningHeader = "tuning,policy,setting,outcome,radius,lambda,rung,seeds,regret,regret_se,over_winner,over_winner_se,over_configured,over_configured_se,panel-a\n"

func TestDecodeTuning(t *testing.T) {
	got := fatal.Or(figure.DecodeTuning(strings.NewReader(tuningHeader+
		"t,ucb-mnl,2,winner,0.3,1,2,40,5.5,0.5,0,0,-0.5,0.25,5.5\n"+
		"t,ucb-mnl,1,stopped,3,1,1,1,9,,2,,1,,9\n"+
		"t,ucb-mnl,,configured,1,1/10,2,40,6,0.5,0.5,0.25,0,0,6\n"), "tune.csv"))(t)
	want := figure.Tuning{
		Name: "t", Policy: "ucb-mnl", Parameters: []string{"radius", "lambda"},
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

func TestDecodeTuningErrors(t *testing.T) {
	const (
		winner     = "t,p,1,winner,1,1,1,2,5,1,0,0,0,0,5\n"
		configured = "t,p,,configured,1,1,1,2,5,1,0,0,0,0,5\n"
		again      = "; tune again, it continues where it stopped"
		cut        = "out.csv: truncated: it does not end with the row of the configured setting" + again
	)
	for _, test := range []struct{ name, file, want string }{
		{"an empty file", "", cut},
		{"only a header", tuningHeader, cut},
		{"no configured row", tuningHeader + winner, cut},
		{"a last line without end", strings.TrimSuffix(tuningHeader+winner+configured, "\n"), cut},
		{"another header",
			"a,b\n", `out.csv:1: the header is "a,b", want "tuning,policy,setting,outcome", at least one parameter, and "rung,seeds,`},
		{"no parameter", strings.Replace(tuningHeader, "radius,lambda,", "", 1), "out.csv:1: the header is "},
		{"a short row", tuningHeader + "t,p\n", "out.csv:2: row has 2 fields, want the 15 of the header" + again},
		{"a broken quote", tuningHeader + "t,\"p\n", "out.csv:2: extraneous or missing \" in quoted-field" + again},
		{"a row after the last", tuningHeader + winner + configured + winner,
			"out.csv:4: a row follows that of the configured setting" + again},
		{"two tunings", tuningHeader + winner + strings.Replace(configured, "t,", "u,", 1), "out.csv:3: "},
		{"no winner first", tuningHeader + strings.Replace(winner, "winner", "finished", 1),
			`out.csv:2: outcome "finished": the first row must be the winner's, and no other` + again},
		{"two winners", tuningHeader + winner + winner, `out.csv:3: outcome "winner": the first row must be`},
		{"an outcome of its own", tuningHeader + winner + strings.Replace(winner, "winner", "lost", 1),
			`out.csv:3: outcome "lost": must be winner, finished, stopped or configured` + again},
		{"no seeds", tuningHeader + strings.Replace(winner, ",2,5", ",0,5", 1),
			`out.csv:2: seeds "0" is not a whole number from 1` + again},
		{"no number", tuningHeader + strings.Replace(winner, ",2,5", ",2,much", 1),
			`out.csv:2: regret "much" is not a finite number` + again},
		{"infinity", tuningHeader + strings.Replace(winner, ",2,5", ",2,Inf", 1),
			`out.csv:2: regret "Inf" is not a finite number` + again},
		{"an empty mean", tuningHeader + strings.Replace(winner, ",2,5", ",2,", 1),
			`out.csv:2: regret "" is not a finite number` + again},
		{"a value that cannot be printed", tuningHeader + strings.Replace(winner, "winner,1", "winner,\x01", 1),
			`out.csv:2: value "\x01" is not printable` + again},
	} {
		t.Run(test.name, func(t *testing.T) {
			expect.Prefix(figure.DecodeTuning(strings.NewReader(test.file), "out.csv"))(t, test.want)
		})
	}
	expect.Part(figure.ReadTuning("nowhere/tune.csv"))(t, "nowhere/tune.csv")
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

// For any bytes, DecodeTuning returns an error or a tuning that can be drawn.
func FuzzDecodeTuning(f *testing.F) {
	f.Add(tuningHeader + "t,p,1,winner,1,1,1,2,5,1,0,0,0,0,5\n" + "t,p,2,stopped,1e-300,x,1,1,5,,7,,0,0,5\n" +
		"t,p,,configured,1/2,1,1,2,5,1,0,0,0,0,5\n")
	many := tuningHeader
	for i := range 40 {
		outcome := map[bool]string{true: "winner", false: "finished"}[i == 0]
		many += fmt.Sprintf("t,p,%d,%s,%g,%g,1,2,5,1,%d,0,0,0,5\n", i+1, outcome, 1e99*float64(i-20), 1/float64(i+1), i)
	}
	f.Add(many + "t,p,,configured,1,1e100,1,2,5,1,-1e100,1e100,0,0,5\n")
	f.Fuzz(func(t *testing.T, file string) {
		got, err := figure.DecodeTuning(strings.NewReader(file), "tune.csv")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "tune.csv") {
				t.Errorf("error %q does not begin with the file's name", err)
			}
			return
		}
		var out bytes.Buffer
		fatal.If(t, figure.WriteSVG(&out, got))
		if bytes.Contains(out.Bytes(), []byte("=\"NaN")) {
			t.Error("something has no place")
		}
	})
}
