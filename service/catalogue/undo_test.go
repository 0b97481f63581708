package catalogue

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/feature"
)

// Undoing the changes one by one takes frozen items back to every earlier version, while the catalogue goes on.
func TestUndo(t *testing.T) {
	s := fatal.Or(feature.New([]api.Feature{{Name: "x", Kind: "number"},
		{Name: "brand", Kind: "category", Columns: 4}}))(t)
	rapid.Check(t, func(t *rapid.T) {
		type change struct {
			before             uint64
			put, deleted, undo []string
		}
		c := New(s)
		states, changes := [][]string{nil}, []change{{}}
		version := uint64(0)
		step := func() {
			ids := rapid.SliceOfNDistinct(rapid.IntRange(0, 12), 1, 8, rapid.ID).Draw(t, "ids")
			ch := change{before: version}
			for _, i := range ids {
				id := fmt.Sprint("i", i)
				if _, ok := c.Find(id); ok && rapid.Bool().Draw(t, "deletes") {
					ch.deleted = append(ch.deleted, id)
					continue
				}
				item := api.CatalogueItem{ID: id,
					Features: api.Values{api.Number("x", float64(rapid.IntRange(0, 3).Draw(t, "x"))), api.Text("brand",
						rapid.StringN(0, 9, -1).Draw(t, "brand"))}}
				record := fatal.Or(Encode(&item, s, ""))(t)
				ch.put = append(ch.put, record)
			}
			ch.undo = c.UndoOf(ch.put, ch.deleted)
			made := fatal.Or(c.NewChange(ch.put, ch.deleted))(t)
			version++
			c.Apply(version, made)
			changes, states = append(changes, ch), append(states, slices.Collect(c.Freeze().Records()))
		}
		for range 6 {
			step()
		}
		f := c.Freeze()
		step()
		for f.Version > 0 {
			ch := changes[f.Version]
			fatal.If(t, f.Revert(ch.before, ch.put, ch.deleted, ch.undo))
			expect.List(fatal.T(t), slices.Collect(f.Records()), states[f.Version], "version", f.Version,
				"has the records")
			if rapid.Bool().Draw(t, "goes on") {
				step()
			}
		}
	})
}

// Revert rejects bytes that UndoOf did not write, or produces other items; it never panics.
func FuzzUndo(f *testing.F) {
	s := fatal.Or(feature.New([]api.Feature{{Name: "x", Kind: "number"}}))(f)
	record := func(id string, x float64) string {
		r := fatal.Or(Encode(&api.CatalogueItem{ID: id, Features: api.Values{api.Number("x", x)}}, s, ""))(f)
		return r
	}
	f.Add("", "\x00"+record("c", 3))
	f.Add("\x01\x04\x02abcd", "\x02\x01")
	f.Fuzz(func(t *testing.T, put, deleted string) {
		c := New(s)
		change := fatal.Or(c.NewChange([]string{record("a", 1), record("b", 2)}, nil))(t)
		c.Apply(1, change)
		items := c.Freeze()
		_ = items.Revert(0, []string{record("b", 2)}, []string{"c"}, []string{put, deleted})
	})
}
