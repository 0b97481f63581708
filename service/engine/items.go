package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"vitrine/service/api"
	"vitrine/service/catalogue"
	"vitrine/service/eventlog"
	"vitrine/service/feature"
	"vitrine/service/page"
	"vitrine/service/setup"
	"vitrine/service/state"
)

// checkItems reports whether a configuration's catalogue, its own or a shared one, forbids it. If the features of the
// placement's items change, checkItems returns the catalogue for them, and the bytes reserved for it.
func (e *Engine) checkItems(ctx context.Context, name string, c *setup.Config,
	how *Change) (m *catalogue.Refit, held int64, err error) {
	e.mu.RLock()
	items, schema, err := e.state.CheckItems(name, c, how)
	e.mu.RUnlock()
	if err != nil || schema == nil || items.Head().Items == 0 {
		return nil, 0, err
	}
	held = items.Bytes()
	if err := e.state.Budget.Hold(held); err != nil {
		return nil, 0, fmt.Errorf("placement %q: %w: %w: the catalogue needs its memory twice while its features "+
			"change: delete items, or give the service more, in [limits] memory", name, ErrMemory, err)
	}
	m, misfit, err := catalogue.NewRefit(ctx, items, schema)
	switch {
	case err != nil:
	case misfit != nil:
		err = api.Fieldf("/features", "the catalogue does not fit: %v: put a configuration with a default for this "+
			"feature, then the items with their values", misfit)
	default:
		return m, held, nil
	}
	e.state.Budget.Charge(-held)
	return nil, 0, err
}

// chunkBytes limits the records of an entry of the log, the new ones and those that undo the change. A chunk is durable
// as a whole or not at all; smaller ones keep other entries waiting for a shorter time.
const chunkBytes = 256 << 10

// PutItems puts items into a placement's catalogue, replacing known ids. Items are written in chunks, in order; each
// chunk becomes durable completely or not at all. After an error the earlier chunks stay. Items equal to the
// catalogue's change nothing. It returns *api.FieldError, ErrNotFound, ErrMemory, ErrStopped or ctx's error.
func (e *Engine) PutItems(ctx context.Context, name string, items []api.CatalogueItem,
	now int64) (*api.ItemsChanged, error) {
	return e.writeItems(ctx, name, now, edits{
		n: len(items), field: "/items/%d", id: func(i int) string { return items[i].ID },
		features: func(i int) api.Values { return items[i].Features },
		record: func(c *catalogue.Catalogue, i int, field string) (string, bool, error) {
			record, err := catalogue.Encode(&items[i], c.Split().Schema(), field)
			return record, true, err
		},
	})
}

// PatchItems changes some fields of items: see [api.CatalogueItem]. The answer names unknown items. Chunks and errors
// are as in PutItems.
func (e *Engine) PatchItems(ctx context.Context, name string, patches []api.CatalogueItem,
	now int64) (*api.ItemsChanged, error) {
	return e.writeItems(ctx, name, now, edits{
		n: len(patches), field: "/items/%d", id: func(i int) string { return patches[i].ID },
		features: func(i int) api.Values { return patches[i].Features },
		record: func(c *catalogue.Catalogue, i int, field string) (string, bool, error) {
			return c.Patch(&patches[i], field)
		},
	})
}

// DeleteItems deletes items from a placement's catalogue. The answer names unknown items.
func (e *Engine) DeleteItems(ctx context.Context, name string, ids []string, now int64) (*api.ItemsChanged, error) {
	return e.writeItems(ctx, name, now, edits{
		n: len(ids), field: "/ids/%d", id: func(i int) string { return ids[i] },
		record: func(c *catalogue.Catalogue, i int, _ string) (string, bool, error) {
			_, ok := c.Find(ids[i])
			return "", ok, nil
		},
	})
}

// edits are changes of n items.
type edits struct {
	n     int
	field string // of the request, with the number of an item
	id    func(i int) string
	// features returns an item's features, or nil if it teaches no values.
	features func(i int) api.Values
	// record returns an item's record ("" deletes the item), and whether the item exists. It is called again if the
	// catalogue changed. The caller holds the catalogue's lock.
	record func(c *catalogue.Catalogue, i int, field string) (record string, ok bool, err error)
}

// maxUnknown limits the ids that an answer names.
const maxUnknown = 100

