package assortment

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"vitrine"
	"vitrine/internal/hint"
)

// Slot is a place that shows one item.
type Slot struct {
	Name    string // name in errors; "" means "slot 3"
	Exclude []int  // items that the slot cannot show
}

// name names slot j in errors.
func (s Slot) name(j int) string {
	if s.Name != "" {
		return s.Name
	}
	return fmt.Sprintf("slot %d", j+1)
}

// Slots is the family of all sets of at least a minimum size that can be assigned to slots, at most one item per slot
// and each item to a slot that accepts it:
//
//	𝒮 = {S : |S| ≥ minimum, there is an injection σ: S → slots with i ∉ Exclude_σ(i)}
//
// These are the larger independent sets of a transversal matroid (Edmonds and Fulkerson 1965), so the greedy algorithm
// is exact (Edmonds 1971): in the order of gains, it takes each item that can be placed along with the earlier ones, as
// decided by an augmenting path. The set after each step is the best of its size, and gains are concave in the size, so
// the algorithm continues below 0 until there are enough items. It takes O(N log K) to find the candidates of each
// kind, and O(K) augmenting paths of O(K²).
//
// Items that fit the same slots form a kind. The family distinguishes only kinds.
type Slots struct {
	slots   int
	minimum int
	rank    int   // size of the largest sets
	kind    []int // N; the constant none for items that fit no slot
	kinds   []kinds
	never   []bool // N; nil if every item fits a slot

	counting sync.Once
	counts   *slotCounts
}

// kinds describes the items that fit the same slots.
type kinds struct {
	slots []int
	items []int
}

const none = -1

// NewSlots returns the family over the given number of items. If too few items fit the slots for any set to exist, it
// returns an error.
func NewSlots(items int, slots []Slot, minimum int) (*Slots, error) {
	if items < 0 {
		return nil, fmt.Errorf("items = %d: must not be negative", items)
	}
	t := &Slots{slots: len(slots), minimum: max(minimum, 0), kind: make([]int, items)}
	taken := make([][]byte, items) // whether the slot excludes the item
	blank := make([]byte, len(slots))
	for j, s := range slots {
		for _, i := range s.Exclude {
			if i < 0 || i >= items {
				return nil, fmt.Errorf("%s: item %d is outside [0, %d)", s.name(j), i, items)
			}
			if taken[i] == nil {
				taken[i] = slices.Clone(blank)
			}
			taken[i][j] = 1
		}
	}
	of := map[string]int{}
	for i := range items {
		excluded := taken[i]
		if excluded == nil {
			excluded = blank
		}
		k, ok := of[string(excluded)]
		if !ok {
			k = none
			if fits := zeros(excluded); len(fits) > 0 {
				k = len(t.kinds)
				t.kinds = append(t.kinds, kinds{slots: fits})
			}
			of[string(excluded)] = k
		}
		if t.kind[i] = k; k == none {
			if t.never == nil {
				t.never = make([]bool, items)
			}
			t.never[i] = true
			continue
		}
		t.kinds[k].items = append(t.kinds[k].items, i)
	}
	short := t.fill()
	if t.rank < t.minimum {
		return nil, t.shortage(slots, short)
	}
	return t, nil
}

func zeros(b []byte) (at []int) {
	for j, v := range b {
		if v == 0 {
			at = append(at, j)
		}
	}
	return at
}

// Full returns the size of the largest sets, and whether the family contains all sets of that size and no others.
func (t *Slots) Full() (size int, ok bool) {
	return t.rank, t.rank == t.slots && t.rank == t.minimum && t.never == nil && len(t.kinds) == 1
}

// fill computes the rank by a maximum matching of kinds with slots. If the matching leaves a slot empty, fill returns a
// collection of slots with fewer fitting items than slots: the empty slot, the slots bound to kinds that fit it, and so
// on.
func (t *Slots) fill() (short []int) {
	var m matching
	m.reset(t.slots)
	for k := range t.kinds {
		for _, i := range t.kinds[k].items {
			if !m.place(t, i, 0) {
				break
			}
			t.rank++
		}
	}
	empty := slices.Index(m.at, none)
	if empty < 0 {
		return nil
	}
	short = []int{empty}
	for at := 0; at < len(short); at++ {
		for k := range t.kinds {
			if !t.fits(k, short[at]) {
				continue
			}
			for j, i := range m.at {
				if i != none && t.kind[i] == k && !slices.Contains(short, j) {
					short = append(short, j)
				}
			}
		}
	}
	slices.Sort(short)
	return short
}

func (t *Slots) shortage(slots []Slot, short []int) error {
	if t.minimum > t.slots {
		return fmt.Errorf("at least %s, and there are %d slots", hint.Count(t.minimum, "item"), t.slots)
	}
	var names []string
	for _, j := range short {
		names = append(names, slots[j].name(j))
	}
	if len(short) == 1 {
		return fmt.Errorf("%s takes none of the %s", names[0], hint.Count(len(t.kind), "item"))
	}
	const maximum = 5
	if len(names) > maximum {
		names = append(names[:maximum:maximum], fmt.Sprintf("%d more", len(short)-maximum))
	}
	last := len(names) - 1
	return fmt.Errorf("%s and %s: together they take %s, and each needs one",
		strings.Join(names[:last], ", "), names[last], hint.Count(len(short)-1, "item"))
}

