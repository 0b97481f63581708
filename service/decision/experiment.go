package decision

import (
	"fmt"
	"slices"
	"time"

	"vitrine"
	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
	"vitrine/service/variants"
)

// experiment is the state of a placement's experiment. Decisions count in cohorts, as those of a guard do: see guard.
type experiment struct {
	*routes
	begun   int64
	owner   *worker // the placement's learner
	phases  []phase // with the same shares, the oldest first
	results *variants.Results
	held    *variants.Results // of the holdout, a single variant
	groups  []api.Group       // by class: of the variants, and of the holdout
	asked   []uint64          // decisions, by class
	units   []uint64          // units, by class
	seen    []uint64          // a bit for each hash of a unit that has come, modulo seenUnits
	ratio   variants.Ratio
	samples []*sample // the oldest first
	points  []point
	step    int64 // the least time between two points
}

// routes says which variant a unit is shown. It does not change.
type routes struct {
	number  uint64 // the entry that began the experiment
	design  *api.Experiment
	table   []uint8   // the variant of each bucket
	shares  []float64 // of the variants
	holdout int       // buckets
	workers []*worker // by variant: those of its own, nil if it has none
}

// phase is a time with the same shares.
type phase struct {
	entry   uint64
	time    int64
	shares  []float64
	holdout int
	moved   int // buckets
}

// sample is a cohort of decisions.
type sample struct {
	number int64
	open   uint64
	block  *variants.Block
	held   *variants.Block
	groups []api.Group
	units  []uint64 // whose first decision it has, in the present phase
}

// point is the state of an experiment at a time.
type point struct {
	time        int64
	decisions   uint64
	means       []api.Interval
	differences []api.Interval
}

const (
	seenUnits       = 1 << 20
	maxPoints       = 256
	maxPhases       = 100
	maxPast         = 10 // experiments that have ended
	experimentError = 0.05
	ratioError      = 0.001

	// experimentBytes is what an experiment takes besides its learners: its clusters, the units that have come, and its points.
	experimentBytes = 1 << 20
)

// class returns the variant of a unit by its hash, or the number of variants for the holdout.
func (r *routes) class(unit uint64) int {
	if variants.Bucket(unit, 0) < r.holdout {
		return len(r.shares)
	}
	return int(r.table[variants.Bucket(unit, r.number)])
}

// name returns the name of a class.
func (r *routes) name(class int) string {
	if class == len(r.shares) {
		return api.Holdout
	}
	return r.design.Variants[class].Name
}

// classOf returns the class with a name, -1 if there is none.
func (r *routes) classOf(name string) int {
	if name == api.Holdout {
		return len(r.shares)
	}
	return variantOf(r.design, name)
}

// show returns what a class is shown.
func (r *routes) show(class int) string {
	if class == len(r.shares) {
		return api.ShowBaseline
	}
	return r.design.Variants[class].Show
}

// learnerOf returns the learner of its own of the variant with a name, nil if it has none.
func (r *routes) learnerOf(variant string) *worker {
	if class := variantOf(r.design, variant); class >= 0 {
		return r.workers[class]
	}
	return nil
}

// route is what a request is shown: nothing in particular without an experiment.
type route struct {
	show    string // api.ShowPolicy, …
	variant string
	unit    uint64
	worker  *worker // the learner of its own of a variant; nil if it is the placement's
}

// route returns what the unit of a request is shown.
func (v *view) route(r *request) (to route, err error) {
	if v.config.Mode != api.Experimenting {
		return to, nil
	}
	if r.Unit == "" && r.trial { // shows what the placement's policy would
		return to, nil
	}
	if r.Unit == "" {
		return to, api.Fieldf("/unit", "is missing: in the mode %q it says who is shown the same variant each time, such as a shopper's id", api.Experimenting)
	}
	to.unit = variants.Unit(v.name, r.Unit)
	class := v.routes.class(to.unit)
	to.variant, to.show = v.routes.name(class), v.routes.show(class)
	if class < len(v.routes.workers) {
		to.worker = v.routes.workers[class]
	}
	return to, nil
}

// routing returns the routes of the experiment that runs, nil if none does.
func (p *placement) routing() *routes {
	if p.experiment == nil {
		return nil
	}
	return p.experiment.routes
}

