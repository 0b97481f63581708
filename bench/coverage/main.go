// Command coverage fits choice models to simulated choices with known coefficients. It prints, for each coefficient, the
// truth, the mean and standard deviation of the estimates, the mean standard error, and how many 95% intervals contain
// the truth, with classic and with robust errors. The table is Markdown.
//
//	go run ./bench/coverage [-data 1000] [-choices 1600]    four minutes of a core
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"

	"gonum.org/v1/gonum/stat"

	"vitrine/choice"
	"vitrine/internal/parallel"
)

const perPanel = 8 // choices of a decision maker

// world is a model with its coefficients.
type world struct {
	model choice.Model
	truth []float64 // constants of b and c, x, z, and the dissimilarity of the nest a, b or the spread of x
}

var worlds = []world{
	{choice.Model{}, []float64{0.3, -0.2, 1, -0.5}},
	{choice.Model{Kind: "nested", Nests: []choice.Nest{{Name: "ab", Alternatives: []string{"a", "b"}}}},
		[]float64{0.3, -0.2, 1, -0.5, 0.6}},
	{choice.Model{Kind: "mixed", Draws: 200, Random: []choice.Random{{Coefficient: "x"}}},
		[]float64{0.3, -0.2, 1, -0.5, 0.8}},
}

func main() {
	sets := flag.Int("data", 1000, "data sets of each model")
	choices := flag.Int("choices", 1600, "choices of each data set")
	flag.Parse()
	fmt.Println("| model | coefficient | truth | mean | SD | std. error | classic | robust |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	for _, w := range worlds {
		if err := w.measure(*sets, *choices); err != nil {
			fmt.Fprintln(os.Stderr, "coverage:", err)
			os.Exit(1)
		}
	}
}

// measure prints the lines of a model.
func (w *world) measure(sets, choices int) error {
	classic, robust, seeds := make([]*choice.Result, sets), make([]*choice.Result, sets), make([]int, sets)
	for n := range seeds {
		seeds[n] = n
	}
	err := parallel.Each(context.Background(), 0, seeds, func(_ context.Context, n int) (err error) {
		if classic[n], err = w.fit(uint64(n), choices, "classic"); err == nil {
			robust[n], err = w.fit(uint64(n), choices, "robust")
		}
		return err
	})
	if err != nil {
		return err
	}
	for j, truth := range w.truth {
		var estimates, se []float64
		for _, r := range classic {
			estimates, se = append(estimates, r.Coefficients[j]), append(se, r.StandardErrors()[j])
		}
		mean, sd := stat.MeanStdDev(estimates, nil)
		fmt.Printf("| %s | %s | %g | %.3f | %.3f | %.3f | %.3f | %.3f |\n", classic[0].Kind(), classic[0].Names[j],
			truth, mean, sd, stat.Mean(se, nil), covered(classic, j, truth), covered(robust, j, truth))
	}
	return nil
}

// covered returns the share of 95% intervals that contain the truth.
func covered(results []*choice.Result, j int, truth float64) (share float64) {
	for _, r := range results {
		if low, high := r.Intervals(0.95); low[j] <= truth && truth <= high[j] {
			share += 1 / float64(len(results))
		}
	}
	return share
}

func (w *world) fit(seed uint64, choices int, kind string) (*choice.Result, error) {
	rng := rand.New(rand.NewPCG(seed, 1))
	b := choice.NewBuilder([]string{"a", "b", "c"}, []string{"x", "z"}, false)
	b.Panels = true
	beta := w.truth[2]
	for n := range choices {
		if w.model.Kind == "mixed" && n%perPanel == 0 {
			beta = w.truth[2] + w.truth[4]*rng.NormFloat64()
		}
		c := choice.Case{Alternatives: []int{0, 1, 2}, Panel: n / perPanel}
		v := []float64{0, w.truth[0], w.truth[1]}
		for i := range v {
			x, z := rng.NormFloat64(), rng.NormFloat64()
			c.X = append(c.X, x, z)
			v[i] += beta*x + w.truth[3]*z
		}
		c.Chosen = w.taken(v, rng)
		if err := b.Add(c); err != nil {
			return nil, err
		}
	}
	d, err := b.Data()
	if err != nil {
		return nil, err
	}
	u := choice.Utility{Constants: true, Generic: []string{"x", "z"}}
	r, err := choice.Fit(context.Background(), &choice.Spec{Utility: u, Model: w.model}, d, choice.Options{Errors: kind, Workers: 1})
	if err == nil && !r.Converged {
		err = fmt.Errorf("%s, data set %d: not converged after %d steps", r.Kind(), seed, r.Steps)
	}
	return r, err
}

// taken draws a choice by utilities. In a nest, λ log(exp(v_a/λ) + exp(v_b/λ)) is the utility of taking either.
func (w *world) taken(v []float64, rng *rand.Rand) int {
	lambda := 1.0
	if w.model.Kind == "nested" {
		lambda = w.truth[4]
	}
	a, b := math.Exp(v[0]/lambda), math.Exp(v[1]/lambda)
	nest := math.Pow(a+b, lambda)
	switch p := rng.Float64() * (nest + math.Exp(v[2])); {
	case p >= nest:
		return 2
	case p >= nest*a/(a+b):
		return 1
	}
	return 0
}
