package search

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/mat"

	"vitrine/assortment"
	"vitrine/internal/gram"
	"vitrine/internal/panics"
	"vitrine/internal/scratch"
	"vitrine/utility"
)

const (
	// sketchDirections is the number of directions in the first sketch, resketchDirections in the next sketch of the
	// remaining items. directionsPerStep is the number added at a time once there are gradients, and roughDirections the
	// number for glances.
	sketchDirections   = 4
	resketchDirections = 8
	directionsPerStep  = 8
	roughDirections    = 8

	// claimItems is the number of items that a worker claims at a time.
	claimBlocks = 16
	claimItems  = claimBlocks * BlockRows
)

// searches provides scratch for all callers.
var searches = sync.Pool{New: func() any { return new(search) }}

// search is the scratch of one call and the state shared by its workers. It holds a few blocks, independent of N, and
// the utilities of all items only if the chosen method needs them.
type search struct {
	o        *Optimistic
	sketcher utility.Sketcher
	glancer  utility.Glancer
	bound    *gram.Bound
	rough    *gram.Bound // for glances, or nil
	x        *mat.Dense
	block    func(w *worker, from, to int)
	next     atomic.Int64 // first unclaimed item
	numNorms atomic.Int64 // norms computed
	done     sync.WaitGroup
	panics   panics.Catcher // catches the workers' panics
	workers  []*worker

	// For all utilities:
	z, norms []float64
	g, items scratch.Matrix

	// For the K largest utilities:
	rules assortment.Rules // for sets of k items
	sure  atomic.Uint64    // bits of a z that k items reach
	best  assortment.Ranking

	// For the best set of a few items:
	some   []float64
	rows   scratch.Matrix
	pruned assortment.Pruned
}

func (s *search) begin(o *Optimistic, sketcher utility.Sketcher, x *mat.Dense) {
	s.o, s.sketcher, s.x = o, sketcher, x
	s.bound = o.bound.get(func() *gram.Bound { return o.Inverse.Bound(numDirections(len(o.Params))) })
	s.numNorms.Store(0)
}

// glance prepares glances if they pay.
func (s *search) glance() {
	glancer, ok := s.sketcher.(utility.Glancer)
	if n, _ := s.x.Dims(); !ok || n < minRoughItemsPerParam*len(s.o.Params) {
		return
	}
	v := s.o.Inverse
	rough := s.o.rough.get(func() *gram.Bound { return v.Rough(glancer.Group, roughDirections) })
	if rough.NumDirections() > 0 {
		s.glancer, s.rough = glancer, rough
	}
}

// end drops references to the caller's data.
func (s *search) end() {
	s.o, s.sketcher, s.glancer, s.bound, s.rough, s.x, s.rules = nil, nil, nil, nil, nil, nil, assortment.Rules{}
}

// each calls block for all blocks of items, on the given number of workers, and returns the workers. If a worker
// panics, each panics after all have ended.
func (s *search) each(block func(w *worker, from, to int), workers int) []*worker {
	s.block = block
	s.next.Store(0)
	for len(s.workers) < workers {
		w := &worker{search: s}
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

// numSketched returns the number of directions of a sketch, if it uses any.
func (s *search) numSketched() int { return min(sketchDirections, s.bound.NumDirections()) }

// worker visits blocks of items, with its own scratch.
type worker struct {
	search *search
	run    func()
	best   assortment.Ranking // the best of the items it visited

	// For a block:
	view             scratch.Matrix
	u, square, along []float64
	upper            []float64 // bounds of the squared norms
	glances          bool      // whether it glances at items before it sketches them: until too many survive
	directions       int       // number of directions in its sketches: 0 until too many items survive
	survived         int       // number of surviving items in the claim

	// For the items that may be among the best:
	left     []int
	bounds   []float64 // of the squared norms
	x, g     scratch.Matrix
	f, norms []float64
}

func (w *worker) work() {
	s := w.search
	defer s.done.Done()
	defer s.panics.Catch()
	n, d := s.x.Dims()
	w.reserve(d, len(s.o.Params))
	w.best.Reset(s.rules, math.Inf(-1))
	w.glances, w.directions = s.rough != nil, 0
	for {
		to := int(s.next.Add(claimItems))
		from := to - claimItems
		if from >= n {
			return
		}
		w.survived = 0
		fair := !math.IsInf(s.threshold(), -1)
		for i := from; i < min(to, n); i += BlockRows {
			s.block(w, i, min(i+BlockRows, to, n))
		}
		w.resolve()
		if many := claimItems / 16; fair && (w.survived > 4*many || !w.glances && w.survived > many) {
			w.glances, w.directions = false, s.numSketched()
		}
	}
}

// reserve makes room for a block of items with d features and params parameters, so that the allocations of a search do
// not depend on the workers' results.
func (w *worker) reserve(d, params int) {
	w.u, w.square, w.upper = scratch.Grow(w.u, BlockRows),
		scratch.Grow(w.square, BlockRows), scratch.Grow(w.upper, BlockRows)
	const maximum = resolveItems + BlockRows
	w.along = scratch.Grow(w.along, (sketchDirections+resketchDirections)*maximum)
	w.left, w.bounds = slices.Grow(w.left[:0], maximum), slices.Grow(w.bounds[:0], maximum)
	w.f, w.norms = scratch.Grow(w.f, maximum), scratch.Grow(w.norms, maximum)
	w.x.Reshape(maximum, d)
	w.g.Reshape(maximum, params)
}

// sketch sketches the items from ≤ i < to along the first m directions and bounds their norms, or glances at them.
func (w *worker) sketch(from, to, m int) {
	s, n, b := w.search, to-from, w.search.bound
	if w.glances {
		b, m = s.rough, s.rough.NumDirections()
	}
	w.u, w.square, w.along, w.upper = scratch.Grow(w.u, n), scratch.Grow(w.square, n),
		scratch.Grow(w.along, m*n), scratch.Grow(w.upper, n)
	x := w.view.View(s.x, from, to)
	if w.glances {
		s.glancer.Glance(w.u, w.square, w.along, s.o.Params, b.Glance(), x)
	} else {
		s.sketcher.Sketch(w.u, w.square, w.along, s.o.Params, b.Directions(0, m), x)
	}
	b.Sketches(w.upper, w.square, w.along)
}
