package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"vitrine/choice"
)

type predictCmd struct {
	Model string `arg:"" help:"A model written by vitrine fit --out."`
	Data  string `arg:"" help:"A table with the columns of the one that the model was fitted to."`

	Shares           bool     `help:"Print the shares of the alternatives instead of the probabilities of every choice." xor:"output"`
	Individual       bool     `help:"Print the coefficients of each decision maker: the mean and the deviation given its choices, for a mixed logit." xor:"output"`
	Score            bool     `help:"Print how well the model predicts each choice of the table, ignoring the decision maker's other choices." xor:"output"`
	Elasticities     string   `help:"Print the elasticities of the shares with respect to a variable, or to the variables of a coefficient." placeholder:"NAME" xor:"output"`
	WillingnessToPay []string `help:"Print the willingness to pay for one unit more of the variables of these coefficients, in units of the price: below 0 for what is disliked." placeholder:"A,B" xor:"output"`
	Price            string   `help:"The coefficient of the price, for --willingness-to-pay. Must be fixed, not random." placeholder:"NAME"`
}

func (predictCmd) Help() string {
	return `The probabilities are CSV with the columns choice (counted from 1, without the choices that filter and exclude leave out), alternative and probability; a row with an empty alternative is the outside option. The column chosen is read only for --score and --individual, the panel only for --individual, and the weight only for --score, --shares and --elasticities. --shares, --elasticities, --willingness-to-pay and --individual also print CSV; --score prints a JSON object. A variable of the decision maker, such as an income, has one elasticity for each share.

` + examples(
		"vitrine predict model.json next-week.csv > probabilities.csv",
		"vitrine predict model.json trips.csv --elasticities cost",
		`vitrine predict model.json trips.csv --willingness-to-pay "time,comfort" --price cost`,
	)
}

func (c predictCmd) Run(ctx context.Context, t terminal) error {
	if len(c.WillingnessToPay) > 0 != (c.Price != "") {
		return usageError{errors.New("--willingness-to-pay and --price go together")}
	}
	r, err := choice.ReadModel(c.Model)
	if err != nil {
		return err
	}
	spec := *r.Spec
	if spec.Data.Cluster = ""; !c.Individual {
		spec.Data.Panel = ""
		if !c.Score {
			spec.Data.Chosen = ""
		}
	}
	if !c.Score && !c.Shares && c.Elasticities == "" {
		spec.Data.Weight = ""
	}
	data, err := readChoices(ctx, t, c.Data, &spec)
	if err != nil {
		return err
	}
	warnUnfitted(t, c.Data, r, data)
	switch {
	case c.Score:
		score, err := r.Score(data)
		if err != nil {
			return err
		}
		values := map[string]any{"choices": score.Choices, "log_likelihood": score.LogLikelihood,
			"per_choice": score.PerChoice, "null_log_likelihood": score.Null, "predicted": score.Hits}
		if math.IsInf(score.LogLikelihood, -1) {
			t.warn(c.Data + ": the model gives some choice a probability of 0: check the data for values out of scale")
			values["log_likelihood"], values["per_choice"] = nil, nil // JSON has no −∞
		}
		return t.printJSON(values)
	case c.Individual:
		return c.individuals(t, r, data)
	case c.Shares:
		return c.shares(t, r, data)
	case c.Elasticities != "":
		return c.elasticities(t, r, data)
	case len(c.WillingnessToPay) > 0:
		return c.pay(t, r)
	}
	return c.probabilities(ctx, t, r, data)
}

// warnUnfitted warns of a file's alternatives that a model lacks.
func warnUnfitted(t terminal, file string, r *choice.Result, d *choice.Data) {
	for _, a := range d.Alternatives {
		if !slices.Contains(r.Alternatives, a) {
			t.warn(fmt.Sprintf("%s: the model was fitted without alternative %q: it has no constant or "+
				"coefficient of its own", file, a))
		}
	}
}

// writeCSV writes rows to standard output.
func writeCSV(t terminal, write func(row func(fields ...string))) error {
	out := bufio.NewWriter(t.out)
	w := csv.NewWriter(out)
	write(func(fields ...string) { w.Write(fields) })
	w.Flush()
	return errors.Join(w.Error(), out.Flush())
}

// label returns the label of an alternative, "" for the outside option, which comes last.
func label(d *choice.Data, i int) string {
	if i == len(d.Alternatives) {
		return ""
	}
	return d.Alternatives[i]
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'g', 10, 64) }

func (predictCmd) probabilities(ctx context.Context, t terminal, r *choice.Result, d *choice.Data) error {
	predictions, err := r.Predict(d)
	if err != nil {
		return err
	}
	err = writeCSV(t, func(row func(...string)) {
		row("choice", "alternative", "probability")
		for s, p := range predictions {
			if ctx.Err() != nil {
				return
			}
			number := strconv.Itoa(s + 1)
			for i, a := range p.Alternatives {
				row(number, d.Alternatives[a], decimal(p.Probabilities[i]))
			}
			if d.Outside {
				row(number, "", decimal(p.Outside))
			}
		}
	})
	return cmp.Or(ctx.Err(), err)
}

func (predictCmd) individuals(t terminal, r *choice.Result, d *choice.Data) error {
	list, err := r.Individuals(d)
	if err != nil {
		return fmt.Errorf("--individual: %w", err)
	}
	return writeCSV(t, func(row func(...string)) {
		line := []string{cmp.Or(r.Spec.Data.Panel, "choice")}
		for _, v := range r.Spec.Model.Random {
			line = append(line, v.Coefficient, "sd of "+v.Coefficient)
		}
		row(line...)
		for _, one := range list {
			name := strconv.Itoa(one.Panel + 1)
			if one.Panel < len(d.PanelNames) {
				name = d.PanelNames[one.Panel]
			}
			line = append(line[:0], name)
			for k := range one.Mean {
				line = append(line, decimal(one.Mean[k]), decimal(one.SD[k]))
			}
			row(line...)
		}
	})
}

func (predictCmd) shares(t terminal, r *choice.Result, d *choice.Data) error {
	shares, err := r.Shares(d)
	if err != nil {
		return err
	}
	return writeCSV(t, func(row func(...string)) {
		row("alternative", "share")
		for i, v := range shares {
			row(label(d, i), decimal(v))
		}
	})
}

func (c predictCmd) elasticities(t terminal, r *choice.Result, d *choice.Data) error {
	e, err := r.Elasticities(d, c.Elasticities)
	if err != nil {
		return fmt.Errorf("--elasticities: %w", err)
	}
	if d.Common(c.Elasticities) {
		return writeCSV(t, func(row func(...string)) {
			row("share of", "elasticity")
			for i, line := range e {
				row(label(d, i), decimal(line[0]))
			}
		})
	}
	return writeCSV(t, func(row func(...string)) {
		row("share of", c.Elasticities+" of", "elasticity")
		for i, line := range e {
			for j, v := range line {
				row(label(d, i), d.Alternatives[j], decimal(v))
			}
		}
	})
}

func (c predictCmd) pay(t terminal, r *choice.Result) error {
	var estimates []choice.Estimate
	for _, name := range c.WillingnessToPay {
		e, err := r.WillingnessToPay(strings.TrimSpace(name), c.Price)
		if err != nil {
			return fmt.Errorf("--willingness-to-pay: %w", err)
		}
		estimates = append(estimates, e)
	}
	return writeCSV(t, func(row func(...string)) {
		row("coefficient", "worth", "standard_error")
		for i, e := range estimates {
			row(c.WillingnessToPay[i], decimal(e.Value), decimal(e.StandardError))
		}
	})
}
