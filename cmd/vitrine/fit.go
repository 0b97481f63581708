package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"vitrine/choice"
	"vitrine/figure"
	"vitrine/internal/hint"
)

type fitCmd struct {
	Data string `arg:"" help:"A table of choices: CSV, Parquet or JSON Lines, plain or compressed with gzip or zstd."`
	Spec string `arg:"" help:"A specification of the model, in TOML."`

	Out     string   `help:"Write the model to a file, for vitrine predict." placeholder:"FILE"`
	Matrix  string   `help:"Print the covariance or the correlation of the estimates, too." placeholder:"covariance|correlation" enum:",covariance,correlation" default:""`
	Figure  string   `help:"Draw the coefficients with their 95% intervals; the file ends in .svg, .png or .pdf." placeholder:"FILE"`
	Format  string   `help:"What to print: text (the default), latex or json." placeholder:"text|latex|json" enum:"text,latex,json" default:"text"`
	Errors  string   `help:"Standard errors: classic (the default), robust or clustered." placeholder:"classic|robust|clustered" enum:"classic,robust,clustered" default:"classic"`
	Against []string `help:"Compare with models of the same choices, written by --out: a table, and likelihood ratio and Wald tests." placeholder:"FILE,…"`
	Drop    string   `help:"Test the independence of irrelevant alternatives without this alternative (Hausman and McFadden)." placeholder:"ALTERNATIVE"`
	Holdout float64  `help:"Fit to all but this share of the choices, drawn with --seed, and score the model on that share." placeholder:"SHARE"`
	Seed    uint64   `help:"Seed that draws the choices held out (default: 1)." default:"1" placeholder:"N"`
	Workers int      `help:"Goroutines (default: one for each processor). The result is the same." placeholder:"N"`
}

func (fitCmd) Help() string {
	return `The specification says how the table holds choices and which terms a utility has:

    [data]
    form = "long"                     a row for each alternative; "wide": a row for each choice
    choice = ["trip"]                 long: the columns that identify a choice; its rows are consecutive
    alternative = "mode"              long: the column of labels
    chosen = "chosen"                 long: a condition, true or 1 in the chosen row; wide: the column, or an expression, of the chosen label
    names = "{variable}_{alternative}"    wide: how columns are named
    alternatives = ["bus", "car"]     wide: the labels; long: their order
    available = "seats > 0"           a condition on rows
    outside = "implicit"              an option of utility 0, chosen if no row is; "explicit", with outside_alternative = "none"; "absent" (the default)
    labels = {1 = "bus", 2 = "car"}   labels for the table's codes
    filter = "year == 1989"           a condition on rows
    exclude = ["air"]                 alternatives to leave out, with the choices that took them or offer no other
    delimiter = ";"                   of CSV, instead of a comma
    derive = ["bus_time = bus_wait + bus_ride"]   further columns, which names may use
    weight = "w"                      of a choice
    panel = "traveller"               the column that identifies the decision maker, with the choices of each together
    cluster = "district"              the column that identifies clusters, for --errors clustered

    [utility]
    constants = true                  a constant for each alternative except the reference
    reference = "bus"                 (default: the outside option, or else the first alternative)
    generic = ["cost", "log(time)"]   variables with one coefficient
    individual = ["income"]           variables with a coefficient for each alternative except the reference
    specific = ["time"]               variables with a coefficient for each alternative
    [[utility.terms]]                 a coefficient in some utilities; terms of one name share it
    name = "comfort"
    variable = "seats"
    alternatives = ["bus", "train"]
    [utility.network]                 a non-linear part, the same for all alternatives; kind = "mnl" only
    variables = ["cost", "time"]      its inputs, which are standardised
    hidden = [8]                      widths of the hidden layers
    activation = "tanh"               or sigmoid, relu, softplus, sine
    penalty = 1.0                     times half the squares of its parameters
    starts = 3                        random starts (default: 3)
    seed = 0                          seed of the starts (default: 0)

    [model]
    kind = "nested"                   "mnl" (the default), "nested", "mixed" or "latent"
    [[model.nests]]                   nested: similar alternatives; one in no nest is its own nest
    name = "public"
    alternatives = ["bus", "train"]
    [[model.random]]                  mixed: a coefficient that varies between decision makers
    coefficient = "cost"
    distribution = "normal"           or lognormal, uniform, triangular
    [model]
    draws = 500                       mixed: Halton draws for each decision maker (default: 500)
    correlated = true                 mixed: normal and lognormal coefficients vary together

    [model]
    kind = "latent"                   classes of decision makers, each with its own coefficients
    classes = 2
    membership = ["income"]           what the class probabilities depend on
    starts = 10                       random starts (default: 10)
    seed = 0                          seed of the starts (default: 0)

Variables are columns or expressions of them, with or without a name ("hours = time / 60"): + - * / **, comparisons (1 or 0, as in "cost * (pass == 0)"), "a ? b : c", exp, log, sqrt, pow. With a missing number, which is no error there, != holds and all other comparisons fail: leave such rows out with filter = "income == income". They may use the columns alternative (the label) and position (the place of the row in its choice).

` + examples(
		"vitrine fit trips.csv trips.toml",
		"vitrine fit trips.parquet trips.toml --errors robust --out model.json",
		"vitrine fit trips.csv larger.toml --against model.json --drop bus",
		"vitrine fit trips.csv.zst trips.toml --holdout 0.2 --format latex --figure trips.pdf",
	)
}

