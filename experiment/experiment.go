// Package experiment plays learners on simulated worlds and records their regret. It does not draw figures. [Run] plays
// an [Experiment] and writes its files; [RunShard] and [Merge] do the same on several machines.
//
// A unit is one policy on one seed. With the same seed, all policies face the same truth, the same contexts and the
// same customers, because every draw is addressed by (seed, round, purpose). Units are therefore independent, regret
// curves are paired, and results are the same bytes for any number of workers.
package experiment

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strings"

	"vitrine"
	"vitrine/env"
	"vitrine/internal/buildid"
	"vitrine/internal/cpu"
	"vitrine/internal/flock"
	"vitrine/internal/parallel"
)

// Experiment is a world, the policies to play in it, and the seeds. It needs at least one policy, one seed and one
// round. Labels and seeds must be distinct. [Run] writes the name and the labels to CSV files: they must be
// printable, without / \ " or commas.
type Experiment struct {
	Name       string
	Title      string             // for pictures; stored in run.json
	Rounds     int                // T
	Constraint vitrine.Constraint // for contexts without a family of their own
	// World makes a seed's environment, and draws its truth from rng.
	World    func(rng *rand.Rand) env.Environment
	Policies []Policy
	Seeds    []uint64

	// Settings describe the world, the constraint and the rounds, for run.json. Together with the policy's settings and
	// Version, they identify finished units of this experiment. They must marshal to JSON.
	Settings any
	// Version identifies the program. Units from another version are not reused. If empty, Version is the running
	// program's ID, so that a changed program plays its units again.
	Version string
}

// Policy is one of an experiment's policies.
type Policy struct {
	Label    string // unique; used in the files
	Settings any    // all options that determine it; must marshal to JSON
	// New makes the learner for a unit, at its first round. rng belongs to the learner.
	New func(world env.Environment, rng *rand.Rand) (vitrine.Learner, error)
	// FirstTakes hides all takes of a visit but the first from the learner.
	FirstTakes bool
}

// Options configure a run of an experiment.
type Options struct {
	Dir     string // files go to Dir/Name
	Workers int    // units played at a time; below 1 means one per processor
	// Progress, if not nil, is called with the number of rounds played since the last call. Calls are concurrent.
	Progress func(rounds int)
	// Reused, if not nil, is called with the number of rounds of units that were already finished.
	Reused func(rounds int)
	// Note, if not nil, is called with messages about earlier results that a run reuses or replaces.
	Note func(message string)
	// Warn, if not nil, is called with each problem in earlier results and the action taken.
	Warn func(message string)
}

// ErrInterrupted reports an experiment that was stopped early. Finished units are kept, and running it again continues.
var ErrInterrupted = errors.New("interrupted")

// Run plays the units missing from Dir/Name/runs.jsonl and appends each one as it finishes. It then writes regret.csv,
// summary.csv and run.json, and returns the summary, with a row per policy. If ctx ends, Run stops with ErrInterrupted.
// If a unit fails, the error names its policy, seed and round. In either case only runs.jsonl is written. A unit that
// panics fails too, with a *[PanicError]: finished units are kept, and the caller's program goes on. Until Run returns, it
// holds the lock of Dir/Name/lock, and other runs there fail.
func Run(ctx context.Context, e *Experiment, o Options) ([]Summary, error) {
	if err := e.checkNames(); err != nil {
		return nil, err
	}
	e, err := e.versioned()
	if err != nil {
		return nil, err
	}
	units, lock, err := e.complete(ctx, o, all)
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	dir := filepath.Join(o.Dir, e.Name)
	if changed := e.changed(dir); changed != "" && o.Note != nil {
		o.Note(fmt.Sprintf("the results and figures in %s are replaced, because these changed: %s", dir, changed))
	}
	return e.write(dir, units, Machine())
}

// Finals plays like [Run], with the same errors, and returns the regret after the last round by policy label, with an
// entry for each of e.Seeds. It writes only runs.jsonl, which may hold the units of many experiments on one world.
func Finals(ctx context.Context, e *Experiment, o Options) (map[string][]float64, error) {
	results, err := Results(ctx, e, o)
	if err != nil {
		return nil, err
	}
	finals := map[string][]float64{}
	for _, r := range results {
		finals[r.Policy] = append(finals[r.Policy], r.Regret[e.Rounds-1])
	}
	return finals, nil
}

// Result is a finished unit.
type Result struct {
	Policy      string
	Seed        uint64
	Regret      []float64 // cumulative, entry t−1 after round t
	Diagnostics map[string]float64
}

// Results plays like [Finals], and returns complete units, policy by policy and seed by seed.
func Results(ctx context.Context, e *Experiment, o Options) ([]Result, error) {
	e, err := e.versioned()
	if err != nil {
		return nil, err
	}
	units, lock, err := e.complete(ctx, o, all)
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	results := make([]Result, len(units))
	for i, u := range units {
		results[i] = Result{u.Policy, u.Seed, u.Regret, u.Diagnostics}
	}
	return results, nil
}

