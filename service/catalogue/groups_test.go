package catalogue

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/budget"
)

// attributed returns a catalogue of n items. Each attribute takes on the given number of values.
func attributed(t *testing.T, n, values, attributes int) *Catalogue {
	s := schemaOf(t, `[{"name":"x","kind":"number"}]`)
	c := New(s)
	putAttributed(t, c, 0, n, values, attributes)
	return c
}

func putAttributed(t *testing.T, c *Catalogue, from, to, values, attributes int) {
	var records []string
	for i := from; i < to; i++ {
		item := api.CatalogueItem{ID: fmt.Sprint("item", i), Features: api.Values{api.Number("x", float64(i%100))},
			Attributes: map[string]any{}}
		for k := range attributes {
			item.Attributes[fmt.Sprint("a", k)] = fmt.Sprintf("value %08d", (i*7+k)%values)
		}
		record := fatal.Or(Encode(&item, c.Split().Schema(), ""))(t)
		records = append(records, record)
	}
	change := fatal.Or(c.NewChange(records, nil))(t)
	c.Apply(c.Version()+1, change)
}

// Lists of groups take memory from the budget and return it. A list that finds too little room displaces another. A
// list that finds no room at all gives the same answers, but is not remembered.
func TestGroupsAreCharged(t *testing.T) {
	const n, values = 1000, 10
	const list = 4*n + values*(valueBytes+14)
	by := func(k int) GroupsBy { return GroupsBy{Attribute: fmt.Sprint("a", k)} }
	c := attributed(t, n, values, 10)
	b := budget.New(4 * list) // placements may hold three quarters
	c.ChargeTo(b)
	is := func(what string, lists int64) {
		t.Helper()
		if have := b.Usage().Placements; have != lists || c.ListBytes() != lists ||
			int(lists) > 0 != (len(c.lists.groups) > 0) {
			t.Fatalf("%s: %d bytes are charged, for %d lists of %d; want %d",
				what, have, len(c.lists.groups), c.ListBytes(), lists)
		}
	}
	for k := range 3 {
		if g := groupsOf(c, by(k)); len(g.Of) != n || g.Len() != values {
			t.Fatalf("%d groups of %d items", g.Len(), len(g.Of))
		}
		groupsOf(c, by(k))
		is("a list", int64(k+1)*list)
	}
	for k := range 10 {
		g := groupsOf(c, by(k))
		is("a list for another one", 3*list)
		if groupsOf(c, by(k)) != g {
			t.Error("the last list is not remembered")
		}
	}
	putAttributed(t, c, n, 2*n, values, 10)
	groupsOf(c, by(9))
	is("a longer list", 2*list+4*n) // and one of the others, unused since
	deleted := fatal.Or(c.NewChange(nil, []string{"item1", "item2"}))(t)
	c.Apply(c.Version()+1, deleted)
	before := b.Usage().Placements
	groupsOf(c, by(9))
	is("a shorter list", before-8)

	const items = 3*list - 1 // charged to others, without regard to the limit
	b.Charge(items)
	g := groupsOf(c, by(0))
	if number := g.Of[0]; len(g.Of) != 2*n-2 || g.Name(number) != `a0 "value 00000000"` {
		t.Errorf("the list without room has %d items, the first in %s", len(g.Of), g.Name(number))
	}
	b.Charge(-items)
	is("no room", 0)

	for range 2 {
		groupsOf(c, by(1))
		before := c.ListBytes()
		c.lists.groups[by(1)].begun = false // forces a rebuild
		groupsOf(c, by(1))
		c.ChargeTo(b)
		is("the same list", before)
		c.DropLists()
		is("a dropped list", 0)
	}
	g = groupsOf(c, by(1))
	c.DropLists()
	c.lists.charge(g, g.bytes()) // as if another request had made it meanwhile
	is("dropped while it is made", 0)
	groupsOf(c, by(1))
	c.ChargeTo(nil)
	is("charged to nobody", 0)
	for k := range 10 {
		groupsOf(c, by(k))
	}
	expect.Equal(t, len(c.lists.groups), maxLists, "lists are remembered")
}

// A list's charge is close to its real memory, even if every item has its own value.
func TestGroupsTakeWhatTheyAreCharged(t *testing.T) {
	c := attributed(t, 20_000, 20_000, 1)
	used := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // emptying pools takes two collections
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := used()
	c.ChargeTo(budget.New(1 << 30))
	groupsOf(c, GroupsBy{Attribute: "a0"})
	took, charged := used()-before, c.ListBytes()
	if charged < took*7/10 || strconv.IntSize == 64 && charged > took*13/10 { // words are smaller on 32 bits
		t.Errorf("a list of %d bytes is charged %d", took, charged)
	}
	runtime.KeepAlive(c)
}

// Dropping lists while the catalogue changes is safe; the race detector checks it.
func TestListsAreDroppedDuringChanges(t *testing.T) {
	c := attributed(t, 100, 5, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 20 {
			groupsOf(c, GroupsBy{Attribute: "a0"})
			c.DropLists()
		}
	}()
	for range 20 {
		putAttributed(t, c, 0, 100, 5, 1)
	}
	<-done
}
