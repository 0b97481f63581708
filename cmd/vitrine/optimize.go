package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/term"

	"vitrine/internal/hint"
)

type optimizeCmd struct {
	File string `arg:"" optional:"" help:"A JSON request, or a CSV table of items if it ends in .csv; standard input if left out."`
	CSV  bool   `name:"csv" help:"The input is a CSV table of items, whatever its name."`

	Model   string   `help:"Take the utilities from a model that vitrine fit wrote; the file is a CSV table with its variables." placeholder:"FILE"`
	Outside *float64 `help:"The utility of taking nothing, for a model of data without an outside option." placeholder:"U"`

	MinSize     *int           `help:"Show at least N items." placeholder:"N"`
	MaxSize     *int           `help:"Show at most N items." placeholder:"N"`
	AtLeast     map[string]int `help:"Show at least N items of a group." placeholder:"GROUP=N" mapsep:","`
	AtMost      map[string]int `help:"Show at most N items of a group." placeholder:"GROUP=N" mapsep:","`
	BrandAtMost map[string]int `help:"Show at most N items of a brand." placeholder:"BRAND=N" mapsep:","`
	Include     []string       `help:"Show these items, by id." placeholder:"A,B"`
	Exclude     []string       `help:"Do not show these items, by id." placeholder:"A,B"`
	Capacity    *int           `aliases:"space" help:"Show items whose weights sum to at most N." placeholder:"N"`
	MinRevenue  *float64       `help:"Show no item with a smaller revenue." placeholder:"R"`
}

// Help is the tail of the command's help.
func (optimizeCmd) Help() string {
	return `Each customer takes one item of the assortment S or walks away, by the multinomial-logit model: item i with probability exp(utility_i) / (1 + Σ exp(utility_j)), the sum over S. The answer is exactly the S with the largest expected revenue that obeys the rules.

The request is a JSON object. Only items is required, and in an item id and utility:

    {"items": [{"id": "a", "utility": 1.2, "revenue": 3.0, "group": "shoes/boots", "brand": "acme", "weight": 2}, …],
     "min_size": 1, "max_size": 5,           how many items
     "at_least": {}, "at_most": {"shoes": 2, "shoes/boots": 1},   how many items of a group
     "brand_at_most": {"acme": 2},           how many items of a brand
     "include": ["a"], "exclude": ["b"],     items that must and must not be shown
     "capacity": 10,                         the largest sum of weights, such as places on a shelf
     "min_revenue": 0.5}                     the smallest revenue of an item that is shown

utility is from -700 to 700; if the rules demand items by number and not only by id, all utilities must lie within 400 of each other. revenue is not negative, and 1 if it is not given. weight is a whole number, and every item needs one if the request has a capacity. The group "shoes/boots" is within the group "shoes": the bounds of both hold. Brands may cross groups, if there is no capacity and no at_least.

With --model the table has the columns of the model's variables instead of utility. Without a column id the ids are the labels of the alternatives, or the row numbers. The table has a row for each item even if the model was fitted to a wide table, with the label in the column alternative. Under nested logit the answer is exact without rules. Under latent classes and mixed logit the optimum is NP-hard: the answer comes from a local search, and upper_bound is a revenue that no assortment exceeds.

A CSV table has a header with id, utility and optionally revenue, group, brand and weight; flags give the rules. Flags override the request.

The answer is a JSON object: assortment (ids in the order of the items), expected_revenue (from one customer), outside_probability (that the customer takes nothing), choice_probability (by id) and iterations (the number of searches of the family of assortments).

` + examples(
		"vitrine optimize request.json",
		`echo '{"items":[{"id":"a","utility":1.2,"revenue":3},{"id":"b","utility":2}],"max_size":1}' | vitrine optimize`,
		"vitrine optimize items.csv --max-size 5 --at-most shoes=2,shoes/boots=1 --include a",
		"vitrine optimize items.csv --model model.json --max-size 5",
	)
}

