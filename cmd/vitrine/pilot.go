package main

import (
	"fmt"
	"math"
	"os"

	"vitrine/choice"
	"vitrine/service/setup"
)

type pilotCmd struct {
	Model       string  `arg:"" help:"A model that vitrine fit wrote with --out."`
	Placement   string  `arg:"" help:"The configuration of a placement, as PUT takes it."`
	NoLearning  bool    `help:"Show the model's best page in every request, and learn nothing."`
	Pessimistic float64 `placeholder:"ERRORS" help:"Show the best page under utilities lowered by ERRORS standard errors, and learn nothing; 0 turns this off."`
}

func (pilotCmd) Help() string {
	return `It prints the placement with the policy onl-mnl (or greedy, if the placement names it), whose pilot estimate is the model: the first page is already the model's best one, and no page is drawn for a warm-up. If the placement names the policy auto, the model and its covariance become the prior of auto.

The model is a multinomial logit with an outside option. A coefficient belongs to a number of the placement's features of its name, or to a value of a category that is spelled as an expression of the specification, brand == "acme". A term of the variable "1" in all utilities is the intercept.

With --no-learning the policy is greedy with update = "none", whose estimate stays the model.

With --pessimistic 1 the policy is also greedy with update = "none", but maximises a lower bound of the revenue: before it compares pages, it lowers each item's utility by one standard error, computed from the model's covariance. It avoids items that look good only because the log barely shows any like them. Use it if the log's pages were good already and few of them were drawn by chance; otherwise it saves nothing and may cost revenue.

` + examples("vitrine pilot model.json home.json > warm.json", "vitrine pilot model.json home.json --no-learning > fixed.json",
		"vitrine pilot model.json home.json --pessimistic 1 > careful.json")
}

func (c pilotCmd) Run(t terminal) error {
	if !(c.Pessimistic >= 0 && c.Pessimistic <= math.MaxFloat64) {
		return usagef("--pessimistic %v: must be a number of standard errors, at least 0", c.Pessimistic)
	}
	r, err := choice.ReadModel(c.Model)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(c.Placement)
	if err != nil {
		return err
	}
	config, err := setup.Parse(text)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Placement, err)
	}
	weights, covariance, err := config.Weights(r)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Model, err)
	}
	out, err := setup.Pilot(text, weights, covariance, c.NoLearning, c.Pessimistic)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Placement, err)
	}
	_, err = fmt.Fprintf(t.out, "%s\n", out)
	return err
}