// check reports an offer of another variant than the one of its unit. Without an experiment r is nil.
func (r *routes) check(o *offer.Offer) error {
	switch {
	case r == nil && o.Variant != "":
		return fmt.Errorf("the offer is of variant %q, and there is no experiment", o.Variant)
	case r == nil || o.Mode == offer.ByImport:
		return nil
	}
	if name := r.name(r.class(o.Unit)); o.Variant != name {
		return fmt.Errorf("the offer is of variant %q, and its unit is shown %q", o.Variant, name)
	}
	return nil
}

// isOwn reports whether an offer has the estimates of the placement's learner.
func (p *placement) isOwn(o *offer.Offer) bool {
	if o.Variant == "" {
		return true
	}
	if p.experiment == nil {
		return false
	}
	class := p.experiment.classOf(o.Variant)
	return class >= len(p.experiment.workers) || class >= 0 && p.experiment.workers[class] == nil
}

// taught returns the learners that learn from a decision. During an experiment with learn "own" the learner of a
// variant learns from it only, so that what it earns does not depend on the others. The placement's learner learns
// from everything if it is that of no variant.
func (p *placement) taught(o *offer.Offer) (list []*worker) {
	e := p.experiment
	if e == nil {
		return []*worker{p.worker}
	}
	class := e.classOf(o.Variant)
	isVariant := isOwnPolicy(e.design)
	if e.design.Learn == api.LearnAll || !isVariant || class < 0 || class < len(e.workers) && e.show(class) == api.ShowPolicy && e.workers[class] == nil {
		list = append(list, p.worker)
	}
	for i, w := range e.workers {
		if w != nil && (e.design.Learn == api.LearnAll || i == class) {
			list = append(list, w)
		}
	}
	return list
}

// isOwnPolicy reports whether a variant shows what the placement's policy chooses.
func isOwnPolicy(e *api.Experiment) bool { return isShown(e, api.ShowPolicy) }

// newVariants reports whether an experiment begins with a configuration.
func (p *placement) newVariants(c *Config) bool {
	return c.Experiment != nil && (p == nil || p.experiment == nil || p.config.Experiment.Name != c.Experiment.Name || !p.config.sameLearner(c))
}

// buildVariants builds the learners of the variants that have their own, for an experiment that begins with a
// configuration; nil if none does.
func buildVariants(build func(Spec) (vitrine.Learner, error), p *placement, c *Config) ([]*worker, error) {
	if !p.newVariants(c) {
		return nil, nil
	}
	workers := make([]*worker, len(c.Experiment.Variants))
	err := c.ofVariants(func(i int, own *Config) (err error) {
		workers[i], err = newWorker(build, own, 0)
		return err
	})
	return workers, err
}

// conduct begins, changes or ends the experiment of a placement after its configuration has changed.
func (s *fold) conduct(p *placement, sequence uint64, time int64, workers []*worker) {
	c := p.config
	if e := p.experiment; e != nil && (c.Experiment == nil || c.Experiment.Name != e.design.Name || e.owner != p.worker) {
		p.endExperiment(time)
	}
	switch {
	case c.Experiment == nil:
		return
	case p.experiment == nil:
		p.experiment = newExperiment(sequence, time, p.worker, workers, len(c.Experiment.Variants), variantOf(c.Experiment, c.Experiment.Control))
		p.experiment.step = p.guard.Watch.Cohort()
		for _, w := range workers {
			if w != nil {
				w.begin(sequence)
				s.workers.Go(w.run)
			}
		}
	}
	e := p.experiment
	for _, w := range e.workers {
		if w != nil {
			w.queue.setBound(c.share())
		}
	}
	e.divide(c.Experiment, sequence, time)
}

func newExperiment(sequence uint64, time int64, owner *worker, workers []*worker, n, control int) *experiment {
	return &experiment{
		routes: &routes{number: sequence, workers: workers}, begun: time, owner: owner,
		results: variants.NewResults(n, control), held: variants.NewResults(1, 0),
		groups: make([]api.Group, n+1), asked: make([]uint64, n+1), units: make([]uint64, n+1), seen: make([]uint64, seenUnits/64),
	}
}