// Run reads the request, and prints the answer.
func (c optimizeCmd) Run(ctx context.Context, t terminal) error {
	done := make(chan error, 1)
	go func() { done <- c.optimize(ctx, t) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errors.New("interrupted")
	}
}

func (c optimizeCmd) optimize(ctx context.Context, t terminal) error {
	switch {
	case c.Model != "" && c.File == "":
		return usageError{errors.New("--model needs the file of a table of items")}
	case c.Model == "" && c.Outside != nil:
		return usageError{errors.New("--outside is for --model: utilities of a request are relative to taking nothing")}
	}
	name, text, err := c.read(t)
	if err != nil {
		return err
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	var r *request
	if c.CSV || c.Model != "" || strings.EqualFold(filepath.Ext(c.File), ".csv") {
		r, err = decodeCSV(name, text, c.Model != "")
	} else {
		r, err = decodeJSON(name, text)
	}
	customers := &demand{}
	if err == nil && c.Model != "" {
		customers, err = c.demand(ctx, t, r)
	}
	if err == nil {
		c.override(r)
		err = c.answer(t, r, customers)
	}
	var refused *refusal
	if errors.As(err, &refused) {
		return hint.New(err, "vitrine optimize --help says what a request looks like")
	}
	return err
}

// read returns the input, and its name in errors.
func (c optimizeCmd) read(t terminal) (name string, text []byte, err error) {
	if c.File != "" {
		text, err = os.ReadFile(c.File)
		return c.File, text, err
	}
	if term.IsTerminal(int(os.Stdin.Fd())) {
		fmt.Fprintln(t.err, "vitrine: reading the request from the terminal; end it with Ctrl-D")
	}
	text, err = io.ReadAll(os.Stdin)
	return "standard input", text, err
}

// override replaces fields of the request by flags.
func (c optimizeCmd) override(r *request) {
	if c.MinSize != nil {
		r.minSize = *c.MinSize
	}
	if c.MaxSize != nil {
		r.maxSize = *c.MaxSize
	}
	maps.Copy(r.atLeast, c.AtLeast)
	maps.Copy(r.atMost, c.AtMost)
	maps.Copy(r.brandAtMost, c.BrandAtMost)
	if c.Include != nil {
		r.include = c.Include
	}
	if c.Exclude != nil {
		r.exclude = c.Exclude
	}
	if c.Capacity != nil {
		r.capacity = c.Capacity
	}
	if c.MinRevenue != nil {
		r.minRevenue = c.MinRevenue
	}
}

// answer finds the optimum and writes the answer.
func (optimizeCmd) answer(t terminal, r *request, customers *demand) error {
	family, err := r.family(t.warn)
	if err != nil {
		return err
	}
	best, err := customers.maximize(r, family)
	if err != nil {
		return err
	}
	s, p := best.shown, best.probability

	buffered := bufio.NewWriter(t.out)
	out := jsontext.NewEncoder(buffered)
	tokens := []jsontext.Token{jsontext.BeginObject, jsontext.String("assortment"), jsontext.BeginArray}
	for _, i := range s {
		tokens = append(tokens, jsontext.String(r.ids[i]))
	}
	tokens = append(tokens, jsontext.EndArray,
		jsontext.String("expected_revenue"), jsontext.Float(best.revenue),
		jsontext.String("outside_probability"), jsontext.Float(p[0]),
		jsontext.String("choice_probability"), jsontext.BeginObject)
	for k, i := range s {
		tokens = append(tokens, jsontext.String(r.ids[i]), jsontext.Float(p[k+1]))
	}
	tokens = append(tokens, jsontext.EndObject)
	if best.iterations > 0 {
		tokens = append(tokens, jsontext.String("iterations"), jsontext.Int(int64(best.iterations)))
	}
	if best.bound != nil {
		tokens = append(tokens, jsontext.String("upper_bound"), jsontext.Float(*best.bound))
	}
	tokens = append(tokens, jsontext.EndObject)
	for _, token := range tokens {
		if err := out.WriteToken(token); err != nil {
			return err
		}
	}
	return buffered.Flush()
}
