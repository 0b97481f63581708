// Package bandittest holds the contract battery of learners.
package bandittest

import (
	"bytes"
	"encoding"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// numProbes is the number of contexts on which policies are compared. A policy
// that shares memory with its learner passes one probe easily.
const numProbes = 40

// TestLearner judges a learner of items with the given number of features,
// which offers at most size of them. newLearner must return a new learner at
// its first round, the same each time it is called; steps is a number of
// rounds that takes it through all its phases. A policy must panic for items
// of another number of features, as bandit.Problem.Family does for it.
func TestLearner(t *testing.T, features, size, steps int, newLearner func() vitrine.Learner) {
	b := battery{features: features, size: size, newLearner: newLearner}
	b.rounds = b.play(newLearner(), steps)

	t.Run("offers are feasible", b.offersAreFeasible)
	t.Run("propensities are true", b.propensitiesAreTrue)
	t.Run("decisions are repeatable", b.decisionsAreRepeatable)
	t.Run("policies are frozen", b.policiesAreFrozen)
	t.Run("policies serve concurrently", b.policiesServeConcurrently)
	t.Run("only Observe learns", b.onlyObserveLearns)
	t.Run("rounds may be late or missing", b.roundsMayBeLateOrMissing)
	t.Run("takes have no order", b.takesHaveNoOrder)
	t.Run("further takes teach", b.furtherTakesTeach)
	t.Run("a request may narrow the family", b.requestMayNarrowTheFamily)
	t.Run("bad rounds are refused", b.badRoundsAreRefused)
	t.Run("a wrong width is named", b.wrongWidthIsNamed)
	t.Run("large features do no harm", b.largeFeaturesDoNoHarm)
	t.Run("contexts stay as they are", b.contextsStay)
	t.Run("snapshots continue", b.snapshotsContinue)
	t.Run("damaged snapshots are refused", b.damagedSnapshotsAreRefused)
}

// Snapshotter is a learner that can be saved and restored.
type Snapshotter interface {
	vitrine.Learner
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

type battery struct {
	features, size int
	newLearner     func() vitrine.Learner
	rounds         []vitrine.Round // a history that newLearner's learner lived through
}

// context draws n items with standard normal features; every other context sets unequal revenues, some of them 0.
func (b battery) context(n int, rng *rand.Rand) *vitrine.Context {
	x := &vitrine.Context{}
	if n > 0 {
		x.Features = mat.NewDense(n, b.features, nil)
		for i := range n {
			for j := range b.features {
				x.Features.Set(i, j, rng.NormFloat64())
			}
		}
	}
	if rng.IntN(2) == 0 {
		x.Revenue = make([]float64, n)
		for i := range x.Revenue {
			x.Revenue[i] = math.Floor(4*rng.Float64()) / 2
		}
	}
	return x
}

// customer chooses from s by a utility that is not linear.
func (b battery) customer(x *vitrine.Context, s vitrine.Assortment, rng *rand.Rand) vitrine.Choice {
	n := x.NumItems()
	u, shock := make([]float64, n), make([]float64, n+1)
	for i := range u {
		row := x.Features.RawRowView(i)
		u[i] = math.Cos(3*row[0]) + row[len(row)-1]/2
	}
	vitrine.DrawShocks(shock, rng)
	return vitrine.Choose(s, u, shock)
}

func rngAt(parts ...uint64) *rand.Rand {
	h := uint64(14695981039346656037)
	for _, p := range parts {
		h = (h ^ p) * 1099511628211
	}
	return rand.New(rand.NewPCG(h, 7))
}

// further draws the takes after the first in about one visit of three, up to three of them.
func (b battery) further(x *vitrine.Context, s vitrine.Assortment, first vitrine.Choice,
	rng *rand.Rand) (more []vitrine.Choice) {
	for first != vitrine.Outside && len(more) < 3 && rng.IntN(3) == 0 {
		c := b.customer(x, s, rng)
		for c == vitrine.Outside {
			c = b.customer(x, s, rng)
		}
		more = append(more, c)
	}
	return more
}

// play lets the learner decide and learn for the given number of rounds.
func (b battery) play(l vitrine.Learner, steps int) []vitrine.Round {
	rounds := make([]vitrine.Round, steps)
	for t := range rounds {
		rng := rngAt(1, uint64(t))
		x := b.context(12, rng)
		offer := l.Policy().Offer(x, rng)
		rounds[t] = vitrine.Round{Context: x, Offer: offer, Choice: b.customer(x, offer.Assortment, rng)}
		rounds[t].More = b.further(x, offer.Assortment, rounds[t].Choice, rng)
		if err := l.Observe(rounds[t]); err != nil {
			panic(fmt.Sprintf("bandittest: round %d of a lawful history: %v", t, err))
		}
	}
	return rounds
}

// replay shows the learner the rounds from..to of the history.
func (b battery) replay(t *testing.T, l vitrine.Learner, from, to int) {
	t.Helper()
	for s := from; s < to; s++ {
		fatal.If(t, l.Observe(b.rounds[s]), "round", s)
	}
}

// offers returns what the policy offers on the probes.
func (b battery) offers(p vitrine.Policy) []vitrine.Offer {
	offers := make([]vitrine.Offer, numProbes)
	for k := range offers {
		rng := rngAt(2, uint64(k))
		offers[k] = p.Offer(b.context(12, rng), rng)
	}
	return offers
}

// stations are the moments of the history at which policies are looked at:
// nearly every round at first, then now and then.
func (b battery) stations() []int {
	var s []int
	for t := 0; t <= len(b.rounds); t += 1 + t/8 {
		s = append(s, t)
	}
	return append(s, len(b.rounds))
}

func (b battery) offersAreFeasible(t *testing.T) {
	l := b.newLearner()
	done := 0
	for _, at := range b.stations() {
		b.replay(t, l, done, at)
		done = at
		for _, n := range []int{0, 1, b.size - 1, b.size, b.size + 1, 30} {
			rng := rngAt(3, uint64(at), uint64(n))
			x, policy := b.context(n, rng), l.Policy()
			offer := policy.Offer(x, rng)
			fatal.If(t, offer.Assortment.Check(n), "after", at, "rounds, N", n)
			if len(offer.Assortment) > b.size {
				t.Fatalf("after %d rounds, N = %d: %d items offered, K is %d", at, n, len(offer.Assortment), b.size)
			}
			if !(offer.Propensity >= 0 && offer.Propensity <= 1) {
				t.Fatalf("after %d rounds, N = %d: propensity %v", at, n, offer.Propensity)
			}
			if known, ok := policy.(interface {
				Propensity(x *vitrine.Context, s vitrine.Assortment) float64
			}); ok {
				if p := known.Propensity(x, offer.Assortment); math.Abs(p-offer.Propensity) > 1e-12 {
					t.Fatalf("after %d rounds, N = %d: the policy gives its offer the propensity %v, and says %v "+
						"of the same set", at, n, offer.Propensity, p)
				}
			}
		}
	}
}

// propensitiesAreTrue draws often from few sets, and counts them. A policy states the probability of a set, or 0.
func (b battery) propensitiesAreTrue(t *testing.T) {
	l := b.newLearner()
	done := 0
	for _, at := range []int{0, len(b.rounds) / 2, len(b.rounds)} {
		b.replay(t, l, done, at)
		done = at
		for _, items := range []int{4, 12} {
			b.propensityIsTrue(t, l.Policy(), items, at)
		}
	}
}

func (b battery) propensityIsTrue(t *testing.T, policy vitrine.Policy, items, at int) {
	const draws = 2000
	rng := rngAt(8, uint64(at))
	x := b.context(items, rng)
	stated, drawn := map[string]float64{}, map[string]float64{}
	for range draws {
		o := policy.Offer(x, rng)
		set := fmt.Sprint(o.Assortment)
		if p, ok := stated[set]; ok && math.Abs(p-o.Propensity) > 1e-9 {
			t.Fatalf("after %d rounds: the set %s has the propensity %v, and then %v", at, set, p, o.Propensity)
		}
		stated[set] = o.Propensity
		drawn[set]++
	}
	for set, p := range stated {
		if p > 0 && math.Abs(drawn[set]-draws*p) > 1+6*math.Sqrt(draws*p*(1-p)) {
			t.Errorf("after %d rounds: the set %s has the propensity %v, and %v of %d draws: state the "+
				"probability of the set, or 0 if it is unknown", at, set, p, drawn[set], draws)
		}
	}
}

func (b battery) decisionsAreRepeatable(t *testing.T) {
	one, two := b.newLearner(), b.newLearner()
	done := 0
	for _, at := range b.stations() {
		b.replay(t, one, done, at)
		b.replay(t, two, done, at)
		done = at
		first := b.offers(one.Policy())
		expect.Equal(fatal.T(t), b.offers(one.Policy()), first, "after", at,
			"rounds the same policy and draws gave other offers", cmpopts.EquateEmpty())
		expect.Equal(fatal.T(t), b.offers(two.Policy()), first, "after", at,
			"rounds a learner with the same history differs", cmpopts.EquateEmpty())
	}
}

func (b battery) policiesAreFrozen(t *testing.T) {
	l := b.newLearner()
	var policies []vitrine.Policy
	var want [][]vitrine.Offer
	done := 0
	for _, at := range b.stations() {
		b.replay(t, l, done, at)
		done = at
		p := l.Policy()
		policies, want = append(policies, p), append(want, b.offers(p))
	}
	b.replay(t, l, 0, len(b.rounds)/2) // and learn some more
	for k, p := range policies {
		expect.Equal(fatal.T(t), b.offers(p), want[k], "the policy after", b.stations()[k],
			"rounds changed while its learner learned", cmpopts.EquateEmpty())
	}
}

// Under the race detector this also shows that policies and their learner share no memory that is written.
func (b battery) policiesServeConcurrently(t *testing.T) {
	l := b.newLearner()
	var wg sync.WaitGroup
	errs := make(chan string, 8)
	for k := 0; k <= 3; k++ {
		from, to := (k-1)*len(b.rounds)/3, k*len(b.rounds)/3
		b.replay(t, l, max(from, 0), max(to, 0))
		p := l.Policy()
		want := b.offers(p)
		for range 2 {
			wg.Go(func() {
				if diff := cmp.Diff(want, b.offers(p), cmpopts.EquateEmpty()); diff != "" {
					errs <- diff
				}
			})
		}
	}
	wg.Wait()
	close(errs)
	for diff := range errs {
		t.Errorf("a policy served another offer concurrently (-alone +together):\n%s", diff)
	}
}

// The history's contexts were shown to policies and learners.
func (b battery) contextsStay(t *testing.T) {
	for at, r := range b.rounds {
		x := b.context(12, rngAt(1, uint64(at)))
		if !mat.Equal(r.Context.Features, x.Features) || !slices.Equal(r.Context.Revenue, x.Revenue) ||
			r.Context.Feasible != nil {
			t.Fatalf("the policy or the learner changed the context of round %d: it must copy what it changes", at)
		}
	}
}

func (b battery) onlyObserveLearns(t *testing.T) {
	busy, idle := b.newLearner(), b.newLearner()
	for at := range b.rounds {
		if at%5 == 0 {
			b.offers(busy.Policy())
		}
		b.replay(t, busy, at, at+1)
		b.replay(t, idle, at, at+1)
	}
	expect.Equal(t, b.offers(busy.Policy()), b.offers(idle.Policy()), "deciding changed the learner",
		cmpopts.EquateEmpty())
}

func (b battery) roundsMayBeLateOrMissing(t *testing.T) {
	l := b.newLearner()
	rng := rngAt(4)
	for _, s := range rng.Perm(len(b.rounds)) {
		if s%7 == 0 {
			continue // never reported
		}
		r := b.rounds[s]
		if s%11 == 0 { // an empty page
			r.Offer, r.Choice, r.More = vitrine.Offer{Propensity: 1}, vitrine.Outside, nil
		}
		fatal.If(t, l.Observe(r), "round", s, "out of order")
	}
	for _, o := range b.offers(l.Policy()) {
		if err := o.Assortment.Check(12); err != nil || len(o.Assortment) > b.size {
			t.Fatalf("offer %v after a disordered history", o)
		}
	}
}

// takesHaveNoOrder shows one learner the takes of each visit in another order. It must learn the same, to the bit, and
// leave the caller's takes as they are.
func (b battery) takesHaveNoOrder(t *testing.T) {
	one, two := b.newLearner(), b.newLearner()
	several := 0
	for s, r := range b.rounds {
		b.replay(t, one, s, s+1)
		takes := append(slices.Clone(r.More), r.Choice)
		slices.Reverse(takes)
		r.Choice, r.More = takes[len(takes)-1], takes[:len(takes)-1]
		if slices.Max(takes) != slices.Min(takes) {
			several++
		}
		want := slices.Clone(takes)
		fatal.If(t, two.Observe(r), "round", s)
		if !slices.Equal(takes, want) {
			t.Fatalf("round %d: the learner changed the takes %v to %v", s, want, takes)
		}
	}
	if several == 0 && b.size > 1 {
		t.Error("no visit has different takes: the test says nothing")
	}
	expect.Equal(t, b.offers(two.Policy()), b.offers(one.Policy()), "the order of the takes matters",
		cmpopts.EquateEmpty())
}

// furtherTakesTeach compares the states of learners with and without the takes after the first. A learner to which
// choices are all the same is exempt.
func (b battery) furtherTakesTeach(t *testing.T) {
	state := func(change func(*vitrine.Round)) []byte {
		l, ok := b.newLearner().(Snapshotter)
		if !ok {
			t.Skip("the learner has no snapshots")
		}
		for s, r := range b.rounds {
			change(&r)
			fatal.If(t, l.Observe(r), "round", s)
		}
		return b.marshal(t, l)
	}
	all := state(func(*vitrine.Round) {})
	if bytes.Equal(all, state(func(r *vitrine.Round) { r.Choice, r.More = vitrine.Outside, nil })) {
		t.Skip("the learner does not learn from choices")
	}
	if bytes.Equal(all, state(func(r *vitrine.Round) { r.More = nil })) {
		t.Error("the learner ignores further takes")
	}
}

// only is the family of the sets of some items.
type only struct{ items map[int]bool }

func (o only) Contains(s vitrine.Assortment) bool {
	for _, i := range s {
		if !o.items[i] {
			return false
		}
	}
	return true
}

func (o only) MaxGain(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
	dst = dst[:0]
	for i, g := range gain {
		if o.items[i] && g > 0 {
			dst = append(dst, i)
		}
	}
	return dst
}

func (b battery) requestMayNarrowTheFamily(t *testing.T) {
	family := only{map[int]bool{2: true, 5: true}}
	l := b.newLearner()
	done := 0
	for _, at := range b.stations() {
		b.replay(t, l, done, at)
		done = at
		rng := rngAt(5, uint64(at))
		x := b.context(12, rng)
		x.Feasible = family
		if o := l.Policy().Offer(x, rng); !family.Contains(o.Assortment) {
			t.Fatalf("after %d rounds: offered %v where only items 2 and 5 are eligible", at, o.Assortment)
		}
	}
}

func (b battery) badRoundsAreRefused(t *testing.T) {
	good := b.rounds[0]
	with := func(change func(r *vitrine.Round, x *vitrine.Context)) vitrine.Round {
		r, x := good, *good.Context
		x.Features = mat.DenseCopyOf(x.Features)
		x.Revenue = make([]float64, x.NumItems())
		r.Context = &x
		change(&r, &x)
		return r
	}
	bad := map[string]vitrine.Round{
		"no context":          with(func(r *vitrine.Round, x *vitrine.Context) { r.Context = nil }),
		"a NaN feature":       with(func(r *vitrine.Round, x *vitrine.Context) { x.Features.Set(3, 0, math.NaN()) }),
		"an infinite feature": with(func(r *vitrine.Round, x *vitrine.Context) { x.Features.Set(3, 0, math.Inf(1)) }),
		"a feature too large": with(func(r *vitrine.Round, x *vitrine.Context) {
			x.Features.Set(3, 0, 1.01*vitrine.MaxFeature)
		}),
		"too many features": with(func(r *vitrine.Round, x *vitrine.Context) {
			x.Features = mat.NewDense(12, b.features+1, nil)
		}),
		"a negative revenue": with(func(r *vitrine.Round, x *vitrine.Context) { x.Revenue[1] = -1 }),
		"a NaN revenue":      with(func(r *vitrine.Round, x *vitrine.Context) { x.Revenue[1] = math.NaN() }),
		"too few revenues":   with(func(r *vitrine.Round, x *vitrine.Context) { x.Revenue = x.Revenue[:5] }),
		"an item out of range": with(func(r *vitrine.Round, x *vitrine.Context) {
			r.Offer.Assortment = vitrine.Assortment{12}
		}),
		"a repeated item": with(func(r *vitrine.Round, x *vitrine.Context) {
			r.Offer.Assortment = vitrine.Assortment{1, 1}
		}),
		"items out of order": with(func(r *vitrine.Round, x *vitrine.Context) {
			r.Offer.Assortment = vitrine.Assortment{2, 1}
		}),
		"a choice not offered": with(func(r *vitrine.Round, x *vitrine.Context) {
			r.Choice = vitrine.Choice(len(r.Offer.Assortment) + 1)
		}),
		"a negative choice": with(func(r *vitrine.Round, x *vitrine.Context) { r.Choice = -1 }),
		"a choice of no offers": with(func(r *vitrine.Round, x *vitrine.Context) {
			r.Offer.Assortment, r.Choice = nil, 1
		}),
		"a further take of no item": with(func(r *vitrine.Round, x *vitrine.Context) {
			r.Offer.Assortment, r.Choice, r.More = vitrine.Assortment{1, 2}, 1, []vitrine.Choice{2, vitrine.Outside}
		}),
		"a further take not offered": with(func(r *vitrine.Round, x *vitrine.Context) {
			r.Offer.Assortment, r.Choice, r.More = vitrine.Assortment{1, 2}, 1, []vitrine.Choice{3}
		}),
		"further takes after none": with(func(r *vitrine.Round, x *vitrine.Context) {
			r.Offer.Assortment, r.Choice, r.More = vitrine.Assortment{1, 2}, vitrine.Outside, []vitrine.Choice{1}
		}),
		"too many takes": with(func(r *vitrine.Round, x *vitrine.Context) {
			r.Offer.Assortment, r.Choice = vitrine.Assortment{1}, 1
			r.More = slices.Repeat([]vitrine.Choice{1}, vitrine.MaxTakes)
		}),
	}
	l := b.newLearner()
	done := 0
	for _, at := range []int{0, len(b.rounds) / 2, len(b.rounds)} {
		b.replay(t, l, done, at)
		done = at
		before := b.offers(l.Policy())
		for name, r := range bad {
			expect.Refused(l.Observe(r))(t, "after", at, "rounds", name)
		}
		expect.Equal(t, b.offers(l.Policy()), before, "after", at, "rounds: refused rounds changed the learner",
			cmpopts.EquateEmpty())
	}
}

// A policy that is asked about items of more or fewer features than it knows panics
// before it answers, and says how many there are and how many there must be.
func (b battery) wrongWidthIsNamed(t *testing.T) {
	l := b.newLearner()
	done := 0
	for _, at := range []int{0, len(b.rounds)} {
		b.replay(t, l, done, at)
		done = at
		p := l.Policy()
		want := b.offers(p)
		for _, width := range []int{b.features - 1, b.features + 1} {
			if width == 0 {
				continue
			}
			func() {
				defer func() {
					text := fmt.Sprint(recover())
					for _, part := range []string{fmt.Sprintf("items of %d features", b.features),
						fmt.Sprintf("items of %d:", width)} {
						if !strings.Contains(text, part) {
							t.Errorf("after %d rounds: asked about items of %d features: %q, want one that says %q", at,
								width, text, part)
						}
					}
				}()
				wide := battery{features: width}
				t.Errorf("after %d rounds: offered %v of items of %d features", at,
					p.Offer(wide.context(12, rngAt(6)), rngAt(7)), width)
			}()
		}
		expect.Equal(t, b.offers(p), want, "after", at, "rounds: the policy decides differently after such a question",
			cmpopts.EquateEmpty())
	}
}

// A round with the largest allowed features is never refused: the learner stays finite, and decides and learns as
// before.
func (b battery) largeFeaturesDoNoHarm(t *testing.T) {
	l := b.newLearner()
	for s, r := range b.rounds {
		if s%3 == 1 {
			x := *r.Context
			x.Features = mat.DenseCopyOf(x.Features)
			largest := max(mat.Max(x.Features), -mat.Min(x.Features))
			x.Features.Scale(0.999*vitrine.MaxUnscaled/largest, x.Features)
			r.Context = &x
		}
		fatal.If(t, l.Observe(r), "round", s, "among rounds of large features")
		for _, o := range b.offers(l.Policy()) {
			if err := o.Assortment.Check(12); err != nil || len(o.Assortment) > b.size {
				t.Fatalf("round %d: offer %v after rounds of large features", s, o)
			}
		}
	}
	if l, ok := l.(Snapshotter); ok {
		// A snapshot with a number that is not finite is refused.
		expect.Error(t, b.newLearner().(Snapshotter).UnmarshalBinary(b.marshal(t, l)), nil)
	}
}

func (b battery) snapshotsContinue(t *testing.T) {
	l, ok := b.newLearner().(Snapshotter)
	if !ok {
		t.Skip("the learner has no snapshots")
	}
	done := 0
	for _, at := range b.stations() {
		b.replay(t, l, done, at)
		done = at
		data := b.marshal(t, l)
		twin := b.newLearner().(Snapshotter)
		fatal.If(t, twin.UnmarshalBinary(data), "after", at, "rounds")
		if !bytes.Equal(b.marshal(t, twin), data) {
			t.Fatalf("after %d rounds: the snapshot of a restored learner differs from its own", at)
		}
		expect.Equal(fatal.T(t), b.offers(twin.Policy()), b.offers(l.Policy()), "after", at,
			"rounds: a restored learner decides differently", cmpopts.EquateEmpty())
	}
	half := b.newLearner().(Snapshotter)
	b.replay(t, half, 0, len(b.rounds)/2)
	twin := b.newLearner().(Snapshotter)
	fatal.If(t, twin.UnmarshalBinary(b.marshal(t, half)))
	b.replay(t, twin, len(b.rounds)/2, len(b.rounds))
	if !bytes.Equal(b.marshal(t, twin), b.marshal(t, l)) {
		t.Error("a snapshot and the rounds after it do not equal a replay from the first")
	}
}

func (b battery) damagedSnapshotsAreRefused(t *testing.T) {
	l, ok := b.newLearner().(Snapshotter)
	if !ok {
		t.Skip("the learner has no snapshots")
	}
	b.replay(t, l, 0, len(b.rounds))
	data := b.marshal(t, l)
	for name, bad := range map[string][]byte{
		"nothing":          nil,
		"a truncated one":  data[:len(data)/2],
		"one with a bit":   flipped(data),
		"one with a tail":  append(append([]byte(nil), data...), 0),
		"something random": []byte("this is no snapshot of any learner"),
	} {
		expect.Refused(l.UnmarshalBinary(bad))(t, name)
	}
	if !bytes.Equal(b.marshal(t, l), data) {
		t.Error("refused snapshots changed the learner")
	}
}

func flipped(data []byte) []byte {
	bad := append([]byte(nil), data...)
	bad[len(bad)/2] ^= 4
	return bad
}

func (b battery) marshal(t *testing.T, l Snapshotter) []byte {
	t.Helper()
	data, err := l.MarshalBinary()
	fatal.If(t, err)
	return data
}
