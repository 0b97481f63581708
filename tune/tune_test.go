package tune_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"gonum.org/v1/gonum/stat"
	"pgregory.net/rapid"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/panics"
	_ "vitrine/internal/rapidseed"
	"vitrine/tune"
)

func TestRungs(t *testing.T) {
	for _, c := range []struct {
		h               tune.Halving
		settings, seeds int
		want            []tune.Rung
	}{
		{tune.Halving{}, 30, 40, []tune.Rung{{30, 40}}},
		{tune.Halving{First: 5, Factor: 3}, 30, 40, []tune.Rung{{30, 5}, {10, 15}, {4, 40}}},
		{tune.Halving{First: 40, Factor: 2}, 30, 40, []tune.Rung{{30, 40}}},
		{tune.Halving{First: 1, Factor: 2}, 3, 9, []tune.Rung{{3, 1}, {2, 2}, {1, 4}, {1, 8}, {1, 9}}},
		{tune.Halving{First: 2, Factor: math.MaxInt / 2}, 1, 3, []tune.Rung{{1, 2}, {1, 3}}},
	} {
		expect.Equal(t, c.h.Rungs(c.settings, c.seeds), c.want, c.h)
	}
}

// table plays its content: regret[setting][panel][seed], for the seeds 0, 1, …
func table(regret [][][]float64, calls *[]string) tune.Play {
	return func(settings []int, seeds []uint64) ([][][]float64, error) {
		var out [][][]float64
		line := ""
		for _, i := range settings {
			line += string(rune('a' + i))
			var panels [][]float64
			for _, p := range regret[i] {
				var row []float64
				for _, s := range seeds {
					row = append(row, p[s])
				}
				panels = append(panels, row)
			}
			out = append(out, panels)
		}
		if calls != nil {
			for _, s := range seeds {
				line += string(rune('0' + s))
			}
			*calls = append(*calls, line)
		}
		return out, nil
	}
}

func seeds(n int) []uint64 {
	var list []uint64
	for i := range uint64(n) {
		list = append(list, i)
	}
	return list
}

func places(scores []tune.Score) []int {
	var list []int
	for _, s := range scores {
		list = append(list, s.Setting)
	}
	return list
}

// By hand: five settings, one panel, rungs of 5, 3 and 2 settings on 1, 2 and 4 seeds. b leads on seed 0 and loses on
// seed 1; e is best on the later seeds, but is stopped before them.
func TestSearchByHand(t *testing.T) {
	regret := [][][]float64{
		{{3, 1, 2, 2}}, // a: 3 | 2 | 2
		{{1, 9, 0, 0}}, // b: 1 | 5
		{{2, 2, 3, 3}}, // c: 2 | 2 | 2.5
		{{4, 0, 0, 0}}, // d: 4
		{{4, 0, 0, 0}}, // e: 4, like d
	}
	var calls []string
	scores := fatal.Or(tune.Search(5, seeds(4), tune.Halving{First: 1, Factor: 2}, table(regret, &calls)))(t)
	expect.Equal(t, calls, []string{"abcde0", "abc1", "ac23"}, "what was played")
	want := []tune.Score{
		{Setting: 0, Rung: 3, Regret: [][]float64{{3, 1, 2, 2}}},
		{Setting: 2, Rung: 3, Regret: [][]float64{{2, 2, 3, 3}}},
		{Setting: 1, Rung: 2, Regret: [][]float64{{1, 9}}},
		{Setting: 3, Rung: 1, Regret: [][]float64{{4}}},
		{Setting: 4, Rung: 1, Regret: [][]float64{{4}}},
	}
	expect.Equal(t, scores, want, "ranking")
	// b over the winner on their two common seeds: (1 − 3, 9 − 1), mean 3, sd √50.
	got := scores[2].Difference(scores[0])
	expect.Equal(t, got, tune.Estimate{Mean: 3, SE: 5}, "difference", cmpopts.EquateApprox(1e-12, 0))
	if e := scores[3].Estimate(); e.Mean != 4 || !math.IsNaN(e.SE) {
		t.Errorf("one seed gives %v", e)
	}
}

// A setting without a regret does not win.
func TestNaNComesLast(t *testing.T) {
	scores := fatal.Or(tune.Search(3, seeds(1), tune.Halving{}, table([][][]float64{{{math.NaN()}}, {{2}}, {{1}}}, nil)))(t)
	expect.Equal(t, places(scores), []int{2, 1, 0}, "ranking")
}

// Rungs that would never reach all seeds panic.
func TestHalvingThatNeverEnds(t *testing.T) {
	for _, h := range []tune.Halving{{First: 1}, {First: 1, Factor: 1}, {Factor: 2}} {
		if panics.Value(func() { h.Rungs(3, 4) }) == nil {
			t.Errorf("%+v: no panic", h)
		}
	}
}

