package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/term"

	"vitrine/choice"
	"vitrine/service/api"
)

type optimizeCmd struct {
	File  string `arg:"" optional:"" help:"A JSON request, or a table of items if it ends in .csv, .parquet or .jsonl, which may be compressed; standard input if left out."`
	Table bool   `help:"The input is a table of items, whatever its name."`

	Model   string   `help:"Take the utilities from a model that vitrine fit wrote; the file is a table with its variables." placeholder:"FILE"`
	Outside *float64 `help:"The utility of taking nothing, for a model of data without an outside option." placeholder:"U"`

	MinSize    *int           `help:"Show at least N items." placeholder:"N"`
	MaxSize    *int           `help:"Show at most N items." placeholder:"N"`
	AtLeast    map[string]int `help:"Show at least N items of a group." placeholder:"GROUP=N" mapsep:","`
	AtMost     map[string]int `help:"Show at most N items of a group." placeholder:"GROUP=N" mapsep:","`
	Include    []string       `help:"Show these items, by id." placeholder:"A,B"`
	Exclude    []string       `help:"Do not show these items, by id." placeholder:"A,B"`
	Capacity   *int           `help:"Show items whose spaces sum to at most N." placeholder:"N"`
	MinRevenue *float64       `help:"Show no item with a smaller revenue." placeholder:"R"`
}

func (optimizeCmd) Help() string {
	return `Each customer takes one item of the assortment S or walks away, by the multinomial-logit model: item i with probability exp(utility_i) / (1 + Σ exp(utility_j)), the sum over S. The answer is exactly the S with the largest expected revenue that obeys the rules.

The request is a JSON object, in the words of the service. Only items is required, and in an item id and utility:

    {"items": [{"id": "a", "utility": 1.2, "revenue": 3.0, "groups": ["shoes/boots", "acme"], "space": 2}, …],
     "min_size": 1, "max_size": 5,           how many items
     "limits": [{"group": "shoes", "min": 1, "max": 3}, {"items": ["a", "b"], "max": 1}],    how many items of a group
     "include": ["a"], "exclude": ["b"],     items that must and must not be shown
     "capacity": 10,                         the largest sum of spaces, such as places on a shelf
     "min_revenue": 0.5}                     the smallest revenue of an item that is shown

utility is from -700 to 700; if the rules demand items by number and not only by id, all utilities must lie within 400 of each other. revenue is not negative, and 1 if it is not given. space is a whole number, and every item needs one if the request has a capacity. The group "shoes/boots" is within the group "shoes": the bounds of both hold. Groups may cross, such as brands and kinds, if there is no capacity.

A table of items is CSV, Parquet or JSON Lines with the columns id, utility and optionally revenue, groups and space. Several groups of an item have | between them. Flags give the rules. Flags override the request.

With --model the table has the columns of the model's variables instead of utility. Without a column id the ids are the labels of the alternatives, or the row numbers. The table has a row for each item even if the model was fitted to a wide table. The label is in the column that data.alternative named when the model was fitted to a long table, and otherwise in the column alternative. Rows that the model's filter, exclude or available leaves out are not items, as far as the table has the columns; leave out the row of an outside option. A model that uses position is refused: an item's place is not known before the page is chosen. All rows are one customer's. Under nested logit the answer is exact without rules. Under latent classes and mixed logit the optimum is NP-hard: the answer comes from a local search, and upper_bound is a revenue that no assortment exceeds.

The answer is a JSON object: assortment (ids in the order of the items), expected_revenue (from one customer), outside_probability (that the customer takes nothing), choice_probability (by id) and iterations (the number of searches of the family of assortments).

` + examples(
		"vitrine optimize request.json",
		`echo '{"items":[{"id":"a","utility":1.2,"revenue":3},{"id":"b","utility":2}],"max_size":1}' | vitrine optimize`,
		"vitrine optimize items.csv --max-size 5 --at-most shoes=2,shoes/boots=1 --include a",
		"vitrine optimize items.csv --model model.json --max-size 5",
	)
}