// matching assigns items to slots.
type matching struct {
	at    []int  // by slot: its item, or none
	seen  []bool // by slot: whether the current search has visited it
	order []int

	ranking Ranking
}

var matchings = sync.Pool{New: func() any { return new(matching) }}

// reset empties the slots.
func (m *matching) reset(slots int) {
	if cap(m.at) < slots {
		m.at, m.seen = make([]int, slots), make([]bool, slots)
	}
	m.at, m.seen = m.at[:slots], m.seen[:slots]
	for j := range m.at {
		m.at[j] = none
	}
}

// place puts item i into a slot numbered at least from, moving others within that range, and reports whether there was
// room.
func (m *matching) place(t *Slots, i, from int) bool {
	if t.kind[i] == none {
		return false
	}
	clear(m.seen)
	return m.augment(t, i, from)
}

// augment is Kuhn's search (1955) for an augmenting path.
func (m *matching) augment(t *Slots, i, from int) bool {
	fitting := t.kinds[t.kind[i]].slots
	for _, j := range fitting {
		if j >= from && m.at[j] == none {
			m.at[j] = i
			return true
		}
	}
	for _, j := range fitting {
		if j < from || m.seen[j] {
			continue
		}
		m.seen[j] = true
		if m.augment(t, m.at[j], from) {
			m.at[j] = i
			return true
		}
	}
	return false
}

// fits reports whether slot j accepts items of kind k.
func (t *Slots) fits(k, j int) bool {
	if k == none {
		return false
	}
	_, ok := slices.BinarySearch(t.kinds[k].slots, j)
	return ok
}

// Items returns N.
func (t *Slots) Items() int { return len(t.kind) }

// Limit implements [Limiter]. The smaller sets of a matroid form another matroid, its truncation, so the greedy
// algorithm stays exact.
func (t *Slots) Limit(maximum int) (vitrine.Constraint, error) {
	maximum = max(maximum, 0)
	if t.rank <= maximum {
		return t, nil
	}
	if maximum < t.minimum {
		return nil, fmt.Errorf("at most %d, but at least %s are demanded", maximum, hint.Count(t.minimum, "item"))
	}
	return &Slots{slots: t.slots, minimum: t.minimum, rank: maximum, kind: t.kind, kinds: t.kinds, never: t.never}, nil
}

// hides implements selective.
func (t *Slots) hides() []bool { return t.never }

// Contains implements vitrine.Constraint.
func (t *Slots) Contains(s vitrine.Assortment) bool {
	if len(s) < t.minimum || len(s) > t.rank {
		return false
	}
	m := matchings.Get().(*matching)
	defer matchings.Put(m)
	m.reset(t.slots)
	for _, i := range s {
		if i < 0 || i >= len(t.kind) || !m.place(t, i, 0) {
			return false
		}
	}
	return true
}

// MaxGain implements vitrine.Constraint. It panics unless there are N gains.
func (t *Slots) MaxGain(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
	return t.best(dst, gain, 0)
}

// top implements ranker.
func (t *Slots) top(dst vitrine.Assortment, u []float64) (vitrine.Assortment, bool) {
	return t.best(dst, u, negInf), true
}

// best returns the set with the largest values. Beyond the required number, values must exceed minimum.
func (t *Slots) best(dst vitrine.Assortment, value []float64, minimum float64) vitrine.Assortment {
	if len(value) != len(t.kind) {
		panic(fmt.Sprintf("assortment: %d gains for a family of %d items", len(value), len(t.kind)))
	}
	m := matchings.Get().(*matching)
	defer matchings.Put(m)
	m.reset(t.slots)
	order := m.order[:0]
	for k := range t.kinds {
		order = m.ranking.appendLargest(
			order, t.kinds[k].items, min(len(t.kinds[k].slots), len(t.kinds[k].items)), value, minimum, t.minimum > 0,
		)
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(value[b], value[a]), cmp.Compare(a, b)) })
	m.order = order
	dst = slices.Grow(dst[:0], t.rank)
	for _, i := range order {
		if len(dst) == t.rank || !(value[i] > minimum) && len(dst) >= t.minimum {
			break
		}
		if m.place(t, i, 0) {
			dst = append(dst, i)
		}
	}
	slices.Sort(dst)
	return dst
}

// Assign distributes the items of a feasible set to slots, and stores the item of each slot in dst, or −1 for an empty
// slot. Each slot in turn gets the first item, in the given order, that leaves a place for all others. Assign panics if
// the items do not fit.
func (t *Slots) Assign(dst []int, items []int) []int {
	m := matchings.Get().(*matching)
	defer matchings.Put(m)
	m.reset(t.slots)
	for _, i := range items {
		if i < 0 || i >= len(t.kind) || !m.place(t, i, 0) {
			panic(fmt.Sprintf("assortment: %v cannot be put into the slots", items))
		}
	}
	for j := range m.at {
		for _, i := range items {
			at := slices.Index(m.at, i)
			if at < j || !t.fits(t.kind[i], j) {
				continue
			}
			if at == j {
				break
			}
			displaced := m.at[j]
			m.at[at], m.at[j] = none, i
			if displaced == none || m.place(t, displaced, j+1) {
				break
			}
			m.at[at], m.at[j] = i, displaced
		}
	}
	return append(dst[:0], m.at...)
}
