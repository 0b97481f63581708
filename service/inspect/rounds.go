package inspect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/offpolicy"
	"vitrine/service/engine"
	"vitrine/service/offer"
	"vitrine/service/page"
	"vitrine/service/setup"
)

// Rounds are the decisions of a placement from which other policies can be judged.
type Rounds struct {
	Placement string
	Config    *setup.Config // of the placement at the end of the log
	Rounds    []offpolicy.Round
	Left      []Left // the decisions that were left out
	Ruled     bool   // whether requests came with rules, or a shopper's bought items were hidden

	last   *offered // the last round's decision
	end    outcome  // its outcome
	copies int      // decisions of the log that became the last round
}

// Left counts decisions that were left out for a reason.
type Left struct {
	Reason    string `json:"reason"`
	Decisions int    `json:"decisions"`
}

// Rounds reads a placement's decisions with an outcome and the rows of all candidates, in the order of their outcomes.
// "" is the only placement of the log. Decisions of a deleted placement do not count. Without decisions it returns an
// error.
func (log *Log) Rounds(ctx context.Context, which Decisions) (*Rounds, error) {
	r := &Rounds{}
	var made []*setup.Config // of the rounds; nil if it is not known
	seen := map[string]bool{}
	left := map[string]int{}
	which.deleted = func(placement string) {
		if delete(seen, placement); len(seen) == 0 {
			*r, made, left = Rounds{}, nil, map[string]int{}
		}
	}
	configs, err := log.decisions(ctx, "reading", which, func(o *offered, end outcome) error {
		if seen[o.placement] = true; len(seen) > 1 {
			return errors.New("two placements")
		}
		r.Placement = o.placement
		switch {
		case !end.isRound():
			left["have no outcome"]++
		case len(o.ItemIDs) < o.Candidates:
			left["have only the items shown"]++
		case len(o.ItemIDs) == 0:
			left["have no items"]++
		default:
			if r.add(o, end) {
				made = append(made, o.config)
			}
			r.Ruled = r.Ruled || o.ruled
		}
		return nil
	})
	if which.Placement == "" && len(seen) > 1 {
		if configs, err = log.decisions(ctx, "reading", which, func(*offered, outcome) error {
			return nil
		}); err == nil {
			err = fmt.Errorf("%s has several placements: name one of %v with --placement", log.Name,
				slices.Sorted(maps.Keys(configs)))
		}
	}
	if err != nil {
		return nil, err
	}
	if len(seen) == 0 {
		return nil, fmt.Errorf("%s: there is no decision to judge a policy by", log.Name)
	}
	if r.Config = configs[r.Placement]; r.Config == nil {
		return nil, fmt.Errorf("%s: the configuration of placement %q is neither in the log nor in a snapshot",
			log.Name, r.Placement)
	}
	outdated := r.dropOutdated(made)
	if outdated > 0 {
		left["have the features of an earlier configuration"] = outdated
	}
	for _, reason := range slices.Sorted(maps.Keys(left)) {
		r.Left = append(r.Left, Left{reason, left[reason]})
	}
	switch {
	case len(r.Rounds) > 0:
	case left["have only the items shown"] > 0:
		return nil, fmt.Errorf(`%s, placement %q: the log has the features of the items shown and not of the others, so nothing can be said about other pages: set "log_items": "all", or the mode explore, which has it`, log.Name, r.Placement)
	case outdated > 0:
		return nil, fmt.Errorf("%s, placement %q: no decision with an outcome has the current features", log.Name, r.Placement)
	default:
		return nil, fmt.Errorf("%s, placement %q: no decision has an outcome", log.Name, r.Placement)
	}
	return r, nil
}

// dropOutdated leaves only rounds with the features of the current configuration, given the configurations that made
// them: after a change rows mean something else. It returns the number of the others.
func (r *Rounds) dropOutdated(made []*setup.Config) int {
	all, schema := r.Rounds, r.Config.Schema()
	r.Rounds = nil
	for t, round := range all {
		if round.Context.Features.RawMatrix().Cols == schema.Width() && (made[t] == nil || schema.Equal(made[t].Schema())) {
			r.Rounds = append(r.Rounds, round)
		}
	}
	return len(all) - len(r.Rounds)
}

// ImportRound adds the round that a decision of another log becomes.
func (r *Rounds) ImportRound(d *page.Imported) error {
	o, end, c, err := engine.ImportedEvents(r.Placement, r.Config, d)
	if err != nil {
		return err
	}
	of, done := &offered{Offered: o, time: d.Time}, outcome{}
	done.choose(of, end.Choice, end.Basket)
	for _, t := range done.taken {
		done.earned += t.earned
	}
	r.Config = c
	r.add(of, done)
	return nil
}

// add adds a decision's round, and reports true. If an import made several decisions of one page, one for each item that
// was taken, they are one round with all these items, and add reports false for each but the first.
func (r *Rounds) add(o *offered, end outcome) bool {
	if o.isCopy(r.last, r.copies+1) {
		r.copies++
		r.end.taken = append(r.end.taken, end.taken...)
		r.end.earned += end.earned
		r.Rounds[len(r.Rounds)-1] = roundOf(r.last, r.end)
		return false
	}
	r.last, r.end, r.copies = o, end, 1
	r.Rounds = append(r.Rounds, roundOf(o, end))
	return true
}

// isCopy reports whether the decision is the k-th that an import made of another one's page.
func (o *offered) isCopy(of *offered, k int) bool {
	return of != nil && o.time == of.time && o.Decision == page.CopyID(of.Decision, k) &&
		slices.Equal(o.ItemIDs, of.ItemIDs) && slices.Equal(o.Shown, of.Shown) && slices.Equal(o.Features, of.Features)
}

// roundOf returns the round of an offer with the rows of all candidates.
func roundOf(o *offered, end outcome) offpolicy.Round {
	r := offpolicy.Round{Decision: o.Decision,
		Context: &vitrine.Context{Features: mat.NewDense(len(o.ItemIDs), o.Width, o.Features), Revenue: o.Revenue},
		Items:   o.ItemIDs, Shown: make(vitrine.Assortment, len(o.Shown)), Propensity: o.Propensity,
		SamplingLaw: offer.LawOf(o.Offered), Shopper: o.shopper,
	}
	for k, i := range o.Shown {
		r.Shown[k] = int(i)
	}
	r.Order = slices.Clone([]int(r.Shown))
	slices.Sort(r.Shown)
	if choice, basket := end.basket(o); choice > 0 {
		r.Choice, r.More = offer.Choices(r.Shown, o.Shown, int(choice), basket)
		if end.earned != r.Revenue() {
			r.Earned = make([]float64, len(r.Shown))
			rest := end.earned // by corrections that retention removed, the items of which are not known
			for _, t := range end.taken {
				rest -= t.earned
			}
			for _, t := range end.taken {
				k, _ := slices.BinarySearch(r.Shown, int(o.Shown[t.Place-1]))
				r.Earned[k] += t.earned + rest/float64(len(end.taken))
			}
		}
	}
	return r
}