// versioned returns the experiment with its version set.
func (e *Experiment) versioned() (*Experiment, error) {
	if e.Version != "" {
		return e, nil
	}
	id, err := buildid.Sum()
	if err != nil {
		return nil, fmt.Errorf("experiment %q: this program cannot be identified: set Version: %w", e.Name, err)
	}
	versioned := *e
	versioned.Version = "program " + id
	return &versioned, nil
}

func all(int) bool { return true }

// complete plays the units missing from the journal, among the places that in selects, and returns them policy by
// policy and seed by seed, with the directory's lock.
func (e *Experiment) complete(ctx context.Context, o Options, in func(place int) bool) (units []*unit,
	lock *flock.Lock, err error) {
	if err := e.validate(); err != nil {
		return nil, nil, err
	}
	if len(e.Policies) == 0 {
		return nil, nil, fmt.Errorf("experiment %q: there are no policies: name at least one", e.Name)
	}
	if o.Progress == nil {
		o.Progress = func(int) {}
	}
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	dir := filepath.Join(o.Dir, e.Name)
	held, err := lockDir(dir, o.Warn)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			held.Release()
		}
	}()
	j, err := openJournal(dir, o.Warn)
	if err != nil {
		return nil, nil, err
	}
	defer j.close()

	units = make([]*unit, 0, len(e.Policies)*len(e.Seeds))
	var missing []*unit
	place := -1
	for _, p := range e.Policies {
		id, err := fingerprint(e, p)
		if err != nil {
			return nil, nil, err
		}
		for _, seed := range e.Seeds {
			if place++; !in(place) {
				continue
			}
			u := j.find(id, p.Label, seed)
			if u == nil {
				u = &unit{Fingerprint: id, Policy: p.Label, Seed: seed, policy: p}
				missing = append(missing, u)
			}
			units = append(units, u)
		}
	}
	j.units = nil // may hold many more
	found := len(units) - len(missing)
	if o.Reused != nil {
		o.Reused(found * e.Rounds)
	}
	if found > 0 && o.Note != nil {
		o.Note(fmt.Sprintf("%s: %d of %d runs were there already", e.Name, found, len(units)))
	}
	if err := e.playAll(ctx, missing, j, o); err != nil {
		return nil, nil, err
	}
	for _, u := range missing {
		if u.stderr != "" {
			o.Warn(fmt.Sprintf("%s: policy %s, seed %d wrote to standard error:\n%s",
				e.Name, u.Policy, u.Seed, u.stderr))
		}
	}
	return units, held, j.close()
}

var printable = regexp.MustCompile(`^[\pL\pM\pN\pP\pS ]+$`)

// checkNames validates the name, which is a directory's, and the labels, as fields of CSV files without quotes.
func (e *Experiment) checkNames() error {
	names := []string{e.Name}
	for _, p := range e.Policies {
		names = append(names, p.Label)
	}
	for _, name := range names {
		if !printable.MatchString(name) || strings.ContainsAny(name, `/\",`) || strings.Trim(name, ".") == "" {
			return fmt.Errorf("experiment %q: the name %q: must be printable, without / \\ \" or commas",
				e.Name, name)
		}
	}
	return nil
}

// validate returns an error if the experiment cannot be played.
func (e *Experiment) validate() error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("experiment %q: "+format, append([]any{e.Name}, args...)...)
	}
	switch {
	case e.Rounds < 1:
		return fail("rounds = %d: must be at least 1", e.Rounds)
	case e.World == nil:
		return fail("the world is nil: set World")
	case e.Constraint == nil:
		return fail("the constraint is nil: set Constraint")
	case len(e.Seeds) == 0:
		return fail("there are no seeds: name at least one")
	}
	labels := map[string]bool{}
	for i, p := range e.Policies {
		switch {
		case p.New == nil:
			return fail("policy %d, %q: the constructor is nil: set New", i+1, p.Label)
		case labels[p.Label]:
			return fail("policy %d, %q: the label is a duplicate: give each policy its own", i+1, p.Label)
		}
		labels[p.Label] = true
	}
	seeds := map[uint64]bool{}
	for _, seed := range e.Seeds {
		if seeds[seed] {
			return fail("seed %d is a duplicate: a seed counts once", seed)
		}
		seeds[seed] = true
	}
	return nil
}

// playAll plays units on o.Workers goroutines, until ctx ends or a unit fails.
func (e *Experiment) playAll(ctx context.Context, units []*unit, j *journal, o Options) error {
	alone := parallel.Workers(o.Workers, len(units)) == 1
	err := parallel.Each(ctx, o.Workers, units, func(ctx context.Context, u *unit) error {
		begin := cpu.Time()
		if err := e.play(ctx, u, o.Progress, func(vitrine.Round) {}); err != nil {
			return err
		}
		if alone { // otherwise other units' time would count
			u.Processor = (cpu.Time() - begin).Seconds()
		}
		return j.append(u)
	})
	if err != nil && errors.Is(err, context.Cause(ctx)) {
		return fmt.Errorf("%s: %w", e.Name, ErrInterrupted)
	}
	return err
}
