package state

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"vitrine/service/api"
	"vitrine/service/catalogue"
	"vitrine/service/eventlog"
	"vitrine/service/feature"
	"vitrine/service/page"
	"vitrine/service/setup"
)

// Match reports why a placement of a revision must not be changed; the revision of one that is not there is 0. A nil
// Match lets every change through.
type Match func(revision uint64) error

// Check reports why a placement must not be changed; p is nil for one that is not there.
func (m Match) Check(p *Placement) error {
	switch {
	case m == nil:
		return nil
	case p == nil:
		return m(0)
	}
	return m(p.Revision())
}

// Change holds the permissions of a put.
type Change struct {
	Reset   bool  // the learner may begin again
	Relearn bool  // let another learner learn from the log, which then takes its place; not with Reset
	Accept  bool  // let the second learner decide although it learned less; no other change is made
	Match   Match // of the placement as it is

	// Uses reports whether the caller may know another placement and begin to use its catalogue; nil permits all.
	Uses func(other string) bool
}

func (how *Change) uses(other string) bool { return how == nil || how.Uses == nil || how.Uses(other) }

// Put creates or changes a placement, with what the caller prepared. The log begins at entry from.
func (b *Batch) Put(name string, c *setup.Config, how *Change, from uint64, r *Prepared,
	now int64) (isNew bool, err error) {
	if len(b.Events) > 0 {
		return false, ErrRetryBatch
	}
	p := b.State.Placements[name]
	switch err := how.Check(p, c); {
	case how == nil && p != nil || err == ErrSame:
		return false, nil
	case err != nil:
		return false, err
	case p == nil && len(b.State.Placements) >= maxPlacements:
		return false, errPlacements(name)
	case !r.fits(p, c), !r.Claim():
		return false, page.ErrStale
	}
	b.Ready = r
	return p == nil, b.Only(&eventlog.Event{Time: now, Placement: name, Body: p.change(c, c.Canonical(), how, from)})
}

const maxPlacements = 1000 // each needs a learner, a goroutine and memory

func errPlacements(name string) error {
	return api.Fieldf("/name", "%q would be one more than %d placements: delete one", name, maxPlacements)
}

// Check reports why a placement (nil: a new one) cannot change to a configuration, or ErrSame if it already did. It
// never refuses a change that happened.
func (how *Change) Check(p *Placement, c *setup.Config) error {
	switch {
	case how == nil:
		return nil
	case p != nil && p.has(c):
		return ErrSame
	}
	if err := how.Match.Check(p); err != nil {
		return err
	}
	switch {
	case p == nil || string(p.canonical) == string(c.Canonical()):
		return nil
	case p.Relearning != nil && !how.Reset,
		p.Relearning != nil && p.Config.SameLearner(c): // the exchange would undo it
		return fmt.Errorf("placement %q: %w", p.Name, ErrRelearning)
	}
	if done, err := p.ends(c, how); done || err != nil {
		return err
	}
	switch {
	case how.Reset || p.Config.SameLearner(c):
		return nil
	case how.Relearns() && !p.Config.Schema().Equal(c.Schema()):
		return api.Fieldf("/features", "are not those of the decisions in the log, from which a learner could "+
			"learn them")
	case how.Relearn || !p.hasLearned():
		return nil
	}
	return p.loss(c)
}

// IsReset reports whether the learner may begin again.
func (how *Change) IsReset() bool { return how != nil && how.Reset }

// Relearns reports whether a second learner is to learn from the log.
func (how *Change) Relearns() bool { return how != nil && how.Relearn && !how.Reset }

// has reports whether this is the placement's configuration, now or after its relearning.
func (p *Placement) has(c *setup.Config) bool {
	if p.Relearning != nil {
		return bytes.Equal(p.Relearning.Worker.Config.Canonical(), c.Canonical())
	}
	return bytes.Equal(p.canonical, c.Canonical())
}

// Smaller returns a configuration's size if it is smaller than the placement's, otherwise 0.
func (p *Placement) Smaller(c *setup.Config) int {
	if c.MaxSize < p.Config.MaxSize {
		return c.MaxSize
	}
	return 0
}

// loss is the error of a change that would begin the learner again.
func (p *Placement) loss(c *setup.Config) error {
	return &LossError{
		Placement: p.Name, Fields: p.Config.LearnerFields(c), MaxSize: p.Smaller(c),
		OtherRows: !p.Config.Schema().Equal(c.Schema()),
		Loss:      api.Loss{Rounds: p.Worker.rounds(), Versions: len(p.numbersOf(p.Worker))},
	}
}