// writeItems writes edits in chunks.
func (e *Engine) writeItems(ctx context.Context, name string, now int64, d edits) (*api.ItemsChanged, error) {
	if err := e.learnItems(ctx, name, d, now); err != nil {
		return nil, unfinished(err, "no item was changed")
	}
	v, err := e.ownItems(name)
	if err != nil {
		return nil, err
	}
	twins, err := d.twins(v)
	if err != nil {
		return nil, err
	}
	answer := new(api.ItemsChanged)
	fail := func(err error, from, to int) (*api.ItemsChanged, error) {
		if field, ok := errors.AsType[*api.FieldError](err); ok && from > 0 {
			return nil, api.Fieldf(field.Field, "%s; the first %d of %d items were changed, and the others were not", field.Message, from, d.n)
		}
		what := fmt.Sprintf("the first %d of %d items were changed, and the others were not", from, d.n)
		if to > from {
			what = fmt.Sprintf("the first %d of %d items were changed, the next %d may have been, and the others were not", from, d.n, to-from)
		}
		return nil, unfinished(err, what+": send the request again; items that were already changed stay as they are")
	}
	for from := 0; from < d.n; {
		k, to, err := e.submitItems(ctx, v, &d, from, twins, now)
		if errors.Is(err, page.ErrStale) {
			if v, err = e.ownItems(name); err == nil {
				continue
			}
		}
		if err != nil {
			return fail(err, from, to)
		}
		answer.Changed, answer.Clipped = answer.Changed+len(k.places), answer.Clipped+k.clipped
		answer.Unknown = append(answer.Unknown, k.unknown[:min(len(k.unknown), maxUnknown-len(answer.Unknown))]...)
		from = k.to
	}
	v.Placement.Note(&page.Decision{Clipped: answer.Clipped})
	v.Page.Catalogue.RLock()
	defer v.Page.Catalogue.RUnlock()
	answer.CatalogueEntry, answer.Items = v.Page.Catalogue.Version(), v.Page.Catalogue.Len()
	return answer, nil
}

// learnItems teaches a placement's categories the values in edits.
func (e *Engine) learnItems(ctx context.Context, name string, d edits, now int64) error {
	for {
		v, err := e.View(name)
		if err != nil || d.features == nil {
			return err
		}
		schema, unseen := v.Page.Config.Schema(), []feature.Seen(nil)
		one := make([]api.Item, 1)
		for i := range d.n {
			values := make(api.Values, schema.NumItem())
			for _, f := range d.features(i) {
				if slot, ok := schema.Item(f.Name); ok {
					values[slot] = f
				}
			}
			one[0].Features = values
			seen := schema.Unseen(nil, one)
			if schema, err = schema.Learn(seen...); err != nil {
				return err
			}
			unseen = append(unseen, seen...)
		}
		if unseen == nil {
			return nil
		}
		if err := e.logValues(ctx, name, v.Changed, unseen, now); !errors.Is(err, page.ErrStale) {
			return err
		}
	}
}

// ownItems returns a placement with its own catalogue.
func (e *Engine) ownItems(name string) (*View, error) {
	v, err := e.View(name)
	if err == nil && v.Page.Config.CatalogueOf != "" {
		err = api.Fieldf("", "placement %q has the catalogue of %q: change it there", name, v.Page.Config.CatalogueOf)
	}
	return v, err
}

// twins returns the items that repeat an earlier item with the same values. A repetition with other values is an error.
func (d *edits) twins(v *View) (map[int]bool, error) {
	twins := map[int]bool{}
	first := make(map[string]int, d.n)
	v.Page.Catalogue.RLock()
	defer v.Page.Catalogue.RUnlock()
	for i := range d.n {
		j, ok := first[d.id(i)]
		if !ok {
			first[d.id(i)] = i
			continue
		}
		records := [2]string{}
		for k, of := range []int{j, i} {
			var err error
			if records[k], _, err = d.record(v.Page.Catalogue, of, fmt.Sprintf(d.field, of)); err != nil {
				return nil, err
			}
		}
		if records[0] != records[1] {
			return nil, api.Fieldf(fmt.Sprintf(d.field, i)+"/id", "%q is item %d too, with different values",
				api.Abbreviate(d.id(i), 40), j)
		}
		twins[i] = true
	}
	return twins, nil
}

// chunk is a change that fits into an entry of the log.
type chunk struct {
	body    eventlog.ItemsChanged
	places  []int // of the items in the request, first those put
	unknown []string
	clipped int    // values beyond their features' bounds
	to      int    // the next item
	version uint64 // of the catalogue when the chunk was made
}

// chunk makes a chunk of the items from a number on.
func (d *edits) chunk(v *View, from int, twins map[int]bool) (*chunk, error) {
	v.Page.Catalogue.RLock()
	defer v.Page.Catalogue.RUnlock()
	k := &chunk{to: from, version: v.Page.Catalogue.Version()}
	for size := 0; k.to < d.n && size < chunkBytes; k.to++ {
		if twins[k.to] {
			continue
		}
		record, ok, err := d.record(v.Page.Catalogue, k.to, fmt.Sprintf(d.field, k.to))
		switch {
		case err != nil:
			return nil, err
		case !ok:
			k.unknown = append(k.unknown, d.id(k.to))
			continue
		case record != "" && v.Page.Catalogue.Has(record):
			continue // as after an interrupted push
		case record == "":
			k.body.Deleted = append(k.body.Deleted, d.id(k.to))
			size += len(d.id(k.to))
		default:
			k.body.Put = append(k.body.Put, record)
			size += len(record)
		}
		size += v.Page.Catalogue.Size(d.id(k.to))
		k.places = append(k.places, k.to)
	}
	k.body.Before, k.body.Undo = k.version, v.Page.Catalogue.UndoOf(k.body.Put, k.body.Deleted)
	return k, nil
}

