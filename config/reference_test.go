//go:build slow

package config_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"vitrine/config"
	"vitrine/experiment"
	"vitrine/internal/fatal"
	"vitrine/paper/experiments"
)

// reference holds an independent prototype's regrets at T, as mean and standard deviation over its 20 seeds, in the
// panels RG, RU, MG and MU: realizable or misspecified, Gaussian or uniform.
var reference = []struct {
	label string
	table string // the prototype's policy in our terms, if no panel contains it
	want  [4][2]float64
}{
	{"uniform", "", [4][2]float64{{45.4, 24.1}, {53.3, 26.0}, {100.5, 2.6}, {101.9, 2.6}}},
	{"ucb-mnl", "", [4][2]float64{{34.4, 16.4}, {36.0, 16.1}, {57.9, 8.4}, {33.6, 10.5}}},
	{"ts-mnl", "", [4][2]float64{{41.5, 20.7}, {52.2, 24.7}, {86.3, 2.6}, {97.5, 4.5}}},
	{"ofu-mnl-plus", "", [4][2]float64{{36.0, 17.3}, {39.0, 17.6}, {62.5, 7.6}, {37.2, 12.6}}},
	{"eps-greedy-sets", "", [4][2]float64{{8.8, 6.4}, {12.5, 10.8}, {27.0, 8.5}, {16.8, 6.4}}},
	{"eps-greedy-restart", "name = \"eps-greedy-mnl\"\nexplore = \"set\"\nrestart = true\nutility = UTILITY",
		[4][2]float64{{23.6, 14.8}, {29.9, 17.2}, {40.0, 19.7}, {24.1, 8.6}}},
	{"onl-mnl", "", [4][2]float64{{8.1, 3.6}, {9.2, 4.5}, {30.0, 7.1}, {20.8, 5.5}}},
	{"greedy", "", [4][2]float64{{10.1, 8.4}, {11.2, 6.9}, {29.9, 7.1}, {21.0, 5.5}}},
	{"ucb-0.3", "name = \"ucb-mnl\"\nconstants = \"tuned\"\nradius = 0.3",
		[4][2]float64{{11.6, 10.1}, {14.5, 13.9}, {24.0, 9.0}, {12.7, 5.8}}},
	{"ucb-intercept", "name = \"ucb-mnl\"\nconstants = \"tuned\"\nradius = 0\nintercept = true",
		[4][2]float64{{7.2, 5.8}, {9.4, 7.6}}},
	{"ts-0.3", "name = \"ts-mnl\"\nconstants = \"tuned\"\nradius = 0.3",
		[4][2]float64{{9.4, 8.0}, {11.9, 12.0}, {22.6, 7.8}, {12.7, 5.7}}},
	{"ofu-1", "name = \"ofu-mnl-plus\"\nconstants = \"tuned\"\nradius = 1",
		[4][2]float64{{9.7, 8.5}, {13.9, 13.7}, {23.1, 8.4}, {12.8, 6.0}}},
}

// Mean regrets agree with the prototype's within three standard errors of the difference, with the pooled variance, in
// some 46 comparisons. By chance about two exceed two standard errors, and 0.1 exceed three.
//
//	go test -tags slow -run Reference -v -timeout 60m ./config
func TestReferenceRegrets(t *testing.T) {
	const referenceSeeds = 20
	for panel, play := range []struct {
		name  string
		seeds int
	}{
		{"main-gaussian-realizable", 200}, {"main-uniform-realizable", 200}, {"main-gaussian-misspecified", 100},
		{"main-uniform-misspecified", 100},
	} {
		name, seeds := play.name, float64(play.seeds)
		text, err := experiments.Read(name)
		fatal.If(t, err)
		_, utility, _ := strings.Cut(string(text), "utility = ")
		utility, _, _ = strings.Cut(utility, "\n")
		var labels []string
		for _, r := range reference {
			labels = append(labels, r.label)
			if r.table != "" {
				text = fmt.Appendf(text, "[[policy]]\nlabel = %q\n%s\n", r.label,
					strings.Replace(r.table, "UTILITY", utility, 1))
			}
		}
		f, err := config.Load(name+".toml", text)
		fatal.If(t, err)
		e, err := f.Experiment(config.Selection{Seeds: play.seeds, Policies: append(labels, "oracle")}, "")
		fatal.If(t, err)
		summaries, err := experiment.Run(t.Context(), e, experiment.Options{Dir: t.TempDir()})
		fatal.If(t, err)
		got := map[string]experiment.Summary{}
		for _, s := range summaries {
			got[s.Policy] = s
		}
		if s := got["oracle"]; s.FinalMean != 0 || s.FinalSD != 0 {
			t.Errorf("%s: the oracle's regret is %v ± %v", name, s.FinalMean, s.FinalSD)
		}
		for _, r := range reference {
			s, want := got[r.label], r.want[panel]
			if want[0] == 0 {
				continue
			}
			pooled := ((seeds-1)*s.FinalSD*s.FinalSD + (referenceSeeds-1)*want[1]*want[1]) /
				(seeds + referenceSeeds - 2)
			se := math.Sqrt(pooled * (1/seeds + 1.0/referenceSeeds))
			z := (s.FinalMean - want[0]) / se
			t.Logf("%-27s %-19s %6.1f ± %4.1f, reference %6.1f ± %4.1f: %+.1f standard errors",
				name, r.label, s.FinalMean, s.FinalSD, want[0], want[1], z)
			if math.Abs(z) > 3 {
				t.Errorf("%s: %s differs from the reference by %+.1f standard errors", name, r.label, z)
			}
			if r.label != "uniform" && s.FinalMean >= got["uniform"].FinalMean {
				t.Errorf("%s: %s does not beat uniform: %.1f against %.1f",
					name, r.label, s.FinalMean, got["uniform"].FinalMean)
			}
		}
	}
}
