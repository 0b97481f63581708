package figure_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"vitrine/figure"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

const header = "experiment,policy,seed,round,regret\n"

func TestReadPanel(t *testing.T) {
	got := fatal.Or(figure.ReadPanel(filepath.Join("testdata", "regret.csv")))(t)
	want := figure.Panel{
		Name: "three-seeds",
		Curves: []figure.Curve{
			{Policy: "onl-mnl", Regret: [][]float64{{0.5, 0.75, 1}, {0.5, 1, 2}, {0.5, 1.25, 4}}},
			{Policy: "uniform", Regret: [][]float64{{1, 2, 3}, {2, 4, 6}, {3, 6, 9}}},
			{Policy: "oracle", Regret: [][]float64{{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}},
		},
	}
	expect.Equal(t, got, want)
}

func TestReadPanelNamesAMissingFile(t *testing.T) {
	expect.Part(figure.ReadPanel("nowhere/regret.csv"))(t, "nowhere/regret.csv")
}

func TestDecodeASingleSeed(t *testing.T) {
	got := fatal.Or(figure.Decode(strings.NewReader(header+"e,greedy,7,1,0.25\n"), "regret.csv"))(t)
	want := figure.Panel{Name: "e", Curves: []figure.Curve{{Policy: "greedy", Regret: [][]float64{{0.25}}}}}
	expect.Equal(t, got, want)
}

func TestDecodeTakesRoundingBelowZeroAsZero(t *testing.T) {
	got := fatal.Or(figure.Decode(strings.NewReader(header+"e,oracle,0,1,-1e-16\n"), "regret.csv"))(t)
	expect.Equal(t, got.Curves[0].Regret[0][0], 0, "regret -1e-16 was read as")
}

func TestDecodeErrors(t *testing.T) {
	const (
		again  = "; run the experiment again, it continues where it stopped"
		remove = "; delete the file and run the experiment again"
	)
	for _, test := range []struct{ name, file, want string }{
		{
			"an empty file", "",
			"out.csv: truncated: no rounds" + again,
		}, {
			"only a header", header,
			"out.csv: truncated: no rounds" + again,
		}, {
			"another header", "policy,seed\n",
			`out.csv:1: the header is "policy,seed", want "experiment,policy,seed,round,regret"` + remove,
		}, {
			"a short row", header + "e,p,0,1,1\ne,p,0\n",
			`out.csv:3: row has 3 fields, want the 5 of "experiment,policy,seed,round,regret"` + remove,
		}, {
			"a long row", header + "e,p,0,1,1,1\n",
			`out.csv:2: row has 6 fields, want the 5 of "experiment,policy,seed,round,regret"` + remove,
		}, {
			"a broken quote", header + "e,p,0,1,1\ne,\"p,0,2,1\n",
			`out.csv:3: extraneous or missing " in quoted-field` + remove,
		}, {
			"a seed that is no number", header + "e,p,one,1,1\n",
			`out.csv:2: seed "one" is not a whole number from 0` + remove,
		}, {
			"a round that is no number", header + "e,p,0,1.5,1\n",
			`out.csv:2: round "1.5" is not a whole number` + remove,
		}, {
			"a regret that is no number", header + "e,p,0,1,much\n",
			`out.csv:2: regret "much" is not a finite number from 0` + remove,
		}, {
			"NaN", header + "e,p,0,1,NaN\n",
			`out.csv:2: regret "NaN" is not a finite number from 0` + remove,
		}, {
			"infinity", header + "e,p,0,1,+Inf\n",
			`out.csv:2: regret "+Inf" is not a finite number from 0` + remove,
		}, {
			"a negative regret", header + "e,p,0,1,-3\n",
			`out.csv:2: regret "-3" is not a finite number from 0` + remove,
		}, {
			"no policy", header + "e,,0,1,1\n",
			`out.csv:2: policy "" is not a printable name` + remove,
		}, {
			"a control character", header + "e\x00,p,0,1,1\n",
			`out.csv:2: experiment "e\x00" is not a printable name` + remove,
		}, {
			"two experiments", header + "e,p,0,1,1\nf,p,0,2,1\n",
			`out.csv:3: experiment "f" follows rows of "e": a file holds one experiment` + remove,
		}, {
			"a first round other than 1", header + "e,p,0,0,1\n",
			"out.csv:2: round 0 of seed 0 of policy p follows round 0: rounds must count 1, 2, 3, …" + remove,
		}, {
			"a round left out", header + "e,p,0,1,1\ne,p,0,3,1\n",
			"out.csv:3: round 3 of seed 0 of policy p follows round 1: rounds must count 1, 2, 3, …" + remove,
		}, {
			"a policy in two places", header + "e,p,0,1,1\ne,q,0,1,1\ne,p,1,1,1\n",
			"out.csv:4: policy p comes back after q: rows must be grouped by policy, then by seed" + remove,
		}, {
			"a seed in two places", header + "e,p,0,1,1\ne,p,1,1,1\ne,p,0,2,1\n",
			"out.csv:4: seed 0 of policy p comes back after seed 1: rows must be grouped by policy, then by seed" +
				remove,
		}, {
			"the last seed ends early", header + "e,p,0,1,1\ne,p,0,2,1\ne,p,4,1,1\n",
			"out.csv:4: truncated: seed 4 of policy p ends at round 1 of 2" + again,
		}, {
			"the first seed ends early", header + "e,p,0,1,1\ne,p,1,1,1\ne,p,1,2,1\n",
			"out.csv:2: truncated: seed 0 of policy p ends at round 1 of 2" + again,
		}, {
			"a seed is missing", header + "e,p,0,1,1\ne,p,1,1,1\ne,q,0,1,1\n",
			"out.csv: truncated: policy q has other seeds than policy p" + again,
		}, {
			"a row cut short", header + "e,p,0,1,1\ne,p,1",
			"out.csv:3: truncated: the last line is not complete" + again,
		}, {
			"a number cut short", header + "e,p,0,1,1\ne,p,1,1,1",
			"out.csv:3: truncated: the last line is not complete" + again,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			expect.Message(figure.Decode(strings.NewReader(test.file), "out.csv"))(t, test.want)
		})
	}
}

