package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"vitrine/bandit/policy"
	"vitrine/config"
	"vitrine/docs/algorithms"
	"vitrine/internal/hint"
	"vitrine/internal/option"
	"vitrine/internal/settings"
)

type describeCmd struct {
	Name string `arg:"" help:"A policy, a utility family, a part of a world, a constraint or a pool, by its name in vitrine list." complete:"names"`
	Page bool   `help:"Print the policy's page instead: its equations, sources and code."`
}

func (describeCmd) Help() string {
	return "For each option it prints the key and the default as in a file, the legal values and the meaning. A " +
		"name in several tables, such as uniform, is described for each.\n\n" +
		examples("vitrine describe onl-mnl", "vitrine describe onl-mnl --page", "vitrine describe mlp")
}

func (c describeCmd) Run(t terminal) error {
	var found []config.Description
	for _, d := range config.Descriptions() {
		if d.Name == c.Name {
			found = append(found, d)
		}
	}
	if len(found) == 0 {
		return hint.New(usagef("nothing has the name %q%s", c.Name, hint.Legal(c.Name, describable())),
			"vitrine list prints all names")
	}
	if c.Page {
		return c.page(t, found)
	}
	for i, d := range found {
		if i > 0 {
			fmt.Fprintln(t.out)
		}
		describe(t.out, d)
	}
	return nil
}

// page prints the page of the policy among the descriptions.
func (c describeCmd) page(t terminal, found []config.Description) error {
	for _, d := range found {
		if d.Page != "" {
			text, err := algorithms.Page(d.Page)
			if err != nil {
				return err
			}
			_, err = io.WriteString(t.out, text)
			return err
		}
	}
	return fmt.Errorf("%s has no page: only some policies have one", c.Name)
}

// describable returns the names that can be described, once each.
func describable() []string {
	var list []string
	for _, d := range config.Descriptions() {
		list = append(list, d.Name)
	}
	return unique(list)
}

func describe(out io.Writer, d config.Description) {
	fmt.Fprintf(out, "%s %s: %s\n", d.Table, d.Name, d.Doc)
	if d.Table == "policy" {
		fmt.Fprintf(out, "\nChoose it %s.\nAn offer costs O(%s) and an observed round O(%s),\n%s.\n", d.Choose, d.Offer,
			d.Round, policy.CostLegend)
	}
	if len(d.Options) > 0 {
		fmt.Fprintln(out)
		w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
		for _, o := range d.Options {
			fmt.Fprintf(w, "  %s\t%s\t%s\n", assignment(o), legal(o), o.Doc)
		}
		w.Flush()
	}
	if d.Table != "policy" {
		if d.Source != "" {
			fmt.Fprintf(out, "\nIts data: %s\n", d.Source)
		}
		return
	}
	fmt.Fprintln(out, "\nA file's [[policy]] may also have a label, baselines = \"theory\" or \"tuned\", and takes = \"first\":\n"+
		"then it learns only the first item that a visitor takes.")
	switch {
	case d.Unfit != "":
		fmt.Fprintf(out, "It cannot be the policy of a placement: it %s.\n", d.Unfit)
	case len(d.Serving) > 0:
		var differ []string
		for _, key := range slices.Sorted(maps.Keys(d.Serving)) {
			differ = append(differ, key+" = "+value(d.Serving[key]))
		}
		fmt.Fprintf(out, "In a placement of the service the defaults are %s.\n", strings.Join(differ, ", "))
	}
	if d.Page != "" {
		fmt.Fprintf(out, "Its page is docs/algorithms/%s.md: vitrine describe %s --page.\n", d.Page, d.Name)
	}
}

// assignment returns an option and its default as in a file.
func assignment(o option.Option) string {
	if o.Default == nil {
		return o.Key
	}
	return o.Key + " = " + value(o.Default)
}

// legal returns an option's legal values.
func legal(o option.Option) string {
	if o.Required {
		return o.Type + ", required"
	}
	if r := o.Range(); r != "" && o.Type != "string" {
		return o.Type + ", " + r
	} else if r != "" {
		return r
	}
	return o.Type
}

// value writes a value as in a file.
func value(v any) string {
	if table, ok := v.(map[string]any); ok {
		pairs := []string{"kind = " + value(table["kind"])}
		for _, key := range slices.Sorted(maps.Keys(table)) {
			if key != "kind" {
				pairs = append(pairs, key+" = "+value(table[key]))
			}
		}
		return "{ " + strings.Join(pairs, ", ") + " }"
	}
	if s, ok := v.(string); ok {
		return fmt.Sprintf("%q", s)
	}
	return settings.Literal(v)
}
