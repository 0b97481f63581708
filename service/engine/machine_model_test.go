package engine_test

import (
	"slices"

	"vitrine/service/api"
)

// modelKey names a decision: its placement and its id.
type modelKey struct{ place, id string }

type modelPlace struct {
	modelConfig
	decided, closed, withdrawn, stale int
	late, corrected                   int // outcomes, and corrections
	counted                           int // withdrawn decisions that count by a late outcome

	rows    int  // counts the resets: decisions before one are not learned from
	learner int  // the learner that decides
	learned bool // whether it was given anything
	kept    []modelVersion
	configs map[int]modelConfig // of each learner, as it was when it decided
	next    *modelConfig        // of a relearning, or nil
}

type modelConfig struct {
	seed, minutes, keep int
}

func (c modelConfig) window() int64 { return int64(c.minutes) * minute }

type modelVersion struct {
	number  uint64
	learner int
	routine bool
	now     bool // whether no round was learned since
}

// keep adds the engine's last version, if it is new, and drops versions beyond the limit.
func (p *modelPlace) keepVersion(versions []uint64, routine bool, spare uint64) {
	if at := slices.IndexFunc(p.kept, func(v modelVersion) bool { return v.now }); at >= 0 {
		p.kept[at].routine = p.kept[at].routine && routine
		return
	}
	p.kept = append(p.kept, modelVersion{versions[len(versions)-1], p.learner, routine, true})
	p.trim(spare)
}

func (p *modelPlace) trim(spare uint64) {
	for len(p.kept) > p.keep {
		drop := -1
		for i, v := range p.kept[:len(p.kept)-1] {
			if v.number != spare && (drop < 0 || v.routine && !p.kept[drop].routine) {
				drop = i
			}
		}
		if drop < 0 {
			return
		}
		p.kept = slices.Delete(p.kept, drop, drop+1)
	}
}

func (p *modelPlace) moves() {
	for i := range p.kept {
		p.kept[i].now = false
	}
}

func (p *modelPlace) numbers() []uint64 {
	numbers := []uint64{}
	for _, v := range p.kept {
		numbers = append(numbers, v.number)
	}
	return numbers
}

type modelDecision struct {
	place  string
	items  []float64
	defers bool
	rows   int
	shown  []string
	passed []string
	time   int64
	status string
	taken  []api.Choice // in display order, with their quantities and values

	corrections []api.Correction
}

// order gives choices of items shown their defaults, in display order. Each item earns 1.
func (d *modelDecision) order(choices []api.Choice) (list []api.Choice) {
	for _, id := range d.shown {
		for _, c := range choices {
			if c.Item != id {
				continue
			}
			if c.Quantity == nil {
				c.Quantity = new(1)
			}
			if c.Value == nil {
				c.Value = new(float64(*c.Quantity))
			}
			list = append(list, c)
		}
	}
	return list
}

// choice is the first item taken.
func (d *modelDecision) choice() string {
	if len(d.taken) == 0 {
		return ""
	}
	return d.taken[0].Item
}

// basket is what was taken, if that is more than a choice.
func (d *modelDecision) basket() []api.Choice {
	if len(d.taken) == 1 && *d.taken[0].Quantity == 1 && *d.taken[0].Value == 1 {
		return nil
	}
	return d.taken
}

// of returns what an item has earned with its corrections, and whether it counts as taken.
func (d *modelDecision) of(item string) (sum float64, taken bool) {
	for _, c := range d.taken {
		if c.Item == item {
			sum, taken = *c.Value, true
		}
	}
	for _, c := range d.corrections {
		switch {
		case c.Item != item:
		case c.Value == nil:
			return 0, false
		default: // which may add the item
			sum, taken = sum+*c.Value, true
		}
	}
	return sum, taken
}

// earned is what the decision has earned, and whether anything counts as taken.
func (d *modelDecision) earned() (sum float64, sold bool) {
	for _, id := range d.shown {
		value, taken := d.of(id)
		sum, sold = sum+value, sold || taken
	}
	return sum, sold
}

func (d *modelDecision) waits() bool { return d.status == "open" || d.status == "deferred" }