func draw(t *rapid.T) (regret [][][]float64, n, panels, seeds int) {
	n, panels, seeds = rapid.IntRange(1, 20).Draw(t, "settings"), rapid.IntRange(1, 3).Draw(t,
		"panels"), rapid.IntRange(1, 12).Draw(t, "seeds")
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "rng"), 0))
	for range n {
		var s [][]float64
		for range panels {
			var row []float64
			for range seeds {
				row = append(row, math.Floor(10*rng.Float64())) // with ties
			}
			s = append(s, row)
		}
		regret = append(regret, s)
	}
	return regret, n, panels, seeds
}

func halving(t *rapid.T, seeds int) tune.Halving {
	return tune.Halving{First: rapid.IntRange(1, seeds).Draw(t, "first"),
		Factor: rapid.IntRange(2, 4).Draw(t, "factor")}
}

// With one rung the search picks the smallest mean, as brute force does.
func TestOneRungIsPlainSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		regret, n, _, last := draw(t)
		best, minimum := -1, math.Inf(1)
		for i := range n {
			sum := 0.0
			for s := range last {
				for p := range regret[i] {
					sum += regret[i][p][s]
				}
			}
			if sum < minimum-1e-9 {
				best, minimum = i, sum
			}
		}
		for _, h := range []tune.Halving{{}, {First: last, Factor: 2}} {
			scores := fatal.Or(tune.Search(n, seeds(last), h, table(regret, nil)))(t)
			got := 0.0
			for _, row := range regret[scores[0].Setting] {
				for _, v := range row {
					got += v
				}
			}
			if math.Abs(got-minimum) > 1e-9 || len(scores) != n {
				t.Fatalf("%+v: winner %d with %v, want %d with %v", h, scores[0].Setting, got, best, minimum)
			}
		}
	})
}

// Without noise, every seed ranks the settings alike: the best is never stopped and the ranking is the true one.
func TestWithoutNoiseTheBestWins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, last := rapid.IntRange(1, 20).Draw(t, "settings"), rapid.IntRange(1, 12).Draw(t, "seeds")
		order := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "rng"), 0)).Perm(n)
		regret := make([][][]float64, n)
		for i := range n {
			row := make([]float64, last)
			for s := range row {
				row[s] = float64(order[i]) + 100*float64(s*s)
			}
			regret[i] = [][]float64{row}
		}
		scores := fatal.Or(tune.Search(n, seeds(last), halving(t, last), table(regret, nil)))(t)
		for place, s := range scores {
			expect.Equal(fatal.T(t), order[s.Setting], place, "place", place, "has setting", s.Setting,
				"whose true place is")
		}
	})
}

// A setting plays the seeds of its rungs, and no seed twice. No setting beats the winner on their common seeds.
func TestSearchInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		regret, n, _, last := draw(t)
		h := halving(t, last)
		rungs := h.Rungs(n, last)
		scores := fatal.Or(tune.Search(n, seeds(last), h, table(regret, nil)))(t)
		all := places(scores)
		slices.Sort(all)
		for i, s := range all {
			expect.Equal(fatal.T(t), s, i, "settings", all)
		}
		for place, s := range scores {
			if want := rungs[s.Rung-1].Seeds; s.Seeds() != want {
				t.Fatalf("setting %d has %d seeds at rung %d, want %d", s.Setting, s.Seeds(), s.Rung, want)
			}
			for p, row := range s.Regret {
				expect.Equal(fatal.T(t), row, regret[s.Setting][p][:s.Seeds()], "setting", s.Setting)
			}
			if d := s.Difference(scores[0]); d.Mean < -1e-9 {
				t.Fatalf("place %d is ahead of the winner by %v", place, d.Mean)
			}
		}
		for k, r := range rungs {
			reached := 0
			for _, s := range scores {
				if s.Rung > k {
					reached++
				}
			}
			if reached != r.Settings {
				t.Fatalf("%d settings reached rung %d, want %d", reached, k+1, r.Settings)
			}
		}
	})
}

func TestSearchPassesErrorsOn(t *testing.T) {
	torn := errors.New("torn")
	expect.Fails(tune.Search(2, seeds(2), tune.Halving{First: 1, Factor: 2},
		func([]int, []uint64) ([][][]float64, error) { return nil, torn }))(t, torn)
}

// The standard error is computed from the seeds' means: panels that share seeds do not count as independent.
func TestEstimate(t *testing.T) {
	s := tune.Score{Regret: [][]float64{{1, 2, 6}, {3, 4, 2}}}
	mean, sd := stat.MeanStdDev([]float64{2, 3, 4}, nil)
	if e := s.Estimate(); e.Mean != mean || math.Abs(e.SE-sd/math.Sqrt(3)) > 1e-15 {
		t.Errorf("%v, want %v ± %v", e, mean, sd/math.Sqrt(3))
	}
	expect.Equal(t, s.Estimate(0).Mean, 3, "panel 0")
	other := tune.Score{Regret: [][]float64{{0, 2}, {0, 1}}}
	if d := s.Difference(other, 1); d.Mean != 3 || d.SE != 0 {
		t.Errorf("difference in panel 1: %v, want 3 ± 0", d)
	}
}

