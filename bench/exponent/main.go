// Command exponent fits the growth of regret in T, from the regret.csv of one experiment:
//
//	go run ./bench/exponent out/exponent/regret.csv
//
// For each policy it prints the mean regret at T = 250, 500, 1000, … and the exponent of a
// power law through them, with a 95 % interval by resampling the seeds, and through the last two.
package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"

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

// curve is the regret of a policy at each horizon, one entry for each seed.
type curve map[int][]float64

func run(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	policies, curves, err := read(file)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, p := range policies {
		c := curves[p]
		var x []float64
		var y [][]float64
		fmt.Println(p)
		for t := first; len(c[t]) > 0; t *= 2 {
			x, y = append(x, float64(t)), append(y, c[t])
			mean := 0.0
			for _, v := range c[t] {
				mean += v / float64(len(c[t]))
			}
			fmt.Printf("  T = %5d: regret %.1f\n", t, mean)
		}
		if len(x) < 2 {
			return fmt.Errorf("%s: %s ends before T = %d: an exponent needs two horizons", path, p, 2*first)
		}
		fit := func(from int) theory.Slope { return theory.FitSlope(x[from:], y[from:], rand.New(rand.NewPCG(1, 1))) }
		all, last := fit(0), fit(len(x)-2)
		fmt.Printf("  exponent %.3f (95 %%: %.3f to %.3f), of the last doubling %.3f (%.3f to %.3f), %d seeds\n",
			all.Estimate, all.Low, all.High, last.Estimate, last.Low, last.High, len(y[0]))
	}
	return nil
}

// read returns the policies in their order, and their curves.
func read(r io.Reader) (policies []string, curves map[string]curve, err error) {
	curves = map[string]curve{}
	rows := csv.NewReader(r)
	rows.ReuseRecord = true
	if _, err := rows.Read(); err != nil {
		return nil, nil, err
	}
	for {
		row, err := rows.Read()
		if err == io.EOF {
			return policies, curves, nil
		}
		if err != nil {
			return nil, nil, err
		}
		if len(row) != 5 {
			return nil, nil, fmt.Errorf("a row has %d columns, want experiment,policy,seed,round,regret", len(row))
		}
		t, err := strconv.Atoi(row[3])
		if err != nil {
			return nil, nil, err
		}
		regret, err := strconv.ParseFloat(row[4], 64)
		if err != nil {
			return nil, nil, err
		}
		c, ok := curves[row[1]]
		if !ok {
			c = curve{}
			policies, curves[row[1]] = append(policies, row[1]), c
		}
		c[t] = append(c[t], regret)
	}
}
