package envtest

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/env"
	"vitrine/internal/panics"
)

// contexts is the number of contexts that each check draws.
const contexts = 50

// world is the environment under test, and the shape of its contexts.
type world struct {
	env.Environment
	n, d int
}

// draw returns the context of a seed.
func (w world) draw(seed uint64) *vitrine.Context { return w.Context(newRand(seed)) }

// utilities returns the utilities of the items of x.
func (w world) utilities(x *vitrine.Context) []float64 {
	u := make([]float64, x.NumItems())
	w.Utilities(u, x)
	return u
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// clone returns a context that shares no features or revenues with x.
func clone(x *vitrine.Context) *vitrine.Context {
	return &vitrine.Context{
		Features: mat.DenseCopyOf(x.Features), Revenue: slices.Clone(x.Revenue), Feasible: x.Feasible,
	}
}

// equal reports whether x and y hold the same features and revenues.
func equal(x, y *vitrine.Context) bool {
	return mat.Equal(x.Features, y.Features) && slices.Equal(x.Revenue, y.Revenue) &&
		(x.Revenue == nil) == (y.Revenue == nil)
}

// checkLawful requires contexts of n items with d features that are valid input to learners.
func checkLawful(w world) error {
	for seed := range uint64(contexts) {
		x := w.draw(seed)
		if x.NumItems() != w.n {
			return fmt.Errorf("context has %d items, want %d", x.NumItems(), w.n)
		}
		if err := x.Check(w.d); err != nil {
			return err
		}
	}
	return nil
}

// checkSource requires that contexts depend only on rng, and that drawing one advances rng.
func checkSource(w world) error {
	rng := newRand(1)
	previous := w.Context(rng)
	if !equal(previous, w.draw(1)) {
		return fmt.Errorf("one state of rng gave two contexts")
	}
	for range contexts {
		next := w.Context(rng)
		if equal(next, previous) {
			return fmt.Errorf("draws in a row gave the same context")
		}
		previous = next
	}
	return nil
}

// checkOwnership keeps one context, as learners do, and overwrites another.
func checkOwnership(w world) error {
	x, other := w.draw(1), w.draw(2)
	kept, otherKept := clone(x), clone(other)
	u := w.utilities(other)
	other.Features.Zero()
	clear(other.Revenue)
	if !equal(x, kept) {
		return fmt.Errorf("two contexts share memory")
	}
	if again := w.draw(2); !equal(again, otherKept) || !slices.Equal(w.utilities(again), u) {
		return fmt.Errorf("the world shares memory with its context")
	}
	return nil
}

// checkFinite requires finite utilities.
func checkFinite(w world) error {
	for seed := range uint64(contexts) {
		for i, v := range w.utilities(w.draw(seed)) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("utility of item %d is %v", i, v)
			}
		}
	}
	return nil
}

// checkRepeatable requires utilities that depend only on the context.
func checkRepeatable(w world) error {
	x := w.draw(1)
	want := w.utilities(x)
	dst := slices.Repeat([]float64{math.NaN()}, w.n)
	w.utilities(w.draw(2))
	w.Utilities(dst, x)
	if !slices.Equal(dst, want) {
		return fmt.Errorf("utilities are %v, and later %v", want, dst)
	}
	return nil
}

// checkBatch requires an item's utility to be the same on its own and in a batch.
func checkBatch(w world) error {
	x := w.draw(1)
	for i, want := range w.utilities(x) {
		alone := &vitrine.Context{Features: mat.NewDense(1, w.d, slices.Clone(x.Features.RawRowView(i)))}
		if x.Revenue != nil {
			alone.Revenue = []float64{x.Revenue[i]}
		}
		if got := w.utilities(alone)[0]; got != want {
			return fmt.Errorf("utility of item %d is %v in the batch, %v alone", i, want, got)
		}
	}
	return nil
}

// checkNoItems requires Utilities to accept contexts without items.
func checkNoItems(w world) error {
	if panics.Value(func() { w.Utilities(nil, &vitrine.Context{}) }) != nil {
		return fmt.Errorf("a call of Utilities without items panics")
	}
	return nil
}