func TestGrid(t *testing.T) {
	got := tune.Grid([][]any{{1, 2}, {"a"}, {true, false}})
	want := [][]any{{1, "a", true}, {1, "a", false}, {2, "a", true}, {2, "a", false}}
	expect.Equal(t, got, want)
}

// Draws stay in their range, whole ones are integers, and the median of logarithmic ones is √(low·high).
func TestDraw(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	for _, c := range []struct {
		r      tune.Range
		median float64
	}{
		{tune.Range{Low: 0, High: 3}, 1.5},
		{tune.Range{Low: 0.12344, High: 0.12346}, 0.12345},
		{tune.Range{Low: 0.01, High: 100, Log: true}, 1},
		{tune.Range{Low: 10, High: 20, Whole: true}, 15},
		{tune.Range{Low: 1, High: 10000, Whole: true, Log: true}, 100},
	} {
		var all []float64
		for range 4001 {
			var v float64
			switch x := c.r.Draw(rng).(type) {
			case int64:
				v = float64(x)
				if !c.r.Whole {
					t.Errorf("%+v drew the whole %v", c.r, x)
				}
			case float64:
				v = x
			}
			if v < c.r.Low || v > c.r.High {
				t.Fatalf("%+v drew %v", c.r, v)
			}
			all = append(all, v)
		}
		slices.Sort(all)
		below, _ := slices.BinarySearch(all, c.median)
		upto, _ := slices.BinarySearch(all, math.Nextafter(c.median, math.Inf(1)))
		if se := math.Sqrt(4001) / 2; float64(below) > 2000+5*se || float64(upto) < 2000-5*se {
			t.Errorf("%+v: %d of 4001 draws are below %v", c.r, below, c.median)
		}
	}
	list := map[any]bool{}
	for range 100 {
		list[tune.Range{List: []any{"a", "b"}}.Draw(rng)] = true
	}
	expect.Equal(t, len(list), 2, "drew", list, "of a list of two")
}

func TestCSV(t *testing.T) {
	winner := tune.Row{Outcome: tune.Winner, Values: []string{"1", "[3, 15]"},
		Score: tune.Score{Setting: 4, Rung: 2, Regret: [][]float64{{1, 3}, {3, 5}}}}
	stopped := tune.Row{Outcome: tune.Stopped, Values: []string{"2", "[3]"},
		Score: tune.Score{Setting: 0, Rung: 1, Regret: [][]float64{{2}, {4}}}}
	now := tune.Row{Outcome: tune.Configured, Values: []string{"1/2", "[3]"},
		Score: tune.Score{Setting: -1, Rung: 2, Regret: [][]float64{{2, 4}, {5, 9}}}}
	table := tune.Table{Tuning: "t", Policy: "p", Parameters: []string{"lambda", "utility.hidden"},
		Panels: []string{"a", "b"}, Rows: []tune.Row{winner, stopped, now}}
	want := `tuning,policy,setting,outcome,lambda,utility.hidden,rung,seeds,regret,regret_se,over_winner,over_winner_se,over_configured,over_configured_se,a,b
t,p,5,winner,1,"[3, 15]",2,2,3,1,0,0,-2,0.5,2,4
t,p,1,stopped,2,[3],1,1,3,,1,,-0.5,,2,4
t,p,,configured,1/2,[3],2,2,5,1.5,2,0.5,0,0,3,7
`
	expect.Equal(t, strings.Split(string(table.TrainingCSV()), "\n"), strings.Split(want, "\n"), "tune.csv")
	table.Rows = []tune.Row{winner, now}
	want = `tuning,policy,setting,outcome,lambda,utility.hidden,panel,seeds,regret,regret_se,over_winner,over_winner_se,over_configured,over_configured_se
t,p,5,winner,1,"[3, 15]",all panels,2,3,1,0,0,-2,0.5
t,p,5,winner,1,"[3, 15]",a,2,2,1,0,0,-1,0
t,p,5,winner,1,"[3, 15]",b,2,4,1,0,0,-3,1
t,p,,configured,1/2,[3],all panels,2,5,1.5,2,0.5,0,0
t,p,,configured,1/2,[3],a,2,3,1,1,0,0,0
t,p,,configured,1/2,[3],b,2,7,2,3,1,0,0
`
	expect.Equal(t, strings.Split(string(table.FreshCSV()), "\n"), strings.Split(want, "\n"), "fresh.csv")
}
