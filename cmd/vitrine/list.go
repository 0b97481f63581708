package main

import (
	"fmt"
	"text/tabwriter"

	"vitrine/config"
	"vitrine/experiments"
)

type listCmd struct {
	What string `arg:"" optional:"" enum:",policies,utilities,environments,experiments,constraints" default:"" help:"One of policies, utilities, environments, experiments, constraints; all of them if left out."`
	Show string `help:"Print the file of this experiment." placeholder:"NAME"`
}

// Help is the tail of the command's help.
func (listCmd) Help() string {
	return examples("vitrine list policies", "vitrine list experiments --show main-uniform-misspecified > mine.toml")
}

// Run prints the catalog.
func (c listCmd) Run(t terminal) error {
	if c.Show != "" {
		text, err := experiments.Read(c.Show)
		if err != nil {
			return hinted{fmt.Errorf("there is no experiment %q", c.Show), "vitrine list experiments names them"}
		}
		_, err = t.out.Write(text)
		return err
	}
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	print := func(what string, entries []config.Entry) {
		if c.What != "" && c.What != what {
			return
		}
		if c.What == "" {
			fmt.Fprintf(w, "%s\n", what)
		}
		for _, e := range entries {
			fmt.Fprintf(w, "  %s\t%s\n", e.Name, e.Doc)
		}
	}
	print("policies", config.Policies())
	print("utilities", config.Utilities())
	print("environments", config.Environments())
	print("constraints", config.Constraints())
	panels, err := panels()
	if err != nil {
		return err
	}
	print("experiments", panels)
	return w.Flush()
}

// panels returns the embedded experiments and their groups.
func panels() ([]config.Entry, error) {
	var entries []config.Entry
	for _, g := range experiments.Groups() {
		entries = append(entries, config.Entry{Name: g, Doc: fmt.Sprintf("all %d experiments called %s-…", len(experiments.Members(g)), g)})
	}
	for _, name := range experiments.Names() {
		text, err := experiments.Read(name)
		if err != nil {
			return nil, err
		}
		f, err := config.Load(name+".toml", text)
		if err != nil {
			return nil, err
		}
		entries = append(entries, config.Entry{Name: name, Doc: f.Title})
	}
	return entries, nil
}
