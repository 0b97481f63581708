package figure

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
)

// Tuning is the search over a policy's parameters, from tune.json.
type Tuning struct {
	Name       string    `json:"tuning"`
	Title      string    `json:"title"` // above the plot; empty means Name
	Policy     string    `json:"policy"`
	Parameters []string  `json:"parameters"`
	Settings   []Setting `json:"results"`    // best first; the first is the winner
	Configured Setting   `json:"configured"` // the setting in the panels
}

// Setting is a choice of parameters with its outcome. With a single seed, both standard errors are NaN, and 0 in the
// file.
type Setting struct {
	Stopped bool     `json:"stopped"` // before playing all training seeds
	Values  []string `json:"values"`  // by parameter
	Seeds   int      `json:"seeds"`
	Regret  float64  `json:"regret"` // after the last round, mean over seeds and panels
	SE      float64  `json:"regret_se"`
	// Over is the regret minus the winner's, paired on the seeds that both have played.
	Over   float64 `json:"over_winner"`
	OverSE float64 `json:"over_winner_se"`
}

// ReadTuning reads the tune.json at path. Errors call its name and say what to do.
func ReadTuning(path string) (t Tuning, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return t, err
	}
	if err = json.Unmarshal(text, &t); err == nil {
		err = t.check()
	}
	if err != nil {
		return t, fmt.Errorf("%s: %w; tune again, it continues where it stopped", path, err)
	}
	return t, nil
}

// check returns an error if the tuning cannot be drawn, and sets the standard errors of single seeds to NaN.
func (t *Tuning) check() error {
	if len(t.Parameters) == 0 || len(t.Settings) == 0 {
		return errors.New("no parameters or no results")
	}
	words := slices.Concat([]string{t.Name, t.Policy}, t.Parameters)
	for i := range len(t.Settings) + 1 {
		s := &t.Configured
		if i < len(t.Settings) {
			s = &t.Settings[i]
		}
		if len(s.Values) != len(t.Parameters) || s.Seeds < 1 {
			return fmt.Errorf("a setting with %d values and %d seeds: want %d values and seeds from 1", len(s.Values), s.Seeds,
				len(t.Parameters))
		}
		for _, v := range []float64{s.Regret, s.SE, s.Over, s.OverSE} {
			if !(math.Abs(v) <= maxValue) {
				return fmt.Errorf("%g is too large to be drawn", v)
			}
		}
		if s.Seeds == 1 {
			s.SE, s.OverSE = math.NaN(), math.NaN()
		}
		words = append(words, s.Values...)
	}
	for _, word := range words {
		if !printable(word) {
			return fmt.Errorf("%q is not printable", word)
		}
	}
	return nil
}
