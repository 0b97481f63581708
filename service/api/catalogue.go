package api

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// CatalogueItem is an item of a placement's catalogue. A request may name it by its id.
type CatalogueItem struct {
	ID         string         `json:"id" minLength:"1" doc:"at most 200 bytes of UTF-8, and not . or .., which no URL can hold"`
	Features   Values         `json:"features,omitzero" doc:"numbers, strings and objects by the features' names"`
	Revenue    *float64       `json:"revenue,omitempty" minimum:"0" maximum:"1e12" doc:"the revenue if it is taken; 1 by default"`
	Groups     []string       `json:"groups,omitzero" doc:"names of groups, for filters and limits"`
	Space      *float64       `json:"space,omitempty" minimum:"0" maximum:"1e9" doc:"the space that it takes of a capacity, and for filters: a number with at most 6 decimals; 1 by default"`
	Available  *bool          `json:"available,omitempty" doc:"whether it may be shown; true by default"`
	ValidFrom  *time.Time     `json:"valid_from,omitempty" nullable:"true" doc:"it may be shown from this time on; null, in a patch, removes it"`
	ValidUntil *time.Time     `json:"valid_until,omitempty" nullable:"true" doc:"it may be shown before this time; null, in a patch, removes it"`
	Attributes map[string]any `json:"attributes,omitzero" doc:"numbers, strings and booleans by name, for filters and limits; the policy does not see them"`
	Payload    jsontext.Value `json:"payload,omitzero" doc:"any JSON, such as a title and a picture, which answers can carry"`
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom. Null is a field's default, with which a patch replaces the item's
// value. The default of a time is the zero time. A number may not be null, into which JavaScript turns NaN, and neither
// may an object.
func (c *CatalogueItem) UnmarshalJSONFrom(in *jsontext.Decoder) error {
	type item CatalogueItem // without this method
	v := struct {
		item
		Revenue    notNull[float64]     `json:"revenue"`
		Groups     orDefault[[]string]  `json:"groups"`
		Space      notNull[float64]     `json:"space"`
		Available  orDefault[bool]      `json:"available"`
		ValidFrom  orDefault[time.Time] `json:"valid_from"`
		ValidUntil orDefault[time.Time] `json:"valid_until"`

		Attributes notNull[map[string]any] `json:"attributes"`
	}{
		Groups:    orDefault[[]string]{byDefault: []string{}},
		Available: orDefault[bool]{byDefault: true},
	}
	if err := json.UnmarshalDecode(in, &v); err != nil {
		return err
	}
	*c = CatalogueItem(v.item)
	c.Revenue, c.Space, c.Available, c.ValidFrom, c.ValidUntil = v.Revenue.is, v.Space.is, v.Available.is,
		v.ValidFrom.is, v.ValidUntil.is
	if v.Groups.is != nil {
		c.Groups = *v.Groups.is
	}
	if v.Attributes.is != nil {
		c.Attributes = *v.Attributes.is
	}
	return nil
}

// orDefault is a member of an object: nil if it is left out, and the default if it is null.
type orDefault[T any] struct {
	byDefault T
	is        *T
}

func (o *orDefault[T]) UnmarshalJSONFrom(in *jsontext.Decoder) error {
	if in.PeekKind() == 'n' {
		o.is = new(o.byDefault)
		return in.SkipValue()
	}
	o.is = new(T)
	return json.UnmarshalDecode(in, o.is)
}

// notNull is a number or an object, or nil if it is left out.
type notNull[T float64 | map[string]any] struct{ is *T }

func (n *notNull[T]) UnmarshalJSONFrom(in *jsontext.Decoder) error {
	if in.PeekKind() == 'n' {
		what := "an object"
		if _, ok := any(n.is).(*float64); ok {
			what = "a number"
		}
		return fmt.Errorf("null: must be %s; leave it out if there is none", what)
	}
	return json.UnmarshalDecode(in, &n.is)
}

// ItemsChanged is the answer to a change of a catalogue.
type ItemsChanged struct {
	CatalogueEntry uint64   `json:"catalogue_entry" doc:"the last entry of the log that changed the catalogue"`
	Items          int      `json:"items" doc:"the number of items in the catalogue"`
	Changed        int      `json:"changed" doc:"the number of items that this request put, patched or deleted"`
	Clipped        int      `json:"clipped,omitzero" doc:"the number of values beyond their features' bounds, among the items changed: see whether their unit is right"`
	Unknown        []string `json:"unknown,omitzero" doc:"ids that the catalogue does not have: of a patch or a deletion, the first 100"`
}

// Add adds the answer to a later change to the answers to the changes before it.
func (c *ItemsChanged) Add(later *ItemsChanged) {
	c.CatalogueEntry, c.Items = later.CatalogueEntry, later.Items
	c.Changed, c.Clipped = c.Changed+later.Changed, c.Clipped+later.Clipped
	c.Unknown = append(c.Unknown, later.Unknown...)
}

// ItemIDs names items of a catalogue.
type ItemIDs struct {
	IDs []string `json:"ids" minItems:"1"`
}

// ItemPage is a page of a catalogue.
type ItemPage struct {
	CatalogueEntry uint64          `json:"catalogue_entry" doc:"if it differs between pages, items may be missing from them or be on two of them"`
	Count          int             `json:"count" doc:"the number of items in the catalogue"`
	Items          []CatalogueItem `json:"items"`
	Next           int             `json:"next_from,omitzero" doc:"from, of the next page; left out on the last one"`
}

// Shelf is a page of the items that a placement may show.
type Shelf struct {
	Count    int         `json:"count" doc:"items that were asked for; the page has some of them"`
	Items    []ShelfItem `json:"items"`
	Complete bool        `json:"complete" doc:"whether every item that was shown has counts of its own; otherwise items without counts may have been shown, but rarely, and counts that were dropped began again"`
}

// ShelfItem is an item and its sales.
type ShelfItem struct {
	Item     CatalogueItem `json:"item" doc:"of an item that the catalogue does not have, only the id, of up to 1024 bytes"`
	State    string        `json:"state" enum:"available,excluded,unavailable,not-yet,over,unfit,gone" doc:"whether it may be shown now. excluded: by the placement; not-yet and over: its time has not come, or is over; unfit: it lacks features; gone: the catalogue does not have it, so requests bring it or it was deleted"`
	Pinned   bool          `json:"pinned"`
	Shown    uint64        `json:"shown" doc:"decisions that showed it and have closed; unless complete, only since its counts last began"`
	Taken    uint64        `json:"taken"`
	Revenue  float64       `json:"revenue" doc:"earned by it"`
	Selling  *float64      `json:"taken_share,omitempty" doc:"taken by shown; left out of an item without counts, as the next one"`
	PerShown *float64      `json:"revenue_per_page,omitempty" doc:"what it earned on a page that showed it"`
}

// Values of [ShelfItem.State] that do not come from the catalogue.
const (
	OnShelf    = "available"
	OffShelf   = "excluded"
	NotInStock = "gone"
)
