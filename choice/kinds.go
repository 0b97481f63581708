package choice

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// Model selects the family of choice models.
type Model struct {
	Kind   string   `toml:"kind" json:"kind,omitempty"`     // "mnl" (""), "nested", "mixed" or "latent"
	Nests  []Nest   `toml:"nests" json:"nests,omitempty"`   // for a nested logit
	Random []Random `toml:"random" json:"random,omitempty"` // varying coefficients of a mixed logit
	// whether a mixed logit's coefficients vary together
	Correlated bool `toml:"correlated" json:"correlated,omitempty"`
	// draws per decision maker in a mixed logit; 0 means 500
	Draws int `toml:"draws" json:"draws,omitempty"`

	Classes int `toml:"classes" json:"classes,omitempty"` // number of classes in a latent class model
	// variables that determine class probabilities, each taken from the decision maker's first row
	Membership []string `toml:"membership" json:"membership,omitempty"`
	// number of random starts for a latent class model; 0 means 10
	Starts int    `toml:"starts" json:"starts,omitempty"`
	Seed   uint64 `toml:"seed" json:"seed,omitempty"` // seeds the starts
}

// The memory of a fit grows with the square of the classes, and with the draws of all decision makers.
const maxClasses, maxDraws = 100, 100_000

// check returns an error that names the first invalid field.
func (m *Model) check() error {
	if m.Kind != "nested" && len(m.Nests) > 0 {
		return fmt.Errorf(`model.nests needs kind = "nested"`)
	}
	if m.Kind != "mixed" && (len(m.Random) > 0 || m.Draws != 0 || m.Correlated) {
		return fmt.Errorf(`model.random, correlated and draws need kind = "mixed"`)
	}
	if m.Kind != "latent" && (m.Classes != 0 || len(m.Membership) > 0 || m.Starts != 0 || m.Seed != 0) {
		return fmt.Errorf(`model.classes, membership, starts and seed need kind = "latent"`)
	}
	switch m.Kind {
	case "", "mnl":
	case "latent":
		if m.Classes < 2 || m.Classes > maxClasses {
			return fmt.Errorf("model.classes is %d: want 2 to %d", m.Classes, maxClasses)
		}
		if m.Starts < 0 {
			return fmt.Errorf("model.starts is %d", m.Starts)
		}
	case "nested":
		return m.checkNests()
	case "mixed":
		return m.checkRandom()
	default:
		return fmt.Errorf("model.kind is %q: want mnl, nested, mixed or latent", m.Kind)
	}
	return nil
}

func (m *Model) checkNests() error {
	if len(m.Nests) == 0 {
		return fmt.Errorf("model.nests is missing: a nested logit has nests")
	}
	for i, n := range m.Nests {
		switch {
		case n.Name == "":
			return fmt.Errorf("model.nests: nest %d has no name", i+1)
		case len(n.Alternatives) < 2:
			return fmt.Errorf("model.nests: nest %q has fewer than two alternatives", n.Name)
		case slices.ContainsFunc(m.Nests[:i], func(o Nest) bool { return o.Name == n.Name }):
			return fmt.Errorf("model.nests has two nests %q", n.Name)
		}
	}
	return nil
}

func (m *Model) checkRandom() error {
	if len(m.Random) == 0 {
		return fmt.Errorf("model.random is missing: a mixed logit has coefficients that vary")
	}
	if m.Correlated && len(m.Random) < 2 {
		return fmt.Errorf("model.correlated: one random coefficient has nothing to be correlated with")
	}
	for i, r := range m.Random {
		_, known := quantiles[r.Distribution]
		switch {
		case !known && r.Distribution != "":
			return fmt.Errorf("model.random: %s: the distribution is %q: want normal, lognormal, uniform or "+
				"triangular", r.Coefficient, r.Distribution)
		case slices.ContainsFunc(m.Random[:i], func(o Random) bool { return o.Coefficient == r.Coefficient }):
			return fmt.Errorf("model.random has coefficient %q twice", r.Coefficient)
		case m.Correlated && (r.Distribution == "uniform" || r.Distribution == "triangular"):
			return fmt.Errorf("model.correlated: %s is %s: only normal and lognormal coefficients can be "+
				"correlated", r.Coefficient, r.Distribution)
		}
	}
	if m.Draws < 0 || m.Draws > maxDraws {
		return fmt.Errorf("model.draws is %d: want at most %d", m.Draws, maxDraws)
	}
	return nil
}

// plain reports whether the model is a multinomial logit.
func (m *Model) plain() bool { return m.Kind == "" || m.Kind == "mnl" }

func (m *Model) starts() int { return cmp.Or(m.Starts, 10) }

func (m *Model) draws() int { return cmp.Or(m.Draws, 500) }

func (m *Model) name() string {
	switch m.Kind {
	case "nested":
		return "nested logit"
	case "mixed":
		if m.Correlated {
			return "correlated mixed logit"
		}
		return "mixed logit"
	case "latent":
		return fmt.Sprintf("latent class model of %d classes", m.Classes)
	}
	return "multinomial logit"
}

// startable is a likelihood that is not concave: its minimiser starts from MNL's estimate, possibly several times.
type startable interface {
	likelihood
	utility() *design
	start(mnl *minimum, n int) []float64
}

// several is a likelihood that needs several starts to find its maximum.
type several interface {
	startable
	// climb returns a likelihood with steps that are safe far from the maximum, and the number of starts.
	climb() (likelihood, int)
}

// likelihood returns the model's likelihood on data, which need not be the data of the fit.
func (r *Result) likelihood(d *Data) (likelihood, error) {
	return r.likelihoodOn(context.Background(), d)
}

// likelihoodOn is likelihood until ctx ends.
func (r *Result) likelihoodOn(ctx context.Context, d *Data) (likelihood, error) {
	g, err := newDesign(&r.Spec.Utility, r.Alternatives, r.Outside, d)
	if err != nil {
		return nil, err
	}
	switch m := &r.Spec.Model; m.Kind {
	case "nested":
		return newNested(g, m.Nests, r.Alternatives, d)
	case "mixed":
		return newMixed(ctx, g, m, r.Mirrored, d)
	case "latent":
		return newLatent(g, m, d)
	}
	l := mnl{design: g, outside: r.Outside}
	if n := r.Spec.Utility.Network; n != nil {
		return newNeural(l, n, r.Scale, d)
	}
	return l, nil
}