// checkArguments requires Utilities to leave the context unchanged.
func checkArguments(w world) error {
	x := w.draw(1)
	before := clone(x)
	w.utilities(x)
	if !equal(x, before) {
		return fmt.Errorf("a call of Utilities changed its context")
	}
	return nil
}

// checkPanics requires a panic for every argument with a wrong shape.
func checkPanics(w world) error {
	x := w.draw(1)
	type misuse struct {
		name  string
		items int
		x     *vitrine.Context
	}
	of := func(d int) *vitrine.Context {
		return &vitrine.Context{Features: mat.NewDense(w.n, d, nil), Revenue: x.Revenue}
	}
	wrong := []misuse{
		{"too few items", w.n - 1, x},
		{"too many items", w.n + 1, x},
		{"too many features", w.n, of(w.d + 1)},
	}
	if w.d > 1 {
		wrong = append(wrong, misuse{"too few features", w.n, of(w.d - 1)})
	}
	for _, c := range wrong {
		if panics.Value(func() { w.Utilities(make([]float64, c.items), c.x) }) == nil {
			return fmt.Errorf("a call of Utilities with %s does not panic", c.name)
		}
	}
	return nil
}

// checkAllocations requires a call of Utilities that does not allocate. One such call in two thousand is enough,
// because the garbage collector and the race detector may empty a scratch pool at any time.
func checkAllocations(w world) error {
	x, u := w.draw(1), make([]float64, w.n)
	minimum := math.Inf(1)
	for tries := 2000; tries > 0 && minimum > 0; tries-- {
		minimum = min(minimum, testing.AllocsPerRun(1, func() { w.Utilities(u, x) }))
	}
	if minimum > 0 {
		return fmt.Errorf("a call of Utilities allocates %v times", minimum)
	}
	return nil
}

// checkConcurrency compares concurrent use of a world with the same calls made one at a time. The race detector sees
// more.
func checkConcurrency(w world) error {
	const workers, seeds = 8, 4
	var wantContext [seeds]*vitrine.Context
	var want [seeds][]float64
	for seed := range seeds {
		wantContext[seed] = w.draw(uint64(seed))
		want[seed] = w.utilities(wantContext[seed])
	}
	errs := make([]error, workers)
	var group sync.WaitGroup
	for i := range workers {
		group.Go(func() {
			for r := range 10 * seeds {
				seed := (i + r) % seeds
				x := w.draw(uint64(seed))
				if !equal(x, wantContext[seed]) {
					errs[i] = fmt.Errorf("the same rng gave another context beside other calls")
				}
				if !slices.Equal(w.utilities(x), want[seed]) {
					errs[i] = fmt.Errorf("the same context got other utilities beside other calls")
				}
			}
		})
	}
	group.Wait()
	return cmp.Or(errs...)
}

// checkRounds visits rounds of a moving environment forwards and backwards. Each round must be the same on every visit,
// and keep the rest of the contract.
func checkRounds(w world) error {
	if _, ok := w.Environment.(env.Moving); !ok {
		return nil
	}
	x := w.draw(1)
	at := func(t int) world { return world{env.At(w.Environment, t), w.n, w.d} }
	first := at(1).utilities(x)
	for _, t := range []int{2, 50, 1000} {
		now := at(t)
		want := now.utilities(x)
		if !slices.Equal(at(1).utilities(x), first) ||
			!slices.Equal(now.utilities(x), want) || !slices.Equal(at(t).utilities(x), want) {
			return fmt.Errorf("the utilities of a round are not always the same")
		}
		if !equal(now.draw(2), at(t).draw(2)) {
			return fmt.Errorf("the contexts of a round are not always the same")
		}
		for _, check := range []func(world) error{
			checkLawful, checkSource, checkOwnership, checkFinite, checkRepeatable, checkBatch,
			checkNoItems, checkArguments, checkPanics, checkAllocations, checkConcurrency,
		} {
			if err := check(now); err != nil {
				return fmt.Errorf("round %d: %w", t, err)
			}
		}
	}
	return nil
}