// divide gives the variants their shares, and begins a phase if they are others.
func (e *experiment) divide(design *api.Experiment, sequence uint64, time int64) {
	next := &routes{number: e.number, design: design, workers: e.workers, table: e.table}
	next.holdout, _ = variants.Count(design.Holdout)
	counts := make([]int, len(design.Variants))
	for v := range counts {
		counts[v], _ = variants.Count(design.Variants[v].Share)
		next.shares = append(next.shares, float64(counts[v])/variants.Buckets)
	}
	if e.table != nil && e.holdout == next.holdout && slices.Equal(e.shares, next.shares) {
		e.routes = next
		return
	}
	table, moved := variants.Allocate(e.table, counts)
	if e.table != nil {
		e.results.Move(e.table, table)
	}
	next.table, e.routes = table, next
	e.phases = append(e.phases, phase{sequence, time, next.shares, next.holdout, moved})
	e.phases = e.phases[max(0, len(e.phases)-maxPhases):]
	e.ratio.Begin(len(counts) + 1)
	for _, s := range e.samples {
		clear(s.units)
	}
}

// endExperiment ends the experiment and keeps its report. Its learners end, except the one that decides now.
func (p *placement) endExperiment(time int64) {
	report := p.experiment.report()
	report.Ended = timeOf(time)
	p.past = append(slices.Clone(p.past), string(canonical(report)))
	p.past = p.past[max(0, len(p.past)-maxPast):]
	for _, w := range p.experiment.workers {
		if w != nil && w != p.worker {
			w.stop()
		}
	}
	p.experiment = nil
}

func timeOf(t int64) *time.Time { return new(time.Unix(0, t).UTC()) }

// challengers are the learners that variants have of their own.
func (p *placement) challengers() (list []*worker) {
	if p.experiment == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.experiment.workers), func(w *worker) bool { return w == nil })
}

// adoptable returns the variant whose learner goes on under a configuration without an experiment, -1 if there is none.
func (p *placement) adoptable(c *Config) int {
	if p.experiment == nil || c.Experiment != nil {
		return -1
	}
	return slices.IndexFunc(p.experiment.workers, func(w *worker) bool { return w != nil && w.config.sameLearner(c) })
}

// adopt makes the learner of a variant the one that decides, and ends the experiment.
func (s *fold) adopt(p *placement, sequence uint64, time int64, b *eventlog.LearnerAdopted) error {
	c, _, err := parseLogged(b.Config)
	if err != nil {
		return err
	}
	at := p.adoptable(c)
	if at < 0 || p.experiment.name(at) != b.Variant {
		return fmt.Errorf("no learner of a variant %q can decide", b.Variant)
	}
	r, err := s.prepared(p, c, false)
	if err != nil {
		return err
	}
	s.keepBefore(p, time, b.Note, 0)
	s.retire(p)
	p.worker = p.experiment.workers[at]
	p.learned, p.standing = sequence, 0
	p.configure(c, sequence)
	s.conduct(p, sequence, time, nil)
	p.turn(sequence, time, api.BegunByAdoption)
	p.sound.Forget()
	p.restartGuard(sequence)
	s.trim(p, 0)
	s.recharge(p, s.chargeOf(p), r.held)
	s.forget(p)
	return nil
}

// ends reports what a change of a placement with an experiment would lose. done says that nothing else is to be checked.
func (p *placement) ends(c *Config, how *Change) (done bool, err error) {
	same := p.config.sameLearner(c)
	switch {
	case p.experiment == nil:
		if how.relearns() && c.Experiment != nil && !same {
			return true, api.Fieldf("/mode", "%q cannot begin with a relearning: begin it when that has ended", api.Experimenting)
		}
		return false, nil
	case same && c.Experiment != nil && c.Experiment.Name == p.config.Experiment.Name:
		return true, mayBecome(p.config, c)
	case p.adoptable(c) >= 0 && !same:
		return true, nil
	case how.relearns():
		return true, fmt.Errorf("placement %q: %w", p.name, ErrExperiment)
	case how.Reset:
		return false, nil
	}
	loss := &LossError{Placement: p.name, Fields: []string{"experiment"}, Experiment: p.config.Experiment.Name}
	for i, w := range p.experiment.workers {
		if w == nil {
			continue
		}
		if n := w.rounds(); n > 0 {
			loss.Rounds += n
			loss.Variants = append(loss.Variants, p.experiment.name(i))
		}
	}
	if loss.Rounds > 0 {
		return true, loss
	}
	return false, nil
}

