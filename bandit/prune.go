package bandit

import (
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/gram"
	"vitrine/internal/panics"
	"vitrine/utility"
)

// The K items of the largest optimistic utilities are found without the norm of
// every gradient. An upper bound of z_i costs little where ‖∇f_w(x_i)‖ is known
// without the gradient; what the bound leaves is bounded again, by components
// along more and more directions of V⁻¹, and only what is left then has its
// norm computed. Bounds hold with rounding ([gram.Bound]), and an item falls
// out only where its bound is below the K-th largest utility found so far: the
// answer is that of the full computation, bit for bit, in whatever order items
// are looked at.
//
// The context is read once, in blocks of rows. The memory is that of a few
// blocks, whatever N.

const (
	// searchItems is the least N that is searched, and searchItemsPerParam, for
	// each parameter, that for which the eigenvectors of V⁻¹, made once a policy,
	// pay for themselves in one decision. docs/adr/0022-pruning.md has the
	// measurement.
	searchItems         = 2048
	searchItemsPerParam = 32

	// intervalParams is the least number of parameters for which a norm costs more
	// than an interval and the more questions to the oracle.
	intervalParams = 24

	// sketchDirections is the number of directions along which items are
	// sketched, resketchDirections that of the next ones for what is left, and
	// directionsPerStep that by which bounds are tightened at a time once there
	// are gradients.
	sketchDirections   = 4
	resketchDirections = 8
	directionsPerStep  = 8

	// resolveItems is the number of items left over that are worth the gradients
	// of a block.
	resolveItems = 64

	// A claim is what a worker takes of the context at a time.
	claimBlocks = 16
	claimItems  = claimBlocks * indexRows
)

// numDirections returns the number of directions of the bounds, whose cost is
// below half of a norm's.
func numDirections(params int) int { return params / 5 }

// lazyBound is made when it is first asked for.
type lazyBound struct {
	made   atomic.Pointer[gram.Bound]
	making sync.Mutex
}

func (l *lazyBound) of(v gram.Inverse, params int) *gram.Bound {
	if b := l.made.Load(); b != nil {
		return b
	}
	l.making.Lock()
	defer l.making.Unlock()
	if b := l.made.Load(); b != nil {
		return b
	}
	b := v.Bound(numDirections(params))
	l.made.Store(b)
	return b
}

// search returns the best assortment where bounds find it for less than the
// utilities of all items, and whether they do.
func (o *optimistic) search(scratch *indexScratch, x *vitrine.Context, family vitrine.Constraint) (vitrine.Assortment, bool) {
	n := x.NumItems()
	sketcher, ok := o.model.(utility.Sketcher)
	if !ok || o.radius == 0 || n < max(searchItems, searchItemsPerParam*len(o.w)) {
		return nil, false
	}
	if !assortment.Stable(family) {
		return nil, false
	}
	if scratch.search == nil {
		scratch.search = new(search)
	}
	s := scratch.search
	if k, ok := family.(assortment.AtMost); ok && equalAndPositive(x.Revenue) {
		return s.top(o, sketcher, x.Features, int(k), searchWorkers(n)), true
	}
	if len(o.w) < intervalParams {
		return nil, false
	}
	return s.maximize(o, sketcher, x, searchWorkers(n)), true
}

func searchWorkers(n int) int {
	return max(1, min(runtime.GOMAXPROCS(0), n/(2*claimItems)))
}

func equalAndPositive(r []float64) bool {
	for _, v := range r {
		if v != r[0] || v == 0 {
			return false
		}
	}
	return true
}

// search is the scratch of one search, and what its workers share.
type search struct {
	o        *optimistic
	sketcher utility.Sketcher
	bound    *gram.Bound
	x        *mat.Dense
	block    func(w *searcher, from, to int)
	next     atomic.Int64 // the first item that no worker has claimed
	norms    atomic.Int64 // computed
	done     sync.WaitGroup
	panics   panics.Catcher // of the workers
	workers  []*searcher

	k     int
	least atomic.Uint64 // the bits of a z that k items reach
	best  ranking

	index index
}

// top returns the at most k items of the largest optimistic utilities above −∞,
// the lower item where two are equal.
func (s *search) top(o *optimistic, sketcher utility.Sketcher, x *mat.Dense, k, workers int) vitrine.Assortment {
	n, _ := x.Dims()
	s.k = min(k, n)
	if s.k < 1 {
		return vitrine.Assortment{}
	}
	s.begin(o, sketcher, x)
	defer s.end()
	s.least.Store(math.Float64bits(math.Inf(-1)))
	active := s.each((*searcher).rank, workers)
	s.best.reset(s.k)
	for _, w := range active {
		for j, i := range w.best.items {
			s.best.add(i, w.best.z[j])
		}
	}
	answer := append(make(vitrine.Assortment, 0, s.k), s.best.items...)
	slices.Sort(answer)
	return answer
}