// change returns the event of a change. The log begins at entry from.
func (p *Placement) change(c *setup.Config, canonical []byte, how *Change, from uint64) eventlog.Body {
	switch {
	case p != nil && p.Relearning != nil && bytes.Equal(p.canonical, canonical):
		return &eventlog.RelearningEnded{Reason: "the configuration of before was put"}
	case p == nil, p.Config.SameLearner(c):
		return &eventlog.PlacementPut{Config: canonical}
	case !how.Reset && p.Adoptable(c) >= 0:
		variant := p.Experiment.Name(p.Adoptable(c))
		return &eventlog.LearnerAdopted{Config: canonical, Variant: variant, Note: fmt.Sprintf("before variant %q "+
			"of the experiment %q", variant, p.Config.Experiment.Name)}
	}
	note := "before a change of " + api.Abbreviate(strings.Join(p.Config.LearnerFields(c), ", "), MaxVersionNote-100)
	if how.Relearns() {
		return &eventlog.RelearningBegun{Config: canonical, From: max(p.Rows, from), Note: note}
	}
	return &eventlog.LearnerReset{Config: canonical, Note: note}
}

// Preview describes the effects on the learner.
func (s *State) Preview(v *api.Preview, name string, c *setup.Config, how Change) error {
	p := s.Placements[name]
	err := how.Check(p, c)
	var loss *LossError
	switch {
	case err == ErrSame:
		v.Change = api.PreviewNone
	case err != nil && !errors.As(err, &loss):
		return err
	case p == nil:
		v.Change = api.PreviewCreate
		if len(s.Placements) >= maxPlacements {
			return errPlacements(name)
		}
	case loss != nil && loss.Experiment != "":
		v.Change, v.Fields, v.Lost = api.PreviewEnd, loss.Fields, &loss.Loss
	case p.Config.SameLearner(c):
		v.Change = api.PreviewKeep
	case p.Adoptable(c) >= 0:
		v.Change = api.PreviewAdopt
	default:
		v.Change, v.Fields = api.PreviewRestart, p.Config.LearnerFields(c)
		if loss != nil {
			v.Lost = &loss.Loss
			if err := (&Change{Relearn: true}).Check(p, c); err == nil {
				v.CanRelearn, v.MaxSize = true, loss.MaxSize
			}
		}
	}
	return nil
}

// KeepEvent returns the version that the learner's state is or becomes, and the event that keeps a new version.
func (p *Placement) KeepEvent(note string) (number uint64, keeps eventlog.Body) {
	switch v := p.version(p.currentVersion); {
	case note == "" && p.Earnings.Guard.Alarm() != nil: // a bad state is not worth keeping, and the last good version stays
		if n := len(p.versions); n > 0 {
			return p.versions[n-1].number, nil
		}
		return p.learnedThrough, nil
	case v != nil && note != "" && v.routine:
		return v.number, &eventlog.VersionSaved{Version: v.number, Note: note}
	case v != nil:
		return v.number, nil
	}
	return p.learnedThrough, &eventlog.VersionSaved{Version: p.learnedThrough, Note: note}
}

// RollBackEvent returns the event that returns the placement to a version, or nil if its learner is already there. The
// former learner ready can decide at once.
func (p *Placement) RollBackEvent(number uint64, ready *Worker, match Match) (eventlog.Body, error) {
	if err := match.Check(p); err != nil {
		return nil, err
	}
	v := p.version(number)
	switch {
	case v == nil:
		return nil, noVersion(p, number)
	case v.learner != p.Worker && v.learner != ready:
		return nil, page.ErrStale
	case v.learner != p.Worker && p.Experiment != nil:
		return nil, fmt.Errorf("placement %q, version %d, which is of another learner: %w", p.Name, number,
			ErrExperiment)
	case p.currentVersion == number:
		return nil, nil
	case p.Relearning != nil: // whoever goes back may not know it, and would lose it for good
		return nil, fmt.Errorf("placement %q: %w", p.Name, ErrRelearning)
	}
	b := &eventlog.LearnerRolledBack{Version: number, Note: fmt.Sprintf("before the roll back to version %d", number)}
	if v.learner != p.Worker {
		b.Config = v.learner.Config.Canonical()
	}
	return b, nil
}

