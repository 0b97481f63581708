package demo

import (
	"context"
	"slices"
	"strings"
	"time"

	"vitrine/internal/hint"
	"vitrine/internal/wait"
	"vitrine/service/api"
	"vitrine/service/client"
)

// belief is the belief of the placement auto about a window in front of a kind of shopper.
type belief struct {
	Items   []believed `json:"items"`               // in display order
	Outside *float64   `json:"outside_probability"` // of taking no product
	Learned uint64     `json:"learned"`             // shoppers learned from so far
}

// believed is the placement's belief about a product.
type believed struct {
	ID          string   `json:"id"`
	Probability *float64 `json:"probability"` // that it is taken from the window
	Utility     *float64 `json:"utility"`     // taking no product is 0
	SD          *float64 `json:"sd"`          // how sure it is of the utility
}

// visit is a window for the person in front of the page.
type visit struct {
	Decision string `json:"decision"`
	Kind     string `json:"kind"`
	Before   belief `json:"before"`
}

// lesson is the placement's lesson from a visit.
type lesson struct {
	Taken   string   `json:"taken"`   // or ""
	Learned bool     `json:"learned"` // whether it is learned: a learner may lag
	After   belief   `json:"after"`   // of the same window
	Next    []string `json:"next"`    // the next page for this kind of shopper
}

// visitorPrefix begins the ids of visitors' decisions: "visitor-student-…".
const visitorPrefix = "visitor-"

// visitorOf returns the kind of the visitor that a decision was made for.
func visitorOf(decision string) (kind int, err error) {
	rest, ok := strings.CutPrefix(decision, visitorPrefix)
	name, _, whole := strings.Cut(rest, "-")
	if !ok || !whole {
		return 0, api.Fieldf("/decision", "%q is not the decision of a visit: send the one that the visit has",
			decision)
	}
	return kindNamed(name)
}

// visitor is the person in front of the page, at an open shop.
type visitor struct{ *client.Client }

// enter shows a window to a visitor of a kind.
func (v visitor) enter(ctx context.Context, kind int) (*visit, error) {
	answer, err := v.Decide(ctx, auto, &api.Request{Decision: visitorPrefix + kinds[kind] + "-" + client.NewDecision(),
		User: user(kind)})
	if err != nil {
		return nil, err
	}
	visit := &visit{Decision: answer.Decision, Kind: kinds[kind]}
	visit.Before, err = v.belief(ctx, kind, answer.Items())
	return visit, err
}

// take reports which item the visitor took from a decision's window, or "", and waits a little until the placement
// learned from it.
func (v visitor) take(ctx context.Context, decision, item string) (*lesson, error) {
	kind, err := visitorOf(decision)
	if err != nil {
		return nil, err
	}
	before, err := v.Decision(ctx, auto, decision)
	if err != nil {
		return nil, err
	}
	if err := v.Outcome(ctx, auto, decision, item); err != nil {
		return nil, err
	}
	lesson := &lesson{Taken: item}
	if lesson.Learned, err = v.settle(ctx); err != nil {
		return nil, err
	}
	if lesson.After, err = v.belief(ctx, kind, before.Items()); err != nil {
		return nil, err
	}
	next, err := v.Try(ctx, auto, &api.Request{User: user(kind)})
	if err != nil {
		return nil, err
	}
	lesson.Next = next.Answer.Items()
	return lesson, nil
}

// belief returns what the placement auto believes of a window now, without a record of the question.
func (v visitor) belief(ctx context.Context, kind int, shown []string) (belief, error) {
	if len(shown) == 0 {
		return belief{Items: []believed{}}, nil
	}
	stats, err := v.Stats(ctx, auto)
	if err != nil {
		return belief{}, err
	}
	trial, err := v.Try(ctx, auto, &api.Request{User: user(kind), Include: shown, MaxSize: len(shown)})
	if err != nil {
		return belief{}, err
	}
	b := belief{Outside: trial.Answer.OutsideProbability, Learned: stats.Learned, Items: make([]believed, len(shown))}
	for _, item := range trial.Explanation.Items {
		b.Items[slices.Index(shown, item.ID)] = believed{item.ID, item.Probability, item.Utility, item.SD}
	}
	return b, nil
}

// maxWait bounds how long a visitor waits for the learner. Tests wait longer.
var maxWait = 3 * time.Second

// settle waits until the placement auto learned all present outcomes.
func (v visitor) settle(ctx context.Context) (settled bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	var all uint64
	for {
		stats, err := v.Stats(ctx, auto)
		if err != nil {
			if ctx.Err() == context.DeadlineExceeded {
				return false, nil
			}
			return false, err
		}
		done := stats.Learned + stats.Skipped + stats.Unlearned
		if all == 0 {
			all = done + stats.Lag
		}
		if done >= all {
			return true, nil
		}
		if wait.For(ctx, 5*time.Millisecond) != nil {
			return false, nil
		}
	}
}

func kindNamed(name string) (int, error) {
	kind := slices.Index(kinds, name)
	if kind < 0 {
		return 0, api.Fieldf("/kind", "there is no kind of shopper %q: send %s", name, hint.List(kinds))
	}
	return kind, nil
}
