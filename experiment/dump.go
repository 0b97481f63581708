package experiment

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"

	"vitrine"
	"vitrine/internal/parallel"
	"vitrine/internal/replace"
)

// errDumpInterrupted is separate from [ErrInterrupted], because a dump cannot be continued.
var errDumpInterrupted = errors.New("interrupted: the dump is not complete, and begins again the next time")

// Dump writes the rounds of every seed to Dir/Name, so that learners in other languages meet the same customers as
// policies in [Run], and their regret is measured against the same optimum. Dir/Name/seed-S.npz, a NumPy archive,
// contains these arrays of float64, with entry t−1 for round t:
//
//	features   T×N×d    X_t
//	revenues   T×N      r_t
//	utilities  T×N      the true utilities of all items
//	shocks     T×(N+1)  Gumbel shocks, of the outside option and then of all items
//	optimum    T        R_t(S*_t), the largest expected revenue
//	place_effects       of the places of a display, from the first on, if they have effects
//
// A customer's choice follows [vitrine.Choose]. Each policy P in the experiment is played, and adds
//
//	P.offers      T×m int64    S_t, filled up with −1; m is the size of the largest
//	P.orders      T×m int64    with position effects: the items from the first place on, filled up with −1
//	P.choices     T   int64    the position in S_t that was chosen, from 1, or 0 for none
//	P.propensity  T   float64  π_t(S_t | X_t), 0 if it is not known
//	P.regret      T   float64  cumulative
//
// world.json, written last, describes the world and names seeds and policies. The experiment may contain no policies.
// Earlier files are replaced without being read. The bytes do not depend on o.Workers.
func Dump(ctx context.Context, e *Experiment, o Options) error {
	if err := e.validate(); err != nil {
		return err
	}
	if o.Progress == nil {
		o.Progress = func(int) {}
	}
	dir := filepath.Join(o.Dir, e.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	description := filepath.Join(dir, "world.json")
	if err := os.Remove(description); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := parallel.Each(ctx, o.Workers, e.Seeds, func(ctx context.Context, seed uint64) error {
		content, err := e.dumpSeed(ctx, seed, o.Progress)
		if err != nil {
			return err
		}
		return replace.File(filepath.Join(dir, fmt.Sprintf("seed-%d.npz", seed)), content)
	})
	if err != nil && errors.Is(err, context.Cause(ctx)) {
		return fmt.Errorf("%s: %w", e.Name, errDumpInterrupted)
	}
	if err != nil {
		return err
	}
	record, err := e.record(nil)
	if err != nil {
		return err
	}
	return record.write(description)
}

// dumpSeed returns a seed's archive.
func (e *Experiment) dumpSeed(ctx context.Context, seed uint64, progress func(int)) ([]byte, error) {
	z := newNPZ()
	if err := e.dumpWorld(ctx, z, seed); err != nil {
		return nil, err
	}
	progress(e.Rounds)
	for _, p := range e.Policies {
		if err := e.dumpPolicy(ctx, z, p, seed, progress); err != nil {
			return nil, err
		}
	}
	return z.bytes()
}

// dumpWorld adds the world's arrays, which are the same for all policies. It returns a *PanicError if the world panics.
func (e *Experiment) dumpWorld(ctx context.Context, z *npz, seed uint64) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%s: seed %d: %w", e.Name, seed, &PanicError{v, debug.Stack()})
		}
	}()
	r, err := e.rounds(seed)
	if err != nil {
		return fmt.Errorf("%s: seed %d: %w", e.Name, seed, err)
	}
	if r.baskets != nil {
		return fmt.Errorf("%s: a dump holds one choice for each round, and these visitors take several items: "+
			"leave out [baskets]", e.Name)
	}
	at := func(err error) error { return fmt.Errorf("%s: seed %d, round %d: %w", e.Name, seed, r.t, err) }
	var features, revenues, utilities, shocks, optimum []float64
	var items, width int
	for range e.Rounds {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.next(); err != nil {
			return at(err)
		}
		if r.Context.NumItems() == 0 {
			return at(errors.New("the context has no items, and a dump needs some"))
		}
		n, d := r.Context.Features.Dims()
		if r.t == 1 {
			items, width = n, d
		}
		if n != items || d != width {
			return at(fmt.Errorf("the context is %d×%d, that of round 1 was %d×%d: a dump needs one shape",
				n, d, items, width))
		}
		for i := range r.Utilities {
			features = append(features, r.Context.Features.RawRowView(i)...)
			revenues = append(revenues, vitrine.RevenueOf(r.Context.Revenue, i))
		}
		utilities = append(utilities, r.Utilities...)
		for i := range r.Exponentials {
			shocks = append(shocks, r.Shock(i))
		}
		optimum = append(optimum, r.optimum)
	}
	if r.effects != nil {
		err = z.floats("place_effects", r.effects, len(r.effects))
	}
	return errors.Join(err,
		z.floats("features", features, e.Rounds, items, width),
		z.floats("revenues", revenues, e.Rounds, items),
		z.floats("utilities", utilities, e.Rounds, items),
		z.floats("shocks", shocks, e.Rounds, items+1),
		z.floats("optimum", optimum, e.Rounds),
	)
}

// dumpPolicy plays a policy and adds its offers and choices.
func (e *Experiment) dumpPolicy(ctx context.Context, z *npz, p Policy, seed uint64, progress func(int)) error {
	var offers []vitrine.Assortment
	var orders [][]int // with position effects
	var choices []int64
	var propensity []float64
	largest := 0
	u := &unit{Policy: p.Label, Seed: seed, policy: p}
	err := e.play(ctx, u, progress, func(r vitrine.Round) {
		s := append(vitrine.Assortment(nil), r.Offer.Assortment...)
		offers, choices = append(offers, s), append(choices, int64(r.Choice))
		if r.Offer.Order != nil {
			orders = append(orders, slices.Clone(r.Offer.Order))
		}
		propensity = append(propensity, r.Offer.Propensity)
		largest = max(largest, len(s))
	})
	if err != nil {
		return err
	}
	rows := make([]int64, 0, e.Rounds*largest)
	for _, s := range offers {
		rows = appendItems(rows, s, largest)
	}
	if len(orders) == e.Rounds {
		placed := make([]int64, 0, e.Rounds*largest)
		for _, order := range orders {
			placed = appendItems(placed, order, largest)
		}
		err = z.integers(p.Label+".orders", placed, e.Rounds, largest)
	}
	return errors.Join(err,
		z.integers(p.Label+".offers", rows, e.Rounds, largest),
		z.integers(p.Label+".choices", choices, e.Rounds),
		z.floats(p.Label+".propensity", propensity, e.Rounds),
		z.floats(p.Label+".regret", u.Regret, e.Rounds),
	)
}

// appendItems appends items, padded to n entries with −1.
func appendItems(dst []int64, items []int, n int) []int64 {
	for k := range n {
		item := int64(-1)
		if k < len(items) {
			item = int64(items[k])
		}
		dst = append(dst, item)
	}
	return dst
}
