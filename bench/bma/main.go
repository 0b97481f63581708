// Command bma prints the results of bench/bma.sh as a Markdown table: BMA-MNL and the tuned linear learner with the
// lowest mean, in each finished panel.
//
//	go run ./bench/bma out/bma
package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: bma DIRECTORY")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "bma:", err)
		os.Exit(1)
	}
}

// finals maps seeds to a policy's last regrets.
type finals map[string]float64

// read returns the last regrets of all policies in a panel, or nil if the panel is not finished.
func read(dir, panel string) (map[string]finals, error) {
	file, err := os.Open(filepath.Join(dir, panel, "regret.csv"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file.Name(), err)
	}
	all := map[string]finals{}
	for _, row := range rows[1:] {
		v, err := strconv.ParseFloat(row[4], 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name(), err)
		}
		if all[row[1]] == nil {
			all[row[1]] = finals{}
		}
		all[row[1]][row[2]] = v // later rounds overwrite earlier ones
	}
	return all, nil
}

func (f finals) values() (v []float64) {
	for _, x := range f {
		v = append(v, x)
	}
	slices.Sort(v)
	return v
}

func best(all map[string]finals) (name string) {
	for p, f := range all {
		if name == "" || stat.Mean(f.values(), nil) < stat.Mean(all[name].values(), nil) {
			name = p
		}
	}
	return name
}

// minus returns the mean paired difference and its standard error.
func (f finals) minus(g finals) (mean, se float64) {
	var d []float64
	for seed, v := range f {
		if w, ok := g[seed]; ok {
			d = append(d, v-w)
		}
	}
	mean, sd := stat.MeanStdDev(d, nil)
	return mean, sd / math.Sqrt(float64(len(d)))
}

func run(dir string) error {
	panels, err := filepath.Glob(filepath.Join(dir, "bma", "*", "regret.csv"))
	if err != nil {
		return err
	}
	fmt.Println("| panel | regret | best tuned linear learner | difference | median, largest | largest ÷ median |")
	fmt.Println("|---|---|---|---|---|---|")
	ahead, level, behind := 0, 0, 0
	for _, path := range panels {
		panel := filepath.Base(filepath.Dir(path))
		read := func(part string) map[string]finals {
			all, e := read(filepath.Join(dir, part), panel)
			err = errors.Join(err, e)
			return all
		}
		bma, linear := read("bma")["bma-mnl"], read("linear")
		for p, f := range read("forgetting") {
			if linear != nil {
				linear[p] = f
			}
		}
		if bma == nil || linear == nil {
			continue
		}
		name := best(linear)
		m, se := bma.minus(linear[name])
		switch {
		case m < -2*se:
			ahead++
		case m <= 2*se:
			level++
		default:
			behind++
		}
		v := bma.values()
		median, largest := stat.Quantile(0.5, stat.Empirical, v, nil), v[len(v)-1]
		fmt.Printf("| %s | %.2f | %.2f (%s) | %+.2f ± %.2f | %.1f, %.1f | %.1f |\n",
			strings.TrimPrefix(panel, "worlds-"), stat.Mean(v, nil),
			stat.Mean(linear[name].values(), nil), strings.TrimSuffix(name, "-tuned"), m, se, median, largest,
			largest/median)
	}
	fmt.Printf("\nAhead of the best linear learner in %d panels, within two standard errors in %d, behind in %d.\n",
		ahead, level, behind)
	return err
}
