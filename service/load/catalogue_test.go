package load_test

import (
	"testing"

	"vitrine/internal/fatal"
	"vitrine/service/load"
)

// With a catalogue the items are put once, all of them are candidates, and shoppers take items shown. The same seed
// brings the same shoppers.
func TestRunOnACatalogue(t *testing.T) {
	engine, url := service(t)
	var notes []string
	o := small(url)
	o.Items, o.Catalogue, o.User = 1500, true, 2
	o.Note = func(m string) { notes = append(notes, m) }
	for run := range 2 {
		r := fatal.Or(load.Run(t.Context(), o))(t)
		if r.Decisions.Count != 300 || len(r.Errors) > 0 || r.Purchases == 0 || r.Purchases == int(r.Outcomes.Count) {
			t.Errorf("run %d: %+v", run, r)
		}
	}
	stats, err := engine.Stats("p")
	if err != nil || stats.Items != 1500 || stats.Decisions != 600 {
		t.Errorf("%+v, %v", stats, err)
	}
	if len(notes) != 2 { // the placement is made, and the items are put, once
		t.Errorf("notes %q", notes)
	}
	page, err := engine.Items("p", 1499, 10)
	if err != nil || len(page.Items) != 1 || page.Items[0].ID != "item-1499" || page.Next != 0 {
		t.Errorf("%+v, %v", page, err)
	}
	r, err := engine.Item("p", "item-3")
	if err != nil || len(r.Features) != o.Features || r.Revenue == nil {
		t.Errorf("%+v, %v", r, err)
	}
}
