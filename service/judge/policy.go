package judge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
	"vitrine/bandit/policy"
	"vitrine/choice"
	"vitrine/internal/hint"
	"vitrine/internal/strict"
	"vitrine/offpolicy"
	"vitrine/service/setup"
	"vitrine/utility"
)

// Policy is a policy to judge.
type Policy struct {
	Name   string         `toml:"name"`
	Show   string         `toml:"show"`
	Items  []string       `toml:"items"`
	Model  string         `toml:"model"`
	Size   int            `toml:"size"`
	Policy map[string]any `toml:"policy"`

	path  string
	model *choice.Result
}

// shows maps the values of Show to their meanings.
var shows = []struct{ name, doc string }{
	{"best", "the best page by the choice model"},
	{"model", "the best page by a fitted model"},
	{"policy", "the page of a policy that has learned from the log"},
	{"replay", "the page of a policy while it learns"},
	{"items", "the same items always"},
	{"revenue", "the items of the largest revenues"},
	{"uniform", "a page drawn uniformly"},
}

// ReadPolicy reads a policy to judge. Errors name the file and, if known, the line.
func ReadPolicy(path string) (*Policy, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p := &Policy{path: path, Size: math.MaxInt}
	if err := strict.Decode(text, p); err != nil {
		legal := ""
		if at, ok := errors.AsType[*strict.Error](err); ok && at.Key != "" {
			legal = hint.Legal(at.Key, []string{"name", "show", "model", "items", "size", "policy"})
		}
		return nil, fmt.Errorf("%w%s", strict.In(path, err), legal)
	}
	if p.Name == "" {
		p.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	learns := p.Show == "policy" || p.Show == "replay"
	var names []string
	for _, s := range shows {
		names = append(names, s.name)
	}
	switch {
	case !slices.Contains(names, p.Show):
		return nil, fmt.Errorf("%s: show = %q: want one of %s", path, p.Show, strings.Join(names, ", "))
	case learns != (p.Policy != nil):
		return nil, fmt.Errorf("%s: a table [policy] goes with show = \"policy\" and show = \"replay\", and they need it", path)
	case (p.Show == "items") != (p.Items != nil):
		return nil, fmt.Errorf("%s: items go with show = \"items\", which needs them", path)
	case (p.Show == "model") != (p.Model != ""):
		return nil, fmt.Errorf("%s: model goes with show = \"model\", which needs it", path)
	case p.Size < 1:
		return nil, fmt.Errorf("%s: size = %d: must be at least 1", path, p.Size)
	}
	if p.Size == math.MaxInt {
		p.Size = 0 // the log's
	}
	for i, item := range p.Items {
		if slices.Contains(p.Items[:i], item) {
			return nil, fmt.Errorf("%s: items has %q twice", path, item)
		}
	}
	if p.Model != "" {
		if !filepath.IsAbs(p.Model) {
			p.Model = filepath.Join(filepath.Dir(path), p.Model)
		}
		if p.model, err = choice.ReadModel(p.Model); err != nil {
			return nil, fmt.Errorf("%s: model: %w", path, err)
		}
	}
	return p, nil
}

func (p *Policy) describe() string {
	i := slices.IndexFunc(shows, func(s struct{ name, doc string }) bool { return s.name == p.Show })
	text := shows[i].doc
	if name, ok := p.Policy["name"].(string); ok {
		text += ", " + name
	}
	return text
}

// size returns the maximum number of items on the policy's pages: if not given, that of the log's largest page.
func (p *Policy) size(e *Verdict) (int, error) {
	if most := e.Rounds.Config.MaxSize; p.Size > most {
		return 0, fmt.Errorf("size = %d: the placement shows at most %d items", p.Size, most)
	}
	largest := 1
	for _, r := range e.Rounds.Rounds {
		largest = max(largest, len(r.Shown))
	}
	return cmp.Or(p.Size, largest), nil
}

func (p *Policy) pages(ctx context.Context, e *Verdict) ([]vitrine.Assortment, error) {
	size, err := p.size(e)
	if err != nil {
		return nil, err
	}
	rounds := e.Rounds.Rounds
	pages := make([]vitrine.Assortment, len(rounds))
	if p.Show == "policy" {
		return pages, p.learned(ctx, e, size, pages)
	}
	var weights []float64
	if p.model != nil {
		if weights, _, err = e.Rounds.Config.Weights(p.model); err != nil {
			return nil, fmt.Errorf("%s: %w", p.Model, err)
		}
	}
	rng := rand.New(rand.NewPCG(e.options.Seed, 3))
	shown := 0
	var u []float64
	for t := range rounds {
		x := rounds[t].Context
		n := x.NumItems()
		u = slices.Grow(u[:0], n)[:n]
		switch p.Show {
		case "best", "model":
			if e.log.Utilities(u, t); p.model != nil {
				utility.NewLinear(len(weights)-1, true).Utilities(u, weights, x.Features)
			}
			pages[t], _ = assortment.Maximize(nil, assortment.AtMost(size), u, x.Revenue)
		case "revenue":
			for i := range u {
				u[i] = 1
				if x.Revenue != nil {
					u[i] = x.Revenue[i]
				}
			}
			pages[t] = assortment.AtMost(size).MaxGain(nil, u)
		case "uniform":
			pages[t] = rng.Perm(n)[:min(size, n)]
			slices.Sort(pages[t])
		case "items":
			for _, item := range p.Items {
				if i := slices.Index(rounds[t].Items, item); i >= 0 && len(pages[t]) < size {
					pages[t] = append(pages[t], i)
				}
			}
			slices.Sort(pages[t])
		}
		shown += len(pages[t])
	}
	if p.Show == "items" && shown == 0 {
		return nil, fmt.Errorf("items = %q: no request has any of them", p.Items)
	}
	return pages, nil
}

// learner returns a learner at its first round, with a new placement's settings.
func (p *Policy) learner(e *Verdict, size int) (vitrine.Learner, error) {
	items := 0
	for t := range e.Rounds.Rounds {
		items = max(items, e.Rounds.Rounds[t].Context.NumItems())
	}
	problem := bandit.Problem{NumFeatures: e.Rounds.Config.Schema().Width(), Items: items, MaxShown: size,
		Rounds: e.Rounds.Config.Horizon, Constraint: assortment.AtMost(size)}
	text, err := json.Marshal(p.Policy)
	if err != nil {
		return nil, err
	}
	complete, err := policy.Complete(text, problem, true)
	if err == nil {
		text, err = json.Marshal(complete, json.Deterministic(true))
	}
	if err != nil {
		return nil, fmt.Errorf("[policy]: %w", err)
	}
	l, err := setup.NewLearner(setup.Spec{
		Policy: text, Features: problem.NumFeatures, Size: size, Items: items, All: true, Rounds: problem.Rounds,
		Seed: e.options.Seed,
	})
	if err != nil {
		return nil, fmt.Errorf("[policy]: %w", err)
	}
	return l, nil
}

// learned stores the pages of a policy that learned from the other folds' rounds.
func (p *Policy) learned(ctx context.Context, e *Verdict, size int, pages []vitrine.Assortment) error {
	rng := rand.New(rand.NewPCG(e.options.Seed, 4))
	for fold := range e.options.Folds {
		l, err := p.learner(e, size)
		if err != nil {
			return err
		}
		for t := range e.Rounds.Rounds {
			if err := ctx.Err(); err != nil {
				return err
			}
			p.report(e, fold*len(pages)+t, e.options.Folds*len(pages))
			if r := &e.Rounds.Rounds[t]; t%e.options.Folds != fold {
				if err := l.Observe(vitrine.Round{Context: r.Context, Offer: vitrine.Offer{Assortment: r.Shown,
					Order: r.Order, Propensity: r.Propensity}, Choice: r.Choice, More: r.More}); err != nil {
					return fmt.Errorf("round %d: %w", t+1, err)
				}
			}
		}
		pi := l.Policy()
		for t := fold; t < len(pages); t += e.options.Folds {
			pages[t] = pi.Offer(e.Rounds.Rounds[t].Context, rng).Assortment
		}
	}
	return nil
}

func (p *Policy) report(e *Verdict, done, total int) {
	e.options.Progress(p.Name+" learns", done, total)
}

// replayed is a learner in a replay, which asks it for a policy in each round.
type replayed struct {
	vitrine.Learner
	next func()
}

func (l replayed) Policy() vitrine.Policy {
	l.next()
	return l.Learner.Policy()
}

// replay plays the policy on the log while it learns.
func (p *Policy) replay(ctx context.Context, e *Verdict, o offpolicy.Options) (*offpolicy.Estimate, error) {
	size, err := p.size(e)
	if err != nil {
		return nil, err
	}
	l, err := p.learner(e, size)
	if err != nil {
		return nil, err
	}
	done := 0
	next := func() { p.report(e, done, len(e.Rounds.Rounds)); done++ }
	return offpolicy.Replay(ctx, e.Rounds.Rounds, replayed{l, next}, o)
}
