// Package tune searches a policy's parameters by successive halving: all settings play a few seeds, the better ones
// play more, and the best are compared on all. The package does not play anything itself, and refers to settings by
// index.
//
// A seed's worlds are the same for every setting, so settings are compared by paired differences. A search chooses
// among many means, and the smallest of them is biased downwards, so the winner is measured again on fresh seeds.
package tune

import (
	"cmp"
	"fmt"
	"slices"
)

// Play plays settings, by index, on seeds in every panel. Entry [i][p][s] of the result is the regret of settings[i] in
// panel p on seeds[s].
type Play func(settings []int, seeds []uint64) ([][][]float64, error)

// Halving determines how many settings continue from rung to rung:
//
//	rung k plays ⌈n_{k−1}/Factor⌉ settings on min(First·Factor^k, N) seeds, k = 0, 1, …
//
// starting with all settings, until all N seeds are played, so that all rungs cost about the same (Karnin, Koren and
// Somekh 2013; Jamieson and Talwalkar 2016). The zero value is one rung, plain search.
type Halving struct {
	First  int `toml:"first"`                   // seeds in the first rung, at least 1
	Factor int `toml:"factor" range:"[2, 1e4]"` // at least 2
}

// Rung is a number of settings and a number of seeds, including the seeds of earlier rungs.
type Rung struct {
	Settings int `json:"settings"`
	Seeds    int `json:"seeds"`
}

// Rungs returns the rungs of a search over the given numbers of settings and seeds. It panics if First or Factor is too
// small.
func (h Halving) Rungs(settings, seeds int) []Rung {
	if h == (Halving{}) {
		return []Rung{{settings, seeds}}
	}
	if h.First < 1 || h.Factor < 2 {
		panic(fmt.Sprintf("tune: halving from %d seeds by the factor %d: want at least 1 and 2", h.First, h.Factor))
	}
	r := Rung{settings, min(h.First, seeds)}
	rungs := []Rung{r}
	for r.Seeds < seeds {
		r.Settings = (r.Settings + h.Factor - 1) / h.Factor
		if r.Seeds > seeds/h.Factor {
			r.Seeds = seeds
		} else {
			r.Seeds *= h.Factor
		}
		rungs = append(rungs, r)
	}
	return rungs
}

// Search plays the settings 0, …, n − 1 by successive halving and returns their scores, best first: later rungs before
// earlier ones, and within a rung by the mean regret over seeds and panels, NaN last. Ties keep their order. A rung
// plays only seeds that earlier rungs did not.
//
// The first is the winner. On the seeds that it shares with another score its mean is not larger, because a setting
// that stops at a rung is no better there than one that continues.
func Search(n int, seeds []uint64, h Halving, play Play) ([]Score, error) {
	playing := make([]Score, n)
	for i := range playing {
		playing[i].Setting = i
	}
	var ranking []Score
	played := 0
	for k, rung := range h.Rungs(n, len(seeds)) {
		ranking = append(slices.Clone(playing[rung.Settings:]), ranking...)
		playing = playing[:rung.Settings]
		slices.SortFunc(playing, func(a, b Score) int { return cmp.Compare(a.Setting, b.Setting) })
		settings := make([]int, len(playing))
		for i, s := range playing {
			settings[i] = s.Setting
		}
		regret, err := play(settings, seeds[played:rung.Seeds])
		if err != nil {
			return nil, err
		}
		for i := range playing {
			playing[i].Rung = k + 1
			playing[i].add(regret[i])
		}
		slices.SortStableFunc(playing, func(a, b Score) int {
			return cmp.Compare(-b.Estimate().Mean, -a.Estimate().Mean) // NaN comes last
		})
		played = rung.Seeds
	}
	return append(playing, ranking...), nil
}
