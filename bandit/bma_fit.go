package bandit

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"vitrine/internal/kernel"
	"vitrine/internal/panics"
	"vitrine/internal/portable"
	"vitrine/mle"
	"vitrine/utility"
)

// beliefs are the state that a full fit changes.
type beliefs struct {
	z         standardisation // in use; zero before the first items
	bent      *beliefs        // in normal scores of the features that are far from normal; or nil
	intercept float64         // the standard deviation of its prior
	experts   []*expert
	base      *expert      // linear: units are searched beside its fit
	flat      *expert      // linear with slopes near 0; nil if slopes are known
	known     *linearPrior // known before the first round; or nil
}

// clone returns beliefs that can be fitted while b learns.
func (b *beliefs) clone() *beliefs {
	n, all := *b, b.all()
	for i, e := range all {
		twin := *e
		twin.prior = slices.Clone(e.prior)
		all[i] = &twin
	}
	n.set(all)
	if b.bent != nil {
		n.bent = b.bent.clone()
	}
	return &n
}

// views returns the beliefs in standardised features and, if there are any, those in normal scores.
func (b *beliefs) views() []*beliefs {
	if b.bent == nil {
		return []*beliefs{b}
	}
	return []*beliefs{b, b.bent}
}

// inScores returns beliefs of the same families before the first round, for normal scores, except experts with a
// memory.
func (b *beliefs) inScores(z standardisation) (*beliefs, error) {
	n := &beliefs{z: z, intercept: 1, base: b.base.twin(1), flat: b.flat.twin(1)}
	for j := range b.flat.Model.NumFeatures() {
		n.flat.prior[j] = b.flat.prior[j]
	}
	for _, e := range b.experts {
		if e.MemoryRounds == 0 {
			twin := e.twin(1)
			if b.awaited(e) != nil {
				twin.wake = waiting
			}
			n.experts = append(n.experts, twin)
		}
	}
	for _, e := range n.all() {
		if err := e.restart(); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// bases returns the linear families with posteriors over units next to their fits.
func (b *beliefs) bases() []*expert {
	if b.flat == nil {
		return []*expert{b.base}
	}
	return []*expert{b.base, b.flat}
}

// all returns the bases and the experts.
func (b *beliefs) all() []*expert { return append(b.bases(), b.experts...) }

// set replaces the experts that all returns.
func (b *beliefs) set(all []*expert) {
	bases := len(b.bases())
	b.base, b.experts = all[0], all[bases:]
	if b.flat != nil {
		b.flat = all[1]
	}
}

// learn moves all beliefs by a raw round, which must show items. If a fit to this round follows at once, learn moves
// only those that the fit leaves alone.
func (b *beliefs) learn(round *mle.Choices, fitted bool, t *tangent) {
	if b.bent != nil {
		b.bent.learn(round, fitted, t)
	}
	round = round.Transformed(b.z.row)
	for _, e := range b.experts {
		if e.wake == 0 && (e.MemoryRounds > 0 || !fitted) {
			e.learn(round, b.base, t)
		}
	}
	if !fitted {
		for _, e := range b.bases() {
			e.learn(round, nil, t)
		}
	}
}

// maxRounds is the number of rounds that are kept. A fit then folds the older half.
const maxRounds = 8192

// fit begins a full fit if one is due, and takes the result of one that is.
func (l *BMA) fit() {
	if l.job != nil {
		l.job.teach(queued{l.history.Round(l.history.Rounds() - 1), l.z})
	}
	if l.isDue() {
		l.begin()
	}
	if l.job != nil && l.rounds >= l.job.due {
		l.take()
	}
}

// isDue reports whether a full fit begins after this round.
func (l *BMA) isDue() bool {
	return l.job == nil && (l.rounds >= l.nextFit || l.history.Rounds() >= l.window)
}

// lag returns the number of rounds that a fit after this round may take. Early fits are short, and their results matter
// at once.
func (l *BMA) lag() int { return min(l.rounds/minLag, maxLag) }

const (
	minLag = 16
	maxLag = 3072
)

// begin starts a full fit.
func (l *BMA) begin() {
	l.nextFit = l.later(1)
	kept, lag := l.history.Rounds(), l.lag()
	job := newFitJob(l.rounds+lag, l.beliefs.clone())
	if kept >= l.window {
		job.fold = l.window / 2
	}
	bentMoved := false
	if l.folded+job.fold == 0 {
		job.moved = job.result.standardise(&l.seen)
		bentMoved = job.result.score(&l.seen)
	} else {
		l.seen.sketches = nil
	}
	search := job.moved || bentMoved || l.rounds >= l.nextSearch
	if search {
		l.nextSearch = l.later(3)
	}
	l.job = job
	grow := kept >= l.window/8 && !l.history.HasRoom(l.window+maxLag) // while a copy is short
	history := l.history.Slice(0, kept)
	workers := runtime.GOMAXPROCS(0)
	if lag > 0 { // one is left for the rounds and decisions that come meanwhile
		workers = max(1, workers-1)
	}
	f := fitting{beliefs: job.result, o: l.o, seed: l.seed, rounds: l.rounds, moved: job.moved, search: search,
		workers: workers}
	bent := f
	bent.beliefs, bent.seed, bent.moved = job.result.bent, l.seed+bentSeed, bentMoved
	job.start(l.cost*time.Duration(kept), lag, func() {
		if grow {
			job.room = history.Room(l.window + maxLag)
		}
		f.run(history, job.fold)
		if bent.beliefs != nil {
			bent.run(history, job.fold)
		}
		job.result.rest(f.rounds)
	})
}

// bentSeed makes other draws for the beliefs in normal scores.
const bentSeed = 1 << 32

// wait returns when the running fit, if any, has ended and learned the rounds since. If a model panicked in it, wait
// panics.
func (l *BMA) wait() {
	if l.job == nil {
		return
	}
	job := l.job
	l.job = nil // if it panicked
	job.wait()
	l.job = job
}

// take makes the result of the fit the learner's beliefs.
func (l *BMA) take() {
	l.wait()
	job := l.job
	l.job = nil
	last := l.history.Rounds()
	// A fit with a search costs more than one without, and not every fit searches.
	l.cost = max(job.took/time.Duration(last), l.cost*4/5)
	if !job.moved {
		for i, e := range job.result.experts {
			if e.MemoryRounds > 0 && l.experts[i].wake == 0 {
				e.posterior = l.experts[i].posterior // fits leave it alone
			}
		}
	}
	l.beliefs = job.result
	if job.room != nil {
		job.room.AppendAll(l.history)
		l.history = job.room
	}
	if job.fold > 0 {
		l.history.Drop(job.fold)
		l.folded += job.fold
	}
}

// later returns the round that is Growth times the present one, but at least minimum rounds from now. It fits into an
// int and a snapshot.
func (l *BMA) later(minimum int) int {
	return max(l.rounds+minimum, int(min(l.o.Growth*float64(l.rounds), 1<<30-1)))
}

// standardise adopts the moments of all items so far if the ones in use are too far from them. It reports whether it
// did: then earlier rounds were learned with other moments.
func (b *beliefs) standardise(seen *moments) bool {
	if seen.n == 0 || b.z.shift == nil {
		return false
	}
	now := seen.standardisation()
	if b.z.stands(now) {
		return false
	}
	before := b.z
	b.z = now
	if b.assume() != nil { // too far from the known prior for a float64
		b.z = before
		return false
	}
	return true
}

// score makes beliefs in normal scores if a feature is bent and there are none or their scores moved, and drops them if
// no feature is bent. It reports whether it made some.
func (b *beliefs) score(seen *moments) bool {
	if seen.n == 0 || b.z.shift == nil || seen.sketches == nil {
		return false
	}
	var now standardisation
	if b.bent != nil {
		now = b.bent.z
	}
	later, bent := seen.scores(now)
	switch {
	case !bent:
		b.bent = nil
		return false
	case b.bent != nil && now.stands(later):
		return false
	case b.bent != nil:
		b.bent.z = later
		return true
	}
	n, err := b.inScores(later)
	if err != nil {
		return false
	}
	b.bent = n
	return true
}

// fold makes the posterior of rounds each expert's anchor.
func (b *beliefs) fold(c *mle.Choices) {
	for _, e := range b.bases() {
		e.fold(c, nil)
	}
	for _, e := range b.experts {
		if e.MemoryRounds == 0 && (e.wake == 0 || b.fewer(e) == nil) {
			e.fold(c, b.base)
			e.wake = 0
		}
	}
}

// fitting is a full fit of beliefs.
type fitting struct {
	*beliefs
	o      BMAOptions
	seed   uint64
	rounds int
	moved  bool // the standardisation has moved
	search bool // for units
	// workers is the number of experts that are fitted at a time.
	workers int

	before map[*expert]*expert // the experts that others wait for, or did, as they were before the fit
}

// run fits all experts to the history as it came, side by side, without the first, folded rounds. If the
// standardisation moved, experts with a memory learn the history again, and no expert rests.
func (f *fitting) run(history *mle.Choices, folded int) {
	if f.z.shift != nil {
		history = history.Transformed(f.z.row)
	}
	if folded > 0 {
		f.fold(history.Slice(0, folded))
		history = history.Slice(folded, history.Rounds())
	}
	f.scaleIntercept(history)
	for _, base := range f.bases() {
		base.fit(history, nil, f.origin(base))
	}
	f.before = map[*expert]*expert{}
	for _, e := range f.experts {
		if o := f.awaited(e); o != nil {
			copied := *o
			f.before[e] = &copied
		}
	}
	var group sync.WaitGroup
	var fits panics.Catcher
	workers := make(chan struct{}, f.workers)
	for i, e := range f.experts {
		if f.moved {
			e.units, e.unit = nil, [2]*unitPosterior{}
		}
		if e.MemoryRounds > 0 && (f.rounds < e.wake || e.wake == 0 && !f.moved) {
			continue
		}
		group.Go(func() {
			workers <- struct{}{}
			defer func() { <-workers }()
			defer fits.Catch()
			if e.MemoryRounds > 0 {
				f.replay(e, history)
			} else {
				f.fit(e, history, streamOf(f.seed, i, f.rounds))
			}
		})
	}
	group.Wait()
	fits.Repanic()
}

// replay makes an expert with a memory learn the history from its first round on. One that waited is charged the
// evidence of the folded rounds under the family that it waited for.
func (f *fitting) replay(e *expert, history *mle.Choices) {
	e.wake = 0
	if e.restart() != nil {
		return // cannot happen: it was made in the same way
	}
	var t tangent
	for s := range history.Rounds() {
		if round := history.Round(s); round.Rows() > 0 {
			e.learn(round, f.base, &t)
		}
	}
	if o := f.before[e]; o != nil && o.anchor != nil { // o itself is being fitted
		e.posterior.LogEvidence += o.anchor.LogEvidence
	}
}

// fit fits an expert that does not rest, and estimates the posteriors of one unit more for a family without units.
func (f *fitting) fit(e *expert, history *mle.Choices, rng *rand.Rand) {
	extends := f.before[e] != nil
	resting := f.rounds < e.wake && (extends || !f.moved)
	anew := extends && e.wake > 0 && !resting // it was not folded
	if !resting {
		e.wake = 0
		starts := f.origin(e)
		if f.search || anew {
			starts = append(starts, f.starts(e, history, rng)...)
		}
		switch {
		case !anew:
			if !e.fit(history, f.base, starts) {
				e.wake = f.rounds + 1
			}
		case len(starts) == 0:
			e.wake = 2 * f.rounds
		default:
			twin := *e
			twin.posterior, twin.anchor = &mle.Laplace{Mode: starts[0].w}, starts[0].anchor
			if twin.fit(history, f.base, starts[1:]) {
				*e = twin
			} else {
				e.wake = 2 * f.rounds
			}
		}
	}
	if m, ok := e.additive(); ok && !extends {
		for k, base := range f.bases() {
			if test := mle.NewScoreTest(m, history, base.posterior, history.Rounds(), 0); test != nil {
				e.unit[k] = e.unit[k].next(m, e.prior, test, rng)
			}
		}
	}
}

// negligible is the weight below which an expert rests until the rounds have doubled: it counts 0, and is neither
// fitted nor moved.
const negligible = 1e-6

// rest lets experts rest if their modes are negligible among the modes. Units go with their linear family. Their
// evidence is a second-order estimate, so it lets no mode rest.
func (b *beliefs) rest(rounds int) {
	most := math.Inf(-1)
	for _, v := range b.views() {
		for _, e := range v.experts {
			if e.wake == 0 {
				most = max(most, e.posterior.LogEvidence)
			}
		}
	}
	least := most + portable.Log(negligible)
	for _, v := range b.views() {
		for _, e := range v.experts {
			if e.MemoryRounds == 0 && e.wake == 0 && e.posterior.LogEvidence < least {
				e.wake = 2 * rounds
			}
			for k, base := range v.bases() {
				if base.posterior.LogEvidence < least {
					e.unit[k] = nil
				}
			}
		}
	}
	all := b.split()
	for k, v := range b.views() {
		shares := v.together(all[k])
		for i, o := range v.experts {
			for _, e := range v.experts {
				if e.wake == waiting && shares[i] > 0.5 && v.awaited(e) == o {
					e.wake = rounds
				}
			}
		}
	}
}

// origin returns the start of an expert before its first round, as a start of its fit, if
// its mode belongs to another standardisation.
func (f *fitting) origin(e *expert) []start {
	if !f.moved {
		return nil
	}
	return []start{{e.start, e.anchor}}
}

// The scale of the intercept is learned: log sd ~ N(0, 1.6²), at three points.
var interceptScales = [...]float64{0.2, 1, 5}

const interceptSpread = 1.6

// scaleIntercept sets the standard deviation of the intercept's prior, for all experts, to
//
//	exp(Σ_k q_k log sd_k),  q_k ∝ evidence(sd_k) exp(−½ (log sd_k / 1.6)²)
//
// with the evidence of linear fits. It stays once rounds are folded, because the anchor contains it.
func (f *fitting) scaleIntercept(history *mle.Choices) {
	if f.base.anchor != nil {
		return
	}
	var logs, q [len(interceptScales)]float64
	e := *f.base
	e.prior = slices.Clone(e.prior)
	for k, sd := range interceptScales {
		e.setIntercept(sd)
		if !e.fit(history, nil, f.origin(&e)) {
			return
		}
		logs[k] = portable.Log(sd)
		q[k] = e.posterior.LogEvidence - float64(logs[k]*logs[k]/(2*interceptSpread*interceptSpread))
	}
	softmax(q[:])
	f.intercept = portable.Exp(kernel.Dot(q[:], logs[:]))
	for _, e := range f.all() {
		e.setIntercept(f.intercept)
	}
}

// setIntercept sets the standard deviation of the prior of the family's intercept, if any.
func (e *expert) setIntercept(sd float64) {
	d := e.Model.NumFeatures()
	switch m := e.Model.(type) {
	case *utility.Linear:
		if m.NumParams() == d {
			return
		}
	case *utility.Additive, *utility.Expansion:
	default:
		return
	}
	e.prior[d] = 1 / (sd * sd)
}
