package choice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"vitrine/internal/strict"
)

// Spec is a model to estimate: how a table holds choices, and the terms of a utility.
type Spec struct {
	Data    Layout  `toml:"data" json:"data"`
	Utility Utility `toml:"utility" json:"utility"`
	Model   Model   `toml:"model" json:"model,omitzero"`
}

// Utility is the systematic part of utilities,
//
//	V_i = c_i + Σ_generic β x_i + Σ_individual γ_i z + Σ_specific δ_i x_i + Σ_terms …
//
// A variable is a column or an expression over columns, see [Layout]. [ReadSpec] also accepts a variable with a name,
// such as "cost = fare / 100", and makes it an entry of [Layout.Derive].
type Utility struct {
	// a constant for each alternative except the reference
	Constants bool `toml:"constants" json:"constants,omitempty"`
	// alternative without a constant; "" means the outside option or, without it, the first alternative
	Reference string   `toml:"reference" json:"reference,omitempty"`
	Generic   []string `toml:"generic" json:"generic,omitempty"` // variables with one coefficient
	// variables with a coefficient for each alternative except the reference
	Individual []string `toml:"individual" json:"individual,omitempty"`
	// variables with a coefficient for each alternative
	Specific []string `toml:"specific" json:"specific,omitempty"`
	Terms    []Term   `toml:"terms" json:"terms,omitempty"`     // additional terms
	Network  *Network `toml:"network" json:"network,omitempty"` // non-linear part, or nil
}

// Term is the product of a coefficient and a variable. Terms with the same name share the coefficient.
type Term struct {
	// name of the coefficient; "" means the variable
	Name     string `toml:"name" json:"name,omitempty"`
	Variable string `toml:"variable" json:"variable"` // "1" is a constant
	// alternatives with this term in their utilities; nil means all
	Alternatives []string `toml:"alternatives" json:"alternatives,omitempty"`
}

