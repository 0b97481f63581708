package api

// Shelf is a page of the items that a placement may show.
type Shelf struct {
	Count    int         `json:"count" doc:"items that were asked for; the page has some of them"`
	Items    []ShelfItem `json:"items"`
	Complete bool        `json:"complete" doc:"whether every item that was shown has counts of its own; otherwise items without counts may have been shown, but rarely"`
}

// ShelfItem is an item and its sales.
type ShelfItem struct {
	Item     CatalogueItem `json:"item" doc:"of an item that the catalogue does not have, only the id"`
	State    string        `json:"state" enum:"available,excluded,unavailable,not-yet,over,unfit,gone" doc:"whether it may be shown now. excluded: by the placement; not-yet and over: its time has not come, or is over; unfit: it lacks features; gone: the catalogue does not have it, so requests bring it or it was deleted"`
	Pinned   bool          `json:"pinned"`
	Shown    uint64        `json:"shown" doc:"decisions that showed it and have closed"`
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
