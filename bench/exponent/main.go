// Command exponent fits the growth of regret in T, using the regret.csv of one experiment:
//
//	go run ./bench/exponent out/exponent/regret.csv
//
// For each policy it prints the mean regret at T = 250, 500, 1000, …, the exponent of a power law through them, with a
// 95% interval by resampling the seeds, and the exponent through the last two.
package main

import (
	"fmt"
	"math/rand/v2"
	"os"

	"gonum.org/v1/gonum/stat"

	"vitrine/figure"
	"vitrine/paper/theory"
)

const first = 250

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: exponent regret.csv")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "exponent:", err)
		os.Exit(1)
	}
}

func run(path string) error {
	panel, err := figure.ReadPanel(path)
	if err != nil {
		return err
	}
	for _, c := range panel.Curves {
		var x []float64
		var y [][]float64
		fmt.Println(c.Policy)
		for t := first; t <= len(c.Regret[0]); t *= 2 {
			var regret []float64 // by seed
			for _, seed := range c.Regret {
				regret = append(regret, seed[t-1])
			}
			x, y = append(x, float64(t)), append(y, regret)
			fmt.Printf("  T = %5d: regret %.1f\n", t, stat.Mean(regret, nil))
		}
		if len(x) < 2 {
			return fmt.Errorf("%s: %s ends before T = %d: an exponent needs two horizons", path, c.Policy, 2*first)
		}
		fit := func(from int) theory.Slope { return theory.FitSlope(x[from:], y[from:], rand.New(rand.NewPCG(1, 1))) }
		all, last := fit(0), fit(len(x)-2)
		fmt.Printf("  exponent %.3f (95%%: %.3f to %.3f), of the last doubling %.3f (%.3f to %.3f), %d seeds\n",
			all.Estimate, all.Low, all.High, last.Estimate, last.Low, last.High, len(y[0]))
	}
	return nil
}