// ReadSpec parses a specification in TOML. Errors name the file, and the line of an unknown key.
func ReadSpec(name string, text []byte) (*Spec, error) {
	s := &Spec{}
	if err := strict.Decode(text, s); err != nil {
		switch at := new(strict.Error); {
		case errors.As(err, &at) && at.Key != "":
			return nil, fmt.Errorf("%s: line %d: there is no key %q", name, at.Line, at.Key)
		case errors.As(err, &at):
			return nil, fmt.Errorf("%s: line %d: toml: %s", name, at.Line, at.Message)
		}
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s.nameVariables()
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// nameVariables turns each variable written as "cost = fare / 100" into a derived column, and keeps only its name.
func (s *Spec) nameVariables() {
	u := &s.Utility
	for _, list := range [][]string{u.Generic, u.Individual, u.Specific, s.Model.Membership, u.Network.variables()} {
		for i, entry := range list {
			if name, _, err := derived(entry); err == nil {
				s.Data.Derive = append(s.Data.Derive, entry)
				list[i] = name
			}
		}
	}
}

// ReadSpecFile reads a specification from a file.
func ReadSpecFile(path string) (*Spec, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return ReadSpec(path, text)
}

// check returns an error that names the first invalid field.
func (s *Spec) check() error {
	if err := s.Data.check(); err != nil {
		return err
	}
	return s.checkModel()
}

// checkModel is check without the layout of a table: data may come from a [Builder].
func (s *Spec) checkModel() error {
	if err := s.Utility.check(); err != nil {
		return err
	}
	if err := s.Model.check(); err != nil {
		return err
	}
	if s.Utility.Network != nil && !s.Model.plain() {
		return fmt.Errorf("utility.network needs a multinomial logit: model.kind is %q", s.Model.Kind)
	}
	return nil
}

func (u *Utility) check() error {
	for i, t := range u.Terms {
		if t.Variable == "" {
			return fmt.Errorf("utility.terms: term %d has no variable", i+1)
		}
	}
	if u.Network != nil {
		return u.Network.check()
	}
	if !u.Constants && len(u.Generic)+len(u.Individual)+len(u.Specific)+len(u.Terms) == 0 {
		return errors.New("utility has no term: give it constants, generic, individual, specific, terms or a network")
	}
	return nil
}

// Variables returns the specification's variables, for [Read].
func (s *Spec) Variables() []Variable {
	var list []Variable
	// A variable used twice is needed in the rows of both uses.
	add := func(expression string, alternatives []string) {
		if expression == "1" {
			return
		}
		i := slices.IndexFunc(list, func(v Variable) bool { return v.Expression == expression })
		switch {
		case i < 0:
			list = append(list, Variable{expression, slices.Clone(alternatives)})
		case list[i].Alternatives == nil || alternatives == nil:
			list[i].Alternatives = nil
		default:
			list[i].Alternatives = append(list[i].Alternatives, alternatives...)
		}
	}
	u := &s.Utility
	for _, name := range slices.Concat(u.Generic, u.Individual, u.Specific) {
		add(name, nil)
	}
	for _, t := range u.Terms {
		add(t.Variable, t.Alternatives)
	}
	for _, name := range slices.Concat(u.Network.variables(), s.Model.Membership) {
		add(name, nil)
	}
	return list
}

// expressions returns the variables under their names in data.
func (s *Spec) expressions() (list []string) {
	for _, v := range s.Variables() {
		list = append(list, v.Expression)
	}
	return list
}

// Load reads the table at path according to the specification. progress may be nil. Errors are as for [Read].
func Load(ctx context.Context, path string, s *Spec, progress Progress) (*Data, error) {
	return Read(ctx, path, s.Data, s.Variables(), progress)
}

// terms expands the specification for the given alternatives, with or without an outside option, into terms with one
// coefficient each, in the order of Utility's fields.
func (u *Utility) terms(alternatives []string, outside bool) ([]Term, error) {
	reference := u.reference(alternatives, outside)
	if reference != "" && !slices.Contains(alternatives, reference) && (u.Constants || len(u.Individual) > 0) {
		return nil, fmt.Errorf("utility.reference is %q: %w", reference, unknownAlternative(alternatives))
	}
	var list []Term
	for _, names := range [][]string{u.Generic, slices.Concat(u.Individual, u.Specific)} {
		for i, name := range names {
			if slices.Contains(names[:i], name) {
				return nil, fmt.Errorf("utility names the variable %q twice", name)
			}
		}
	}
	each := func(name, variable string, all bool) {
		for _, a := range alternatives {
			if all || a != reference {
				list = append(list, Term{name + "[" + a + "]", variable, []string{a}})
			}
		}
	}
	if u.Constants {
		each("constant", "1", false)
	}
	for _, v := range u.Generic {
		list = append(list, Term{v, v, nil})
	}
	for _, v := range u.Individual {
		each(v, v, false)
	}
	for _, v := range u.Specific {
		each(v, v, true)
	}
	for i, t := range u.Terms {
		for _, a := range t.Alternatives {
			if !slices.Contains(alternatives, a) {
				return nil, fmt.Errorf("utility.terms: term %d: alternative %q: %w",
					i+1, a, unknownAlternative(alternatives))
			}
		}
		t.Name = cmp.Or(t.Name, t.Variable)
		list = append(list, t)
	}
	return list, nil
}

// reference returns the alternative without a constant, or "" if every one gets a constant.
func (u *Utility) reference(alternatives []string, outside bool) string {
	if u.Reference == "" && !outside && len(alternatives) > 0 {
		return alternatives[0]
	}
	return u.Reference
}

func unknownAlternative(alternatives []string) error {
	const shown = 20
	if len(alternatives) > shown {
		return fmt.Errorf("the data have no such alternative among their %d", len(alternatives))
	}
	return fmt.Errorf("the alternatives of the data are %q", alternatives)
}