func (s *search) begin(o *optimistic, sketcher utility.Sketcher, x *mat.Dense) {
	s.o, s.sketcher, s.x = o, sketcher, x
	s.bound = o.bound.of(o.inv, len(o.w))
	s.norms.Store(0)
}

func (s *search) end() { s.o, s.sketcher, s.bound, s.x = nil, nil, nil, nil }

// each calls block for all blocks of items, by the given number of workers,
// and returns these. If one panics, each does, once all have ended.
func (s *search) each(block func(w *searcher, from, to int), workers int) []*searcher {
	s.block = block
	s.next.Store(0)
	for len(s.workers) < workers {
		w := &searcher{search: s}
		w.run = w.work
		s.workers = append(s.workers, w)
	}
	active := s.workers[:workers]
	s.done.Add(workers)
	for _, w := range active[1:] {
		go w.run()
	}
	active[0].run()
	s.done.Wait()
	s.panics.Repanic()
	return active
}

// sketched returns the number of directions of a sketch that has any.
func (s *search) sketched() int { return min(sketchDirections, s.bound.NumDirections()) }

// threshold returns a z that k items are known to reach, −∞ before.
func (s *search) threshold() float64 { return math.Float64frombits(s.least.Load()) }

// raise makes the threshold at least z.
func (s *search) raise(z float64) {
	for {
		old := s.least.Load()
		if !(z > math.Float64frombits(old)) || s.least.CompareAndSwap(old, math.Float64bits(z)) {
			return
		}
	}
}

// searcher is a worker with its own scratch, for a block of items.
type searcher struct {
	search *search
	run    func()
	best   ranking // of the items that it looked at

	// Of a block:
	view             matrix
	u, square, along []float64
	upper            []float64 // bounds of the squared norms
	directions       int       // whose components its sketch has: none, until too many items survive
	survived         int       // items of the claim

	// Of items that may be among the best:
	left     []int
	bounds   []float64 // by so many directions
	x, g     matrix
	f, norms []float64
}

func (w *searcher) work() {
	s := w.search
	defer s.done.Done()
	defer s.panics.Catch()
	n, d := s.x.Dims()
	w.reserve(d, len(s.o.w))
	w.best.reset(s.k)
	w.directions = 0
	for {
		to := int(s.next.Add(claimItems))
		from := to - claimItems
		if from >= n {
			return
		}
		w.survived = 0
		fair := !math.IsInf(s.threshold(), -1)
		for i := from; i < min(to, n); i += indexRows {
			s.block(w, i, min(i+indexRows, to, n))
		}
		w.resolve()
		if fair && 16*w.survived > claimItems {
			w.directions = s.sketched()
		}
	}
}

// reserve makes room for a block of items of d features and params parameters,
// so that what a search allocates does not depend on what its workers find.
func (w *searcher) reserve(d, params int) {
	w.u, w.square, w.upper = grow(w.u, indexRows), grow(w.square, indexRows), grow(w.upper, indexRows)
	const most = resolveItems + indexRows
	w.along = grow(w.along, max(sketchDirections*indexRows, resketchDirections*most))
	w.left, w.bounds = slices.Grow(w.left[:0], most), slices.Grow(w.bounds[:0], most)
	w.f, w.norms = grow(w.f, most), grow(w.norms, most)
	w.x.reshape(most, d)
	w.g.reshape(most, params)
}

// sketch sketches the items from ≤ i < to along the first m directions, and
// bounds their norms.
func (w *searcher) sketch(from, to, m int) {
	s, n := w.search, to-from
	w.u, w.square, w.along, w.upper = grow(w.u, n), grow(w.square, n), grow(w.along, m*n), grow(w.upper, n)
	s.sketcher.Sketch(w.u, w.square, w.along, s.o.w, s.bound.Directions(0, m), w.view.view(s.x, from, to))
	s.bound.Sketches(w.upper, w.square, w.along)
}

// rank looks for the best among the items from ≤ i < to.
func (w *searcher) rank(from, to int) {
	s := w.search
	w.sketch(from, to, w.directions)
	least := s.threshold()
	// z < least follows, roundings and all, from radius² bound (1+ε) < t² where
	// t = least − slack − u, less ε times their sizes, is positive. It costs no
	// root.
	const margin = 0x1p-40
	most := s.o.radius * s.o.radius * (1 + margin)
	gone := least - s.o.slack - margin*(math.Abs(least)+math.Abs(s.o.slack))
	for i, u := range w.u {
		bound := w.upper[i]
		if t := gone - u - margin*math.Abs(u); t > 0 && most*bound < t*t {
			continue
		}
		if s.o.at(u, gram.Norm(bound)) < least {
			continue
		}
		w.left, w.bounds = append(w.left, from+i), append(w.bounds, bound)
		w.survived++
	}
	if len(w.left) >= resolveItems {
		w.resolve()
	}
}