func TestDecodePassesReadErrorsOn(t *testing.T) {
	unplugged := errors.New("disk unplugged")
	_, err := figure.Decode(iotest.ErrReader(unplugged), "out.csv")
	if !errors.Is(err, unplugged) || !strings.HasPrefix(err.Error(), "out.csv: ") {
		t.Errorf("error %v, want the reader's behind the name of the file", err)
	}
}

// For any bytes, Decode returns an error or curves that can be drawn.
func FuzzDecode(f *testing.F) {
	whole := fatal.Or(os.ReadFile(filepath.Join("testdata", "regret.csv")))(f)
	f.Add(string(whole))
	f.Add(string(whole[:len(whole)/2]))
	f.Add(header + "e,\"p,\n\",18446744073709551615,1,1e99\r\n")
	f.Fuzz(func(t *testing.T, file string) {
		p, err := figure.Decode(strings.NewReader(file), "regret.csv")
		if err != nil {
			return
		}
		if len(p.Curves) == 0 {
			t.Fatal("a panel without curves and without an error")
		}
		for _, c := range p.Curves {
			if len(c.Regret) == 0 || len(c.Regret) != len(p.Curves[0].Regret) {
				t.Errorf("curve %q has %d seeds, the first has %d", c.Policy, len(c.Regret), len(p.Curves[0].Regret))
			}
			for k, run := range c.Regret {
				if len(run) == 0 || len(run) != len(p.Curves[0].Regret[0]) {
					t.Errorf("curve %q has %d rounds, the first has %d", c.Policy, len(run), len(p.Curves[0].Regret[0]))
				}
				for i, regret := range run {
					if !(regret >= 0) || math.IsInf(regret, 0) {
						t.Errorf("curve %q is %v in round %d of seed %d", c.Policy, regret, i+1, k)
					}
				}
			}
		}
	})
}

// BenchmarkDecode reads the file of one panel of the main figure: 8 policies, 30 seeds, 1000 rounds.
func BenchmarkDecode(b *testing.B) {
	var file strings.Builder
	file.WriteString(header)
	for p := range 8 {
		for s := range 30 {
			for t := range 1000 {
				fmt.Fprintf(&file, "main-gaussian-realizable,policy-%d,%d,%d,%.6f\n", p, s, t+1,
					float64(t)/float64(p+s+1))
			}
		}
	}
	b.SetBytes(int64(file.Len()))
	b.ReportAllocs()
	for b.Loop() {
		fatal.Or(figure.Decode(strings.NewReader(file.String()), "regret.csv"))(b)
	}
}
