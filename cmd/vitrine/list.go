package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"vitrine/bandit/policy"
	"vitrine/config"
	"vitrine/internal/hint"
	"vitrine/paper/experiments"
	"vitrine/paper/geometry"
	"vitrine/paper/sessions"
	"vitrine/paper/theory"
	"vitrine/paper/tractability"
)

type listCmd struct {
	What  string `arg:"" optional:"" help:"One of policies, utilities, environments, pools, constraints, experiments, tunings; all of them if left out." complete:"lists"`
	Print string `help:"Print the file of this experiment or tuning." placeholder:"NAME" complete:"files"`
}

func (listCmd) Help() string {
	return examples("vitrine list policies", "vitrine list experiments --print main-uniform-misspecified > "+
		"mine.toml", "vitrine list tunings --print ucb-mnl-main > my-tuning.toml")
}

// lists are the tables that can be listed.
var lists = []string{"policies", "utilities", "environments", "pools", "constraints", "experiments", "tunings"}

func (c listCmd) Run(t terminal) error {
	if slices.Contains(experiments.WithoutFile(), c.Print) {
		return usagef("%s has no file: it is part of the program", c.Print)
	}
	if c.Print != "" {
		text, err := experiments.Read(c.Print)
		if err != nil {
			text, err = experiments.ReadTuning(c.Print)
		}
		if err != nil {
			return hint.New(fmt.Errorf("there is no experiment and no tuning %q%s", c.Print,
				hint.Near(c.Print, append(experiments.Names(), experiments.Tunings()...), "")),
				"vitrine list experiments and vitrine list tunings name them")
		}
		_, err = t.out.Write(text)
		return err
	}
	panels, err := panels()
	if err != nil {
		return err
	}
	tunings, err := embeddedTunings()
	if err != nil {
		return err
	}
	if c.What != "" && !slices.Contains(lists, c.What) {
		return usagef("there is no list of %q%s", c.What,
			hint.Near(c.What, lists, ": there are "+strings.Join(lists, ", ")))
	}
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	for _, list := range []struct {
		what    string
		entries []config.Description
	}{
		{"policies", config.Descriptions("policy")},
		{"utilities", config.Descriptions("utility")},
		{"environments", config.Descriptions("contexts", "truth", "revenue", "baskets", "drift")},
		{"pools", config.Descriptions("pool")},
		{"constraints", config.Descriptions("constraint")},
		{"experiments", panels},
		{"tunings", tunings},
	} {
		if c.What == "" {
			fmt.Fprintf(w, "%s\n", list.what)
		} else if c.What != list.what {
			continue
		}
		for _, e := range list.entries {
			name := e.Name
			if list.what == "environments" {
				name = e.Table + " " + e.Name
			}
			fmt.Fprintf(w, "  %s\t%s\n", name, e.Doc)
		}
		if list.what == "policies" {
			fmt.Fprintln(w, "(vitrine describe NAME has its options, when to choose it, and what it costs)")
		}
	}
	return w.Flush()
}

func listed(name, doc string) config.Description {
	return config.Description{Policy: policy.Policy{Name: name, Doc: doc}}
}

// panels returns the embedded experiments and their groups.
func panels() ([]config.Description, error) {
	var entries []config.Description
	for _, g := range experiments.Groups() {
		entries = append(entries, listed(g, fmt.Sprintf("all %d experiments called %s-…", len(experiments.Members(g)),
			g)))
	}
	entries = append(entries,
		listed(experiments.GeometricCondition, geometry.Title),
		listed(experiments.Theory, theory.Title),
		listed(experiments.Tractability, tractability.Title),
		listed(experiments.Sessions, sessions.Default(nil).Title),
		listed(experiments.Rivers, sessions.Rivers(nil).Title),
	)
	for _, name := range experiments.Names() {
		f, err := openExperiment("")(name)
		if err != nil {
			return nil, err
		}
		entries = append(entries, listed(name, f.Title))
	}
	return entries, nil
}

func embeddedTunings() ([]config.Description, error) {
	var entries []config.Description
	for _, name := range experiments.Tunings() {
		t, err := loadTuning(name)
		if err != nil {
			return nil, err
		}
		entries = append(entries, listed(name, fmt.Sprintf("%s: %s of %s", t.Title, strings.Join(t.Parameters, ", "),
			t.Policy)))
	}
	return entries, nil
}