// resketch sketches the items left along the directions from ≤ k < to, and
// leaves those that still may be among the best.
func (w *searcher) resketch(from, to int) {
	s, n := w.search, len(w.left)
	w.f, w.norms, w.along = grow(w.f, n), grow(w.norms, n), grow(w.along, (to-from)*n)
	s.sketcher.Sketch(w.f, w.norms, w.along, s.o.w, s.bound.Directions(from, to), w.x.rows(s.x, w.left))
	s.bound.Less(w.bounds, w.along)
	least, kept := s.threshold(), 0
	for i, item := range w.left {
		if s.o.at(w.f[i], gram.Norm(w.bounds[i])) < least {
			continue
		}
		w.left[kept], w.bounds[kept] = item, w.bounds[i]
		kept++
	}
	w.left, w.bounds = w.left[:kept], w.bounds[:kept]
}

// resolve ranks the items left, and leaves none.
func (w *searcher) resolve() {
	if len(w.left) == 0 {
		return
	}
	s := w.search
	b := s.bound
	known := w.directions
	if most := min(known+resketchDirections, b.NumDirections()); known > 0 && known < most {
		w.resketch(known, most)
		known = most
	}
	if len(w.left) == 0 {
		return
	}
	g := w.g.reshape(len(w.left), len(s.o.w))
	w.f = grow(w.f, len(w.left))
	utility.Linearize(s.o.model, w.f, g, s.o.w, w.x.rows(s.x, w.left))
	for m := known; m < b.NumDirections() && len(w.left) > 0; m += directionsPerStep {
		b.Tighten(w.bounds, m, min(m+directionsPerStep, b.NumDirections()), g)
		least, kept := s.threshold(), 0
		for i, item := range w.left {
			if s.o.at(w.f[i], gram.Norm(w.bounds[i])) < least {
				continue
			}
			if kept < i {
				w.left[kept], w.bounds[kept], w.f[kept] = item, w.bounds[i], w.f[i]
				copy(g.RawRowView(kept), g.RawRowView(i))
			}
			kept++
		}
		w.left, w.bounds = w.left[:kept], w.bounds[:kept]
		if kept > 0 {
			g = w.g.reshape(kept, len(s.o.w))
		}
	}
	if len(w.left) == 0 {
		return
	}
	w.norms = grow(w.norms, len(w.left))
	s.o.inv.Norms(w.norms, g)
	s.norms.Add(int64(len(w.left)))
	for j, i := range w.left {
		w.best.add(i, s.o.at(w.f[j], w.norms[j]))
	}
	w.left, w.bounds = w.left[:0], w.bounds[:0]
	if w.best.full() {
		s.raise(w.best.z[0])
	}
}

// ranking holds the k items of the largest z above −∞, the lower item where two
// are equal. It is a heap with the item that gives way first at its root.
type ranking struct {
	k     int
	items []int
	z     []float64
}

func (r *ranking) reset(k int) {
	r.k, r.items, r.z = k, slices.Grow(r.items[:0], k), slices.Grow(r.z[:0], k)
}

func (r *ranking) full() bool { return len(r.items) == r.k }

// before reports whether (i, z) gives way before the item at j.
func (r *ranking) before(i int, z float64, j int) bool {
	return z < r.z[j] || z == r.z[j] && i > r.items[j]
}

func (r *ranking) add(i int, z float64) {
	if !(z > math.Inf(-1)) {
		return
	}
	if !r.full() {
		r.items, r.z = append(r.items, i), append(r.z, z)
		for j := len(r.items) - 1; j > 0; {
			parent := (j - 1) / 2
			if !r.before(r.items[j], r.z[j], parent) {
				break
			}
			r.swap(j, parent)
			j = parent
		}
		return
	}
	if r.before(i, z, 0) {
		return
	}
	r.items[0], r.z[0] = i, z
	for j := 0; ; {
		child := 2*j + 1
		if child >= len(r.items) {
			return
		}
		if child+1 < len(r.items) && r.before(r.items[child+1], r.z[child+1], child) {
			child++
		}
		if !r.before(r.items[child], r.z[child], j) {
			return
		}
		r.swap(j, child)
		j = child
	}
}

func (r *ranking) swap(a, b int) {
	r.items[a], r.items[b] = r.items[b], r.items[a]
	r.z[a], r.z[b] = r.z[b], r.z[a]
}

// view makes m the rows from ≤ i < to of x, without copying them.
func (m *matrix) view(x *mat.Dense, from, to int) *mat.Dense {
	raw := x.RawMatrix()
	m.SetRawMatrix(blas64.General{
		Rows: to - from, Cols: raw.Cols, Stride: raw.Stride,
		Data: raw.Data[from*raw.Stride : (to-1)*raw.Stride+raw.Cols],
	})
	return &m.Dense
}
