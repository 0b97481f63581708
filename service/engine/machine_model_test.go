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

	rows    int  // counts the resets: earlier decisions teach nothing
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
	now     bool // whether nothing was learned since
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
	choice string

	corrections []api.Correction
}

// earned returns the choice's earnings with its corrections. Each item earns 1.
func (d *modelDecision) earned() float64 {
	if d.choice == "" {
		return 0
	}
	sum := 1.0
	for _, c := range d.corrections {
		if c.Value == nil {
			return 0
		}
		sum += *c.Value
	}
	return sum
}

func (d *modelDecision) isWithdrawn() bool {
	n := len(d.corrections)
	return n > 0 && d.corrections[n-1].Value == nil
}

func (d *modelDecision) waits() bool { return d.status == "open" || d.status == "deferred" }