func (c optimizeCmd) Run(ctx context.Context, t terminal) error {
	done := make(chan error, 1)
	go func() { done <- c.optimize(ctx, t) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c optimizeCmd) optimize(ctx context.Context, t terminal) error {
	switch {
	case c.Model != "" && c.File == "":
		return usageError{errors.New("--model needs the file of a table of items")}
	case c.Model == "" && c.Outside != nil:
		return usageError{errors.New("--outside is for --model: utilities of a request are relative to taking nothing")}
	}
	name, input := "standard input", os.Stdin
	if c.File != "" {
		f, err := os.Open(c.File)
		if err != nil {
			return err
		}
		defer f.Close()
		name, input = c.File, f
	} else if term.IsTerminal(int(os.Stdin.Fd())) {
		fmt.Fprintln(t.err, "vitrine: reading the request from the terminal; end it with Ctrl-D")
	}
	var m *choice.Result
	if c.Model != "" {
		var err error
		if m, err = choice.ReadModel(c.Model); err != nil {
			return err
		}
	}
	r, err := c.read(input, m)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	customers := &demand{}
	if m != nil {
		if customers, err = c.demand(ctx, t, r, m); err != nil {
			return err
		}
	}
	c.override(r)
	if err := answer(t, name, r, customers); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (c optimizeCmd) read(f *os.File, m *choice.Result) (*request, error) {
	if c.Table || m != nil || isTable(c.File) {
		return readTable(f, m)
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	return decodeJSON(text)
}

// override replaces rules of the request by flags.
func (c optimizeCmd) override(r *request) {
	if c.MinSize != nil {
		r.MinSize = *c.MinSize
	}
	r.MaxSize, r.Capacity, r.MinRevenue = cmp.Or(c.MaxSize, r.MaxSize), cmp.Or(c.Capacity, r.Capacity),
		cmp.Or(c.MinRevenue, r.MinRevenue)
	for k := range r.Limits {
		l := &r.Limits[k]
		if _, given := c.AtMost[l.Group]; given {
			l.Max = nil
		}
		if _, given := c.AtLeast[l.Group]; given {
			l.Min = 0
		}
	}
	overridden := func(l api.Limit) bool {
		_, most := c.AtMost[l.Group]
		_, least := c.AtLeast[l.Group]
		return (most || least) && l.Min == 0 && l.Max == nil
	}
	r.Limits = slices.DeleteFunc(r.Limits, overridden)
	for _, group := range slices.Sorted(maps.Keys(c.AtMost)) {
		r.Limits = append(r.Limits, api.Limit{Group: group, Max: new(c.AtMost[group])})
	}
	for _, group := range slices.Sorted(maps.Keys(c.AtLeast)) {
		if n := c.AtLeast[group]; n != 0 {
			r.Limits = append(r.Limits, api.Limit{Group: group, Min: n})
		}
	}
	if c.Include != nil {
		r.Include = c.Include
	}
	if c.Exclude != nil {
		r.Exclude = c.Exclude
	}
}

// answer finds the optimum and writes the answer. Warnings begin with the name of the input.
func answer(t terminal, name string, r *request, customers *demand) error {
	family, err := r.family(func(text string) { t.warn(name + ": " + text) })
	if err != nil {
		return err
	}
	best, err := customers.maximize(r, family)
	if err != nil {
		return err
	}
	a := optimizeAnswer{Revenue: best.revenue, Outside: best.probability[0], Iterations: best.iterations, Bound: best.bound}
	for k, i := range best.shown {
		a.Assortment = append(a.Assortment, r.Items[i].ID)
		a.Choice = append(a.Choice, api.Number(r.Items[i].ID, best.probability[k+1]))
	}
	return json.MarshalEncode(jsontext.NewEncoder(t.out), &a)
}

type optimizeAnswer struct {
	Assortment []string   `json:"assortment"`
	Revenue    float64    `json:"expected_revenue"`
	Outside    float64    `json:"outside_probability"`
	Choice     api.Values `json:"choice_probability"`
	Iterations int        `json:"iterations,omitzero"`
	Bound      *float64   `json:"upper_bound,omitzero"`
}