func (c fitCmd) Run(ctx context.Context, t terminal) error {
	if _, err := formatOf(c.Figure); err != nil {
		return err
	}
	if c.Matrix != "" && c.Format != "text" {
		return usageError{errors.New("--matrix goes with --format text; the model in JSON has the covariance")}
	}
	for _, path := range []string{c.Out, c.Figure} { // a fit may take hours, and its result would be lost
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return err
		}
	}
	var others []*choice.Result
	for _, path := range c.Against {
		other, err := choice.ReadModel(path)
		if err != nil {
			return fmt.Errorf("--against: %w", err)
		}
		others = append(others, other)
	}
	r, data, held, err := c.fit(ctx, t)
	if err != nil {
		return err
	}
	// Everything that can fail comes before the first file and the report.
	var after bytes.Buffer
	if r.Converged {
		if err := c.compare(ctx, &after, r, others, data); err != nil {
			return err
		}
		if held != nil {
			score, err := r.Score(held)
			if err != nil {
				return err
			}
			fmt.Fprintf(&after, "Held out with seed %d: %d choices, log-likelihood %.4f (%.6f a choice; at random %.4f), "+
				"%.1f%% of choices predicted.\n", c.Seed, score.Choices, score.LogLikelihood, score.PerChoice, score.Null,
				100*score.Hits)
		}
		if err := c.write(r); err != nil {
			return err
		}
	}
	return c.print(t, r, after.Bytes())
}

// fit reads the specification and the choices, and fits the model to those that are not held out.
func (c fitCmd) fit(ctx context.Context, t terminal) (r *choice.Result, data, held *choice.Data, err error) {
	spec, err := choice.ReadSpecFile(c.Spec)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, nil, err
	case err != nil:
		return nil, nil, nil, hint.New(err, "vitrine fit --help says what a specification looks like")
	}
	if data, err = readChoices(ctx, t, c.Data, spec); err != nil {
		return nil, nil, nil, err
	}
	if err := spec.CheckHausmanMcFadden(data, c.Drop, c.Errors); c.Drop != "" && err != nil { // a fit may take hours
		return nil, nil, nil, fmt.Errorf("--drop: %w", err)
	}
	if len(data.Unmet) > 0 {
		t.warn(fmt.Sprintf("%s: no row offers %s, which data.exclude names", c.Data, strings.Join(data.Unmet, ", ")))
	}
	if c.Holdout != 0 {
		if data, held, err = data.Split(c.Holdout, c.Seed); err != nil {
			return nil, nil, nil, usagef("--holdout: %w", err)
		}
	}
	r, err = choice.Fit(ctx, spec, data, choice.Options{Errors: c.Errors, Workers: c.Workers,
		Watch: func(s choice.Step) {
			fmt.Fprintf(t.err, "vitrine: step %d: log-likelihood %.4f of %d choices\n", s.Step, s.LogLikelihood,
				s.Choices)
		}})
	if err != nil {
		unidentified := new(choice.IdentificationError)
		err, is := fmt.Errorf("%s: %w", c.Spec, err), errors.As(err, &unidentified)
		if is {
			err = hint.New(err, "leave one of them out, or give constants a reference")
		}
		return nil, nil, nil, err
	}
	return r, data, held, nil
}

