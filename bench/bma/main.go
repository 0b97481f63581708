// Command bma prints the results of bench/bma.sh as a Markdown table: BMA-MNL, the tuned learner with the lowest mean, and the
// other packages, in each finished panel.
//
//	go run ./bench/bma out/bma
package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"maps"
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

func (f finals) mean() float64 { return stat.Mean(f.values(), nil) }

func (f finals) values() (v []float64) {
	for _, x := range f {
		v = append(v, x)
	}
	slices.Sort(v)
	return v
}

func best(all map[string]finals) (name string) {
	for p, f := range all {
		if name == "" || f.mean() < all[name].mean() {
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

// The packages that bench/peers/race.py finals plays.
var packages = []string{"Vowpal Wabbit CCB", "contextualbandits LinUCB"}

// standing counts panels against a learner.
type standing struct{ ahead, level, behind int }

func (s *standing) count(difference, se float64) {
	switch {
	case difference < -2*se:
		s.ahead++
	case difference <= 2*se:
		s.level++
	default:
		s.behind++
	}
}

func (s standing) String() string {
	return fmt.Sprintf("ahead in %d panels, within two standard errors in %d, behind in %d", s.ahead, s.level, s.behind)
}

func run(dir string) error {
	panels, err := filepath.Glob(filepath.Join(dir, "played", "*", "regret.csv"))
	if err != nil {
		return err
	}
	fmt.Println("| panel | regret | best tuned learner | difference | Vowpal Wabbit | LinUCB | median, largest | " +
		"largest ÷ median |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	var ours, theirs standing
	for _, path := range panels {
		panel := filepath.Base(filepath.Dir(path))
		read := func(part string) map[string]finals {
			all, e := read(filepath.Join(dir, part), panel)
			err = errors.Join(err, e)
			return all
		}
		played, peers := read("played"), read("peers")
		bma := played["bma-mnl"]
		if bma == nil {
			bma = played["auto"]
		}
		delete(played, "bma-mnl")
		delete(played, "auto")
		maps.Copy(played, read("forgetting"))
		tuned, difference := "–", "–"
		if len(played) > 0 {
			name := best(played)
			m, se := bma.minus(played[name])
			ours.count(m, se)
			tuned = fmt.Sprintf("%.2f (%s)", played[name].mean(), strings.TrimSuffix(name, "-tuned"))
			difference = fmt.Sprintf("%+.2f ± %.2f", m, se)
		}
		cells := []string{"–", "–"}
		for k, name := range packages {
			if f := peers[name]; f != nil {
				cells[k] = fmt.Sprintf("%.2f", f.mean())
			}
		}
		if peers != nil {
			theirs.count(bma.minus(peers[best(peers)]))
		}
		v := bma.values()
		median, largest := stat.Quantile(0.5, stat.Empirical, v, nil), v[len(v)-1]
		fmt.Printf("| %s | %.2f | %s | %s | %s | %s | %.1f, %.1f | %.1f |\n",
			strings.TrimPrefix(panel, "worlds-"), bma.mean(), tuned, difference, cells[0], cells[1], median, largest,
			largest/median)
	}
	fmt.Printf("\nAgainst the best tuned learner: %v.\n", ours)
	if theirs != (standing{}) {
		fmt.Printf("Against the better of the packages: %v.\n", theirs)
	}
	return err
}
