package config

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
	"vitrine/internal/stream"
	"vitrine/service/decision"
)

// placementDefaults are what a placement's policy has where files demand it, or
// where a service that never ends needs another value than a figure: linear
// utilities, whose constant says how many customers buy at all, and
// updates whose cost and memory do not grow with the rounds where there is a choice. Who explores
// fills the page: a customer who is shown one item is worth less. Feel-Good Thompson sampling has
// the loss that learns.
var placementDefaults = map[string]map[string]any{
	"onl-mnl":         {"utility": linearByDefault, "update": "online"},
	"greedy":          {"utility": linearByDefault, "update": "online"},
	"eps-greedy-mnl":  {"utility": linearByDefault, "oracle": "online", "explore": "set"},
	"log-barrier-mnl": {"utility": linearByDefault, "oracle": "online"},
	"feel-good-ts":    {"utility": linearByDefault, "loss": "log"},
	"ucb-mnl":         {"intercept": true},
	"ts-mnl":          {"intercept": true},
	"ofu-mnl-plus":    {"intercept": true},
}

var linearByDefault = map[string]any{"kind": "linear", "intercept": true}

// observeAll are the policies that learn from the items that were not shown, too.
var observeAll = []string{"bma-mnl", "feel-good-ts"}

// NewLearner builds the learner of a placement. Its policy is a table
// [[policy]] of a file as a JSON object, {"name": "onl-mnl", "lambda": 3, …}, and
// is read as strictly.
func NewLearner(s decision.Spec) (vitrine.Learner, error) {
	made, _, err := placementPolicy(s)
	if err != nil {
		return nil, err
	}
	return made.value(nil, stream.New(s.Seed, 0, stream.Learner))
}

// LearnerSize returns how large the learner of a placement will be, without building it. Errors are those of NewLearner
// that the policy's text decides on.
func LearnerSize(s decision.Spec) (decision.Size, error) {
	made, holds, err := placementPolicy(s)
	if err != nil {
		return decision.Size{}, err
	}
	size := func(matrices float64) int64 { return int64(min(8*matrices*made.squares, 1<<50)) }
	return decision.Size{Learner: size(holds.live), State: size(holds.saved)}, nil
}

// placementPolicy reads the policy of a placement.
func placementPolicy(s decision.Spec) (m made[newLearner], holds matrices, err error) {
	in := jsontext.NewDecoder(bytes.NewReader(s.Policy))
	v, err := plain(in)
	if err == nil {
		if _, more := in.ReadToken(); more != io.EOF {
			err = fmt.Errorf("there is more after the object")
		}
	}
	if err != nil {
		return m, holds, err
	}
	given, ok := v.(map[string]any)
	if !ok {
		return m, holds, fmt.Errorf("must be an object")
	}
	name, ok := given["name"].(string)
	if !ok {
		return m, holds, fmt.Errorf("name is missing%s", hint("", placementPolicies()))
	}
	values := maps.Clone(placementDefaults[name])
	if values == nil {
		values = map[string]any{}
	}
	if _, ok := given["utility"]; ok {
		delete(values, "intercept") // the utility has a constant term or none
	}
	maps.Copy(values, given)
	table := section{doc: &document{name: name, values: values}, values: values}
	for _, key := range head[1:] {
		if _, ok := values[key]; ok {
			return m, holds, table.errorf(key, "unknown key %q: it is for files of experiments", key)
		}
	}
	at := slices.IndexFunc(policies, func(p policy) bool { return p.Name == name })
	if at >= 0 && policies[at].unfit != "" {
		return m, holds, table.errorf("", "%s", policies[at].unfit)
	}
	if !s.All && slices.Contains(observeAll, name) {
		return m, holds, table.errorf("", `learns from the items that were not shown, too: the placement must have "record": "all"`)
	}
	f := &File{problem: bandit.Problem{
		Features: s.Features, Items: s.Items, Size: s.Size, Rounds: s.Rounds, Constraint: assortment.AtMost(s.Size),
	}}
	m, err = f.buildPolicy(name, table)
	if err == nil {
		holds = policies[at].matrices
	}
	return m, holds, err
}

// placementPolicies are those that a placement can have.
func placementPolicies() []string {
	var list []string
	for _, p := range policies {
		if p.unfit == "" {
			list = append(list, p.Name)
		}
	}
	return list
}

// plain reads a JSON value into what TOML has: whole numbers are integers, and
// there is no null.
func plain(in *jsontext.Decoder) (any, error) {
	t, err := in.ReadToken()
	if err != nil {
		return nil, err
	}
	switch t.Kind() {
	case '{':
		values := map[string]any{}
		for in.PeekKind() != '}' {
			key, err := in.ReadToken()
			if err != nil {
				return nil, err
			}
			name := key.String()
			if values[name], err = plain(in); err != nil {
				return nil, err
			}
		}
		_, err = in.ReadToken()
		return values, err
	case '[':
		list := []any{}
		for in.PeekKind() != ']' {
			v, err := plain(in)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = in.ReadToken()
		return list, err
	case '"':
		return t.String(), nil
	case 't', 'f':
		return t.Bool(), nil
	case '0':
		if v, err := strconv.ParseInt(t.String(), 10, 64); err == nil {
			return v, nil
		}
		v, err := strconv.ParseFloat(t.String(), 64)
		if err != nil {
			return nil, fmt.Errorf("%s: the number %s is out of range", in.StackPointer(), t)
		}
		return v, nil
	}
	return nil, fmt.Errorf("%s: null is not a value: leave the key out", in.StackPointer())
}