// write writes the files that the flags name.
func (c fitCmd) write(r *choice.Result) error {
	if c.Out != "" {
		if err := r.Write(c.Out); err != nil {
			return err
		}
	}
	if c.Figure == "" {
		return nil
	}
	return drawCoefficients(c.Figure, r)
}

// print prints the model and the tests that come after it. JSON on standard output is the model alone.
func (c fitCmd) print(t terminal, r *choice.Result, after []byte) (err error) {
	var text []byte
	w := t.err
	switch c.Format {
	case "latex":
		text = []byte(r.LaTeX())
	case "json":
		if text, err = r.JSON(); err != nil {
			return err
		}
	default:
		text, w = []byte(r.Text()), t.out
	}
	if c.Matrix != "" {
		text = append(text, "\n"+r.Matrix(c.Matrix == "correlation")...)
	}
	t.out.Write(text)
	if !r.Converged {
		return notConverged(c, r)
	}
	_, err = w.Write(after)
	return err
}

// compare prints how the model compares with others, and with itself without an alternative.
func (c fitCmd) compare(ctx context.Context, w io.Writer, r *choice.Result, others []*choice.Result,
	data *choice.Data) error {
	var tests []string
	for i, other := range others {
		lines, err := r.Against(c.Against[i], other)
		if err != nil {
			return fmt.Errorf("--against %s: %w", c.Against[i], err)
		}
		tests = append(tests, lines...)
	}
	if others != nil {
		table := choice.Compare(append([]string{"this model"}, c.Against...), append([]*choice.Result{r}, others...))
		fmt.Fprintf(w, "\n%s%s\n", table, strings.Join(tests, "\n"))
	}
	if c.Drop != "" {
		test, err := r.HausmanMcFadden(ctx, data, c.Drop)
		if err != nil {
			return fmt.Errorf("--drop: %w", err)
		}
		fmt.Fprintf(w, "Hausman–McFadden test without %s: %v.\n", c.Drop, test)
	}
	return nil
}

// notConverged is the error of estimates that are printed, but must not be used.
func notConverged(c fitCmd, r *choice.Result) error {
	err := fmt.Errorf("%s: the fit did not converge after %d steps", c.Spec, r.Steps)
	if why := r.Separation(); why != "" {
		err = fmt.Errorf("%s: %s", c.Spec, why)
	}
	if c.Out != "" {
		err = fmt.Errorf("%w; %s is not written", err, c.Out)
	}
	if r.Separated != nil {
		return err
	}
	return hint.New(err, "leave out the variables that predict choices perfectly, or fit a simpler model")
}

// formatOf returns the format that the name of a picture's file asks for, and any format if there is no picture.
func formatOf(path string) (figure.Format, error) {
	for _, f := range figure.Formats() {
		if path == "" || filepath.Ext(path) == "."+f.Name {
			return f, nil
		}
	}
	return figure.Format{}, usagef("--figure %s: the name must end in .svg, .png or .pdf", path)
}

// drawCoefficients draws the coefficients of a model.
func drawCoefficients(path string, r *choice.Result) error {
	format, err := formatOf(path)
	if err != nil {
		return err
	}
	f := figure.Forest{Title: r.Kind(), Axis: "coefficient", Subtitle: fmt.Sprintf("estimates and 95%% intervals of %d "+
		"choices, %s standard errors", r.Choices, cmp.Or(r.Errors, "classic"))}
	low, high := r.Intervals(0.95)
	for j, name := range r.Names[:r.Listed()] {
		f.Rows = append(f.Rows, figure.ForestRow{Name: name, Value: r.Coefficients[j], Low: low[j], High: high[j]})
	}
	return figure.Write(strings.TrimSuffix(path, "."+format.Name), f, format)
}

// readChoices reads a table, and shows its progress.
func readChoices(ctx context.Context, t terminal, path string, spec *choice.Spec) (*choice.Data, error) {
	const unit = 1000 // a bar counts ints
	bar := stages{w: t.err}
	defer bar.close()
	d, err := choice.Load(ctx, path, spec, func(done, total int64) {
		bar.report("reading "+path, int(unit*done/max(total, 1)), unit)
	})
	if err == nil && d.Dropped > 0 {
		fmt.Fprintf(t.err, "vitrine: %s: %d choices of excluded alternatives are left out\n", path, d.Dropped)
	}
	return d, err
}
