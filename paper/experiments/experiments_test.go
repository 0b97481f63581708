package experiments_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/paper/experiments"
)

// Every file is listed in order, and every name there has a file.
func TestEveryFileHasItsPlace(t *testing.T) {
	entries := fatal.Or(os.ReadDir("."))(t)
	var files []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".toml"); ok {
			files = append(files, name)
		}
	}
	slices.Sort(files)
	names := experiments.Names()
	slices.Sort(names)
	expect.Equal(t, names, files, "files and names differ")
	for _, name := range names {
		if text, err := experiments.Read(name); err != nil || len(text) == 0 {
			t.Errorf("%s: %d bytes, %v", name, len(text), err)
		}
	}
}

func TestGroups(t *testing.T) {
	expect.Equal(t, experiments.Groups(), []string{"main", "main-gaussian", "main-uniform", "items", "sweep", "sweep-gaussian",
		"sweep-uniform", "warmup", "unit", "contexts", "linear", "worlds", "shop", "positions", "baskets"}, "groups")
	for group, want := range map[string]int{"main": 4, "main-uniform": 2, "items": 4, "sweep": 16, "sweep-gaussian": 8,
		"warmup": 4, "unit": 4, "contexts": 4, "linear": 8, "worlds": 25, "shop": 8, "positions": 4, "baskets": 2,
		"none": 0} {
		expect.Equal(t, len(experiments.Members(group)), want, group, "has n members")
	}
}

// Every panel in a figure is an experiment, rows are full, and captions and heads together distinguish the panels.
func TestFiguresAreMadeOfExperiments(t *testing.T) {
	names := experiments.Names()
	for _, f := range experiments.Figures(names) {
		seen := map[string]bool{}
		for _, row := range f.Rows {
			columns := 2 // as in the paper
			if f.Name == "worlds" {
				columns = 3
			}
			if len(row) != columns || f.Heads != nil && len(f.Heads) != columns {
				t.Errorf("%s: %d panels in a row under %d heads, want %d columns",
					f.Name, len(row), len(f.Heads), columns)
			}
			for j, p := range row {
				if !slices.Contains(names, p.Experiment) {
					t.Errorf("%s has the panel %s, which is no experiment", f.Name, p.Experiment)
				}
				title := p.Caption
				if f.Heads != nil {
					title = f.Heads[j] + ": " + title
				}
				if seen[title] {
					t.Errorf("%s has two panels of %q", f.Name, title)
				}
				seen[title] = true
			}
		}
	}
}

// The captions for the sweep and for the items agree with the files.
func TestCaptionsAreTrue(t *testing.T) {
	for _, f := range experiments.Figures(experiments.Names()) {
		for _, row := range f.Rows {
			for j, p := range row {
				text := fatal.Or(experiments.Read(p.Experiment))(t)
				var file struct {
					Title                 string
					Items, Features, Size int
					Contexts, Truth       struct{ Kind string }
					Revenue               struct{ Kind string }
					PositionEffects       []float64 `toml:"position_effects"`
				}
				fatal.If(t, toml.Unmarshal(text, &file))
				effects := "γ = 0"
				if n := len(file.PositionEffects); n > 0 && file.PositionEffects[n-1] != 0 {
					effects = strings.ReplaceAll(fmt.Sprintf("γ = 0, %v, …, %v",
						file.PositionEffects[1], file.PositionEffects[n-1]), "-", "−")
				}
				want := map[string]string{
					"positions": effects,
					"main":      file.Title,
					"worlds":    file.Title,
					"items":     fmt.Sprintf("N = %d", file.Items),
					"sweep":     fmt.Sprintf("N = %d, d = %d, K = %d", file.Items, file.Features, file.Size),
					"warmup":    map[string]string{"gaussian": "Gaussian", "uniform": "Uniform"}[file.Contexts.Kind],
					"unit":      map[string]string{"gaussian": "Gaussian", "uniform": "Uniform"}[file.Contexts.Kind],
					"linear":    fmt.Sprintf("K = %d, d = %d", file.Size, file.Features),
				}[strings.Split(f.Name, "-")[0]]
				expect.Equal(t, p.Caption, want, p.Experiment, "caption")
				if f.Heads == nil {
					continue
				}
				head := strings.ToLower(f.Heads[j])
				if f.Name == "linear" || f.Name == "positions" {
					expect.Equal(t, strings.HasPrefix(head, "equal"), file.Revenue.Kind == "one", p.Experiment,
						"has the revenues", file.Revenue.Kind, "and stands under", f.Heads[j])
					continue
				}
				if truth := map[string]string{"mlp": "realizability",
					"cosine": "misspecification"}[file.Truth.Kind]; f.Name != "items" &&
					!strings.HasPrefix(head, truth) {
					t.Errorf("%s has the truth %s and stands under %q", p.Experiment, file.Truth.Kind, f.Heads[j])
				}
				if f.Name == "warmup" || f.Name == "unit" {
					continue
				}
				if !strings.Contains(head, file.Contexts.Kind) {
					t.Errorf("%s has %s contexts and stands under %q", p.Experiment, file.Contexts.Kind, f.Heads[j])
				}
			}
		}
	}
}

// A figure is available once all of its panels are.
func TestFiguresOfSomeExperiments(t *testing.T) {
	main := experiments.Members("main")
	for _, c := range []struct {
		names []string
		want  []string
	}{
		{main, []string{"main-gaussian", "main-uniform", "main"}},
		{main[:3], []string{"main-gaussian"}},
		{main[1:3], nil},
		{experiments.Members("sweep"), []string{"sweep-gaussian", "sweep-uniform"}},
		{nil, nil},
	} {
		var got []string
		for _, f := range experiments.Figures(c.names) {
			got = append(got, f.Name)
		}
		expect.Equal(t, got, c.want, c.names)
	}
}