// ends reports the losses of a change that touches a running experiment. done says that no other check is needed.
func (p *Placement) ends(c *setup.Config, how *Change) (done bool, err error) {
	same := p.Config.SameLearner(c)
	switch {
	case p.Experiment == nil:
		if how.Relearns() && c.Experiment != nil && !same {
			return true, api.Fieldf("/mode", "%q cannot begin with a relearning: begin it when that has ended",
				api.Experimenting)
		}
		return false, nil
	case same && c.Experiment != nil && c.Experiment.Name == p.Config.Experiment.Name:
		return true, setup.MayBecome(p.Config, c)
	case p.Adoptable(c) >= 0 && !same:
		return true, nil
	case how.Relearns():
		return true, fmt.Errorf("placement %q: %w", p.Name, ErrExperiment)
	case how.Reset:
		return false, nil
	}
	loss := &LossError{Placement: p.Name, Fields: []string{"experiment"}, Experiment: p.Config.Experiment.Name}
	for i, w := range p.Experiment.workers {
		if w == nil {
			continue
		}
		if n := w.rounds(); n > 0 {
			loss.Rounds += n
			loss.Variants = append(loss.Variants, p.Experiment.Name(i))
		}
	}
	if loss.Rounds > 0 {
		return true, loss
	}
	return false, nil
}

// CheckItems reports whether a configuration's catalogue, its own or a shared one, forbids it. If the features of the
// placement's items change, CheckItems returns the items and their next schema.
func (s *State) CheckItems(name string, c *setup.Config,
	how *Change) (items *catalogue.Catalogue, next *feature.Schema, err error) {
	sharers := s.Sharers(name, how)
	var before *setup.Config // nil if there is no such placement
	if p := s.Placements[name]; p != nil {
		items, before = p.Items.Of, p.Config
	}
	if c.CatalogueOf != "" {
		if err := s.checkShared(name, c, before, how); err != nil {
			return nil, nil, err
		}
		switch {
		case sharers != "":
			return nil, nil, api.Fieldf("/catalogue_of", "this placement shares its catalogue with %s: change these first",
				sharers)
		case items != nil && items.Bytes() > 0:
			return nil, nil, api.Fieldf("/catalogue_of", "this placement has items of its own: delete them first")
		case before != nil && !c.Inherit(before).Inherit(s.Placements[c.CatalogueOf].Config).Schema().Same(
			s.Placements[c.CatalogueOf].Config.Schema()):
			return nil, nil, api.Fieldf("/catalogue_of", "the categories of this placement have learned other "+
				"values than those of %q, whose rows they would not fit: "+
				"let %q have the catalogue of this placement, or put a new placement", c.CatalogueOf, c.CatalogueOf)
		}
	}
	switch {
	case before == nil || before.Schema().Equal(c.Schema()):
		return nil, nil, nil
	case sharers != "":
		return nil, nil, api.Fieldf("/features", "this placement shares its catalogue with %s, and all need the "+
			"same features: change the others first", sharers)
	}
	return items, c.Inherit(before).Schema(), nil
}

// checkShared reports why a placement must not use the catalogue of another one.
func (s *State) checkShared(name string, c, before *setup.Config, how *Change) error {
	owner := s.Placements[c.CatalogueOf]
	begins := before == nil || before.CatalogueOf != c.CatalogueOf
	switch {
	case c.CatalogueOf == name:
		return api.Fieldf("/catalogue_of", "%q is this placement: leave it out", name)
	case owner == nil || begins && !how.uses(c.CatalogueOf):
		return api.Fieldf("/catalogue_of", "there is no placement %q", c.CatalogueOf)
	case owner.Config.CatalogueOf != "":
		return api.Fieldf("/catalogue_of", "%q has the catalogue of %q: name that one", c.CatalogueOf,
			owner.Config.CatalogueOf)
	case !owner.Config.Schema().Equal(c.Schema()):
		return api.Fieldf("/catalogue_of", "placement %q has other features: they must be the same", c.CatalogueOf)
	}
	return nil
}

// Sharers lists the placements that use a placement's catalogue. It is "" if the placement does not share it. Placements
// that the caller of a change may not know appear as "others".
func (s *State) Sharers(name string, how *Change) string {
	var names []string
	for other, p := range s.Placements {
		if p.Config.CatalogueOf == name {
			if !how.uses(other) {
				other = "others"
			}
			names = append(names, other)
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}
