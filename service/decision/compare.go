package decision

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"vitrine/internal/state"
	"vitrine/service/eventlog"
	"vitrine/service/guard"
	"vitrine/service/tally"
)

// Compare returns the placements whose states differ between a and b, two engines at the same entry of the
// same log: those with different bytes in a snapshot.
//
// An engine that continued from a snapshot before format 6 carries the offers in it. They must equal those in
// the log, as far as they are needed. Because they take memory, such an engine forgets closed decisions
// earlier: only closed decisions that both engines remember are compared.
func Compare(ctx context.Context, a, b *Engine) (different []string, err error) {
	x, err := a.freeze(ctx, -1)
	if err != nil {
		return nil, err
	}
	y, err := b.freeze(ctx, -1)
	if err != nil {
		return nil, err
	}
	if x.at != y.at {
		return nil, fmt.Errorf("the states are of entries %d and %d, or of two logs", x.at.Sequence, y.at.Sequence)
	}
	mine, its := x.byName(), y.byName()
	names := maps.Clone(mine)
	maps.Copy(names, its)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		p, q := mine[name], its[name]
		same := p != nil && q != nil
		if same && (p.carries() || q.carries()) {
			if same, err = settle(ctx, a.store, p, q); err != nil {
				return nil, err
			}
		}
		if same {
			settleVersions(p, q)
			guard.Settle(&p.guard, &q.guard)
			tally.Settle(&p.tally, &q.tally)
			if same, err = p.equal(q); err != nil {
				return nil, err
			}
		}
		if !same {
			different = append(different, name)
		}
	}
	return different, nil
}

func (f *frozenState) byName() map[string]*frozen {
	all := map[string]*frozen{}
	for _, p := range f.placements {
		all[p.name] = p
	}
	return all
}

// equal reports whether two placements have the same bytes in a snapshot.
func (f *frozen) equal(other *frozen) (bool, error) {
	x, y := state.NewEncoder(""), state.NewEncoder("")
	f.encode(x)
	other.encode(y)
	mine, err := x.Bytes()
	if err != nil {
		return false, err
	}
	its, err := y.Bytes()
	return bytes.Equal(mine, its), err
}

// carries reports whether the state holds the offer of a decision.
func (f *frozen) carries() bool {
	carried := func(r record) bool { return r.entry == 0 }
	return slices.ContainsFunc(f.open, carried) || slices.ContainsFunc(f.closed, carried)
}

// settle gives the decisions of p their form in q, and reports whether their offers are the same. It keeps
// only the closed decisions that both remember.
func settle(ctx context.Context, log eventlog.Reader, p, q *frozen) (bool, error) {
	both := min(len(p.closed), len(q.closed))
	p.closed, q.closed = p.closed[len(p.closed)-both:], q.closed[len(q.closed)-both:]
	if len(p.open) != len(q.open) {
		return false, nil
	}
	byID := func(a, b record) int { return strings.Compare(a.id, b.id) } // a carried offer does not know its place
	slices.SortFunc(p.open, byID)
	slices.SortFunc(q.open, byID)
	for _, c := range []struct{ mine, its []record }{{p.open, q.open}, {p.closed, q.closed}} {
		for i := range c.mine {
			r, s := &c.mine[i], &c.its[i]
			if r.entry > 0 && s.entry > 0 {
				continue
			}
			if same, err := sameOffer(ctx, log, r, s); err != nil || !same || r.isOf(p.learner) != s.isOf(q.learner) {
				return false, err
			}
			r.entry, r.rare = s.entry, r.inFormOf(s)
		}
	}
	return true, nil
}

// settleVersions makes unknown in both what a snapshot of before format 7 does not know of the versions of one.
func settleVersions(p, q *frozen) {
	for i := range min(len(p.versions), len(q.versions)) {
		if v, w := &p.versions[i], &q.versions[i]; v.dated != w.dated {
			*v = version{number: v.number, learner: v.learner, routine: v.routine, note: v.note}
			*w = version{number: w.number, learner: w.learner, routine: w.routine, note: w.note}
		}
	}
	for i := range min(len(p.learners), len(q.learners)) {
		l, m := &p.learners[i], &q.learners[i]
		l.kept, m.kept = slices.Clone(l.kept), slices.Clone(m.kept)
		for k := range min(len(l.kept), len(m.kept)) {
			if a, b := &l.kept[k].observed, &m.kept[k].observed; *a == unknownRounds || *b == unknownRounds {
				*a, *b = unknownRounds, unknownRounds
			}
		}
	}
}

// inFormOf returns the rare fields of r, with the offer that s carries.
func (r *record) inFormOf(s *record) *rare {
	own, its := rare{}, rare{}
	if r.rare != nil {
		own = *r.rare
	}
	if s.rare != nil {
		its = *s.rare
	}
	return &rare{passed: own.passed, reported: own.reported, carried: its.carried, learner: its.learner}
}

// sameOffer reports whether the offers of two records are the same: the answers, and the rows of a decision that waits.
// A snapshot of a closed decision has no rows.
func sameOffer(ctx context.Context, log eventlog.Reader, r, s *record) (bool, error) {
	o, err := r.read(ctx, log)
	if err != nil {
		return false, err
	}
	l, err := s.read(ctx, log)
	if err != nil {
		return false, err
	}
	same := r.id == s.id && o.Request == l.Request && o.PolicyVersion == l.PolicyVersion && o.Mode == l.Mode && o.Propensity == l.Propensity &&
		bytes.Equal(o.Answer, l.Answer) && slices.Equal(o.IDs(), l.IDs())
	if same && r.status.waits() {
		same = slices.Equal(o.Features, l.Features) && slices.Equal(o.Revenue, l.Revenue) && slices.Equal(o.Shown, l.Shown)
	}
	return same, nil
}