// rounds is how many rounds a learner has learned or is about to.
func (w *worker) rounds() uint64 { return w.seen.Load().observed + w.given.Load() - w.done.Load() }

// sampleOf returns the cohort of a decision, nil if it is not of the experiment.
func (e *experiment) sampleOf(r *record) *sample {
	if r.entry <= e.number {
		return nil
	}
	number := r.time / r.placement.guard.Watch.Cohort()
	at, found := slices.BinarySearchFunc(e.samples, number, func(s *sample, n int64) int { return int(min(max(s.number-n, -1), 1)) })
	if !found {
		e.samples = slices.Insert(e.samples, at, e.newSample(number))
	}
	return e.samples[at]
}

func (e *experiment) newSample(number int64) *sample {
	return &sample{number: number, block: e.results.Begin(), held: e.held.Begin(), groups: make([]api.Group, len(e.groups)), units: make([]uint64, len(e.units))}
}

// enter adds an open decision.
func (e *experiment) enter(r *record, o *offer.Offer) {
	s := e.sampleOf(r)
	if s == nil || o.Variant == "" {
		return
	}
	s.open++
	e.asked[e.classOf(o.Variant)]++
	if word, bit := o.Unit%seenUnits/64, uint64(1)<<(o.Unit%64); e.seen[word]&bit == 0 {
		e.seen[word] |= bit
		r.first = true
	}
}

// leave takes a decision that has closed; o is nil if there is no round of it.
func (e *experiment) leave(r *record, o *offer.Closed) {
	if o != nil && o.Variant == "" { // imported
		return
	}
	s := e.sampleOf(r)
	if s == nil || s.open == 0 {
		return
	}
	s.open--
	if o == nil {
		return
	}
	class, x, bound := e.classOf(o.Variant), o.Earned(), o.Bound()
	s.groups[class].Add(o.Group())
	at, _ := slices.BinarySearchFunc(e.phases, r.entry, func(p phase, entry uint64) int {
		if p.entry < entry {
			return -1
		}
		return 1
	})
	made := &e.phases[max(at-1, 0)]
	if r.first && made == &e.phases[len(e.phases)-1] {
		s.units[class]++
	}
	switch {
	case class == len(e.shares):
		s.held.Add(0, x, bound, []float64{1}, 0)
		e.held.Cluster(variants.Bucket(o.Unit, 0), 0, x, s.held.Centre, []float64{1})
	case made.shares[class] > 0:
		s.block.Add(class, x, bound, made.shares, e.results.Control)
		bucket := variants.Bucket(o.Unit, e.number)
		if int(e.table[bucket]) != class {
			bucket = -1
		}
		e.results.Cluster(bucket, class, x, s.block.Centre, made.shares)
	}
}

// advance adds the cohorts that are complete by a time.
func (e *experiment) advance(now, length int64) {
	for len(e.samples) > 0 && e.samples[0].open == 0 && e.samples[0].number < now/length {
		s := e.samples[0]
		e.samples = slices.Delete(e.samples, 0, 1)
		e.take(s, (s.number+1)*length)
	}
}

// take adds a cohort that ended at a time.
func (e *experiment) take(s *sample, at int64) {
	e.results.Take(s.block)
	e.held.Take(s.held)
	out := float64(e.holdout) / variants.Buckets
	for class := range e.groups {
		e.groups[class].Add(&s.groups[class])
		e.units[class] += s.units[class]
		p := out
		if class < len(e.shares) {
			p = (1 - out) * e.shares[class]
		}
		if p > 0 {
			e.ratio.Add(class, s.units[class], p)
		}
	}
	e.ratio.Look()
	e.note(at)
}

// note adds a point, and drops every second one if they become too many.
func (e *experiment) note(at int64) {
	if n := len(e.points); n > 0 && at-e.points[n-1].time < e.step {
		return
	}
	if len(e.points) == maxPoints {
		for i := range maxPoints / 2 {
			e.points[i] = e.points[2*i+1]
		}
		e.points = e.points[:maxPoints/2]
		e.step = max(2*e.step, (e.points[maxPoints/2-1].time-e.points[0].time)/(maxPoints/2-1))
	}
	e.points = append(e.points, e.point(at))
}