// submitItems makes and writes a chunk of the items from a number on. It returns page.ErrStale if the placement or its
// catalogue changed meanwhile. After an error the items up to a number may have been written, and no later ones.
func (e *Engine) submitItems(ctx context.Context, v *View, d *edits, from int, twins map[int]bool,
	now int64) (k *chunk, to int, err error) {
	leave, err := e.pushes.Take(ctx, v.Page.Name) // or all changes but one would make their chunks in vain
	if err != nil {
		return nil, from, err
	}
	defer leave()
	if k, err = d.chunk(v, from, twins); err != nil || len(k.places) == 0 {
		return k, from, err
	}
	change, err := v.Page.Catalogue.NewChange(k.body.Put, k.body.Deleted)
	var misfit *catalogue.ItemError
	var field *api.FieldError
	if errors.As(err, &misfit) && errors.As(err, &field) {
		return k, from, api.Fieldf(fmt.Sprintf(d.field, k.places[misfit.Index])+strings.TrimPrefix(field.Field, "/items/0"),
			"%s", field.Message)
	}
	if err != nil {
		return k, from, api.Fieldf("/items", "%v", err)
	}
	k.clipped = change.Clipped
	g := &catalogue.Staged{Items: v.Page.Catalogue, Change: change, Held: v.Page.Catalogue.MaxBytes(change)}
	if err = e.state.Budget.Hold(g.Held); err != nil {
		v.Page.Catalogue.DropLists() // decisions make them again if there is room
		err = e.state.Budget.Hold(g.Held)
	}
	if err != nil {
		return k, from, fmt.Errorf("placement %q: %w: %w: the items need %d bytes: delete some, or give the service "+
			"more, in [limits] memory", v.Page.Name, ErrMemory, err, g.Held)
	}
	err = e.submit(ctx, func(b *state.Batch) error {
		return b.ChangeItems(v, g, k.version, &eventlog.Event{Time: now, Placement: v.Page.Name, Body: &k.body})
	})
	if g.Claim() { // the writer did not take it, and never will
		e.state.Budget.Charge(-g.Held)
		return k, from, err
	}
	return k, k.to, err
}

// MaxPage is the largest page of a catalogue.
const MaxPage = 1000

// Items returns a page of the catalogue that a placement uses: at most limit items from a place on.
func (e *Engine) Items(name string, from, limit int) (*api.ItemPage, error) {
	items, err := e.itemsFor(name)
	if err != nil {
		return nil, err
	}
	items.RLock()
	defer items.RUnlock()
	page := &api.ItemPage{CatalogueEntry: items.Version(), Count: items.Len(), Items: []api.CatalogueItem{}}
	to := min(from+limit, items.Len())
	for slot := from; slot < to; slot++ {
		page.Items = append(page.Items, items.Item(int32(slot)))
	}
	if from < to && to < items.Len() {
		page.Next = to
	}
	return page, nil
}

// Item returns an item of the catalogue that a placement uses, or ErrNotFound.
func (e *Engine) Item(name, id string) (*api.CatalogueItem, error) {
	items, err := e.itemsFor(name)
	if err != nil {
		return nil, err
	}
	items.RLock()
	defer items.RUnlock()
	slot, ok := items.Find(id)
	if !ok {
		return nil, fmt.Errorf("placement %q, item %q: %w", name, api.Abbreviate(id, 40), ErrNotFound)
	}
	item := items.Item(slot)
	return &item, nil
}

func (e *Engine) itemsFor(name string) (*catalogue.Catalogue, error) {
	v, err := e.View(name)
	if err != nil {
		return nil, err
	}
	return v.Page.Items()
}

// maxUndone limits how many changed items an explanation undoes.
var maxUndone = 100_000

// Rewind undoes the logged changes after the entry version, so that items become that version of their catalogue. It
// returns an error if the changes concern more than most items, or if the catalogue never passed through the version.
func Rewind(ctx context.Context, log eventlog.Reader, items *catalogue.Frozen, version uint64, most int) error {
	for left := most; items.Version > version; {
		entry, err := log.Entry(ctx, items.Version)
		if err != nil {
			return fmt.Errorf("entry %d: %w", items.Version, err)
		}
		event, err := eventlog.Decode(entry)
		if err != nil {
			return fmt.Errorf("entry %d: %w", items.Version, err)
		}
		change, ok := event.Body.(*eventlog.ItemsChanged)
		if !ok || change.Before >= items.Version {
			return fmt.Errorf("entry %d does not change a catalogue", items.Version)
		}
		if left -= 1 + len(change.Put) + len(change.Deleted); left < 0 {
			return fmt.Errorf("more than %d items of the catalogue have changed since", most)
		}
		if err := items.Revert(change.Before, change.Put, change.Deleted, change.Undo); err != nil {
			return fmt.Errorf("entry %d: %w", items.Version, err)
		}
	}
	return nil
}
