package main

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/go-json-experiment/json"

	"vitrine/internal/hint"
	"vitrine/service/api"
	"vitrine/service/catalogue"
	"vitrine/service/client"
	"vitrine/service/importer/items"
)

type itemsPushCmd struct {
	catalogueFlags
	File      string `arg:"" help:"CSV, Parquet or JSON Lines, plain or compressed with gzip or zstd."`
	Mapping   string `placeholder:"FILE" help:"TOML that says which column is what. If no mapping names a column, columns have the names of fields and features; others are attributes."`
	Patch     bool   `help:"Change only the fields that the file has, of items that are there."`
	Replace   bool   `help:"Delete the items that the file does not have."`
	MayDelete int    `placeholder:"N" default:"-1" help:"Number of items that --replace may delete. The default is a fifth of the catalogue, or 10 items if that is more."`
}

func (itemsPushCmd) Help() string {
	return `The whole file is read and checked before anything is sent: each item has one id and fits the placement's features. With --replace, a file that lacks too many of the catalogue's items is refused: it may have been cut off. Items are sent in chunks. The service stores each chunk completely or not at all. After an interruption the same command finishes the rest: items that the service has already change nothing.

A mapping is TOML, as for vitrine import. Its values are columns; a list of columns is for groups and for the members of the payload:

    delimiter = ";"                of CSV
    header = ["sku", "eur", …]     names of the columns, if the first line of CSV has none

    [columns]
    id = "sku"
    revenue = "margin"
    available = "in_stock"
    groups = ["collection"]
    payload = ["title", "image"]

    [features]
    price = "price_eur"

    [attributes]
    season = "season"

The columns can also be space, and valid_from and valid_until, which are times such as 2026-11-22T10:00:00Z.

` + examples("vitrine items push products.csv --placement home --mapping products.toml", "vitrine items push prices.jsonl --placement home --patch")
}

func (c itemsPushCmd) Run(ctx context.Context, t terminal) error {
	if c.Patch && c.Replace {
		return usageError{errors.New("--patch and --replace do not go together: a patch adds no items and deletes none")}
	}
	service, err := c.client()
	if err != nil {
		return err
	}
	defer service.CloseIdleConnections()
	config, err := service.Placement(ctx, c.Placement)
	if err != nil {
		return serviceError(fmt.Errorf("placement %q: %w", c.Placement, err))
	}
	m, err := items.ReadMapping(c.Mapping, config.Features)
	if err != nil {
		return err
	}
	fits, err := catalogue.Checker(config.Features, c.Patch)
	if err != nil {
		return err
	}
	ids, err := c.check(t, m, fits)
	if err != nil {
		return err
	}
	var others []string
	if c.Replace {
		if others, err = c.others(ctx, service, ids); err != nil {
			return err
		}
	}
	sum, err := c.send(ctx, service, m)
	if err != nil {
		return err
	}
	deleted := 0
	for part := range slices.Chunk(others, client.ItemsChunk) {
		a, err := service.DeleteItems(ctx, c.Placement, part)
		if err != nil {
			return err
		}
		deleted += a.Changed
	}
	fmt.Fprintf(t.err, "vitrine: %s in the file: %d changed, %d deleted\n", hint.Count(len(ids), "item"), sum.Changed,
		deleted)
	if n := len(sum.Unknown); n > 0 {
		t.warn("the catalogue lacks " + hint.Count(n, "item") + " of the file: --patch adds none")
	}
	if sum.Clipped > 0 {
		t.warn(hint.Count(sum.Clipped, "value") + " beyond the min and max of the placement's features: is the unit right?")
	}
	return nil
}

// check reads the file, and returns the ids of its items. It returns an error if two items with different values share
// an id, or if an item does not fit. It warns if only some items set a revenue.
func (c itemsPushCmd) check(t terminal, m *items.Mapping, fits func(*api.CatalogueItem) error) (map[string]uint64, error) {
	seed, ids, row := maphash.MakeSeed(), map[string]uint64{}, 0
	var priced bool
	var free string // an item without a revenue
	err := items.Read(c.File, m, func(item *api.CatalogueItem) error {
		row++
		if item.Revenue != nil {
			priced = true
		} else if free == "" {
			free = item.ID
		}
		if err := fits(item); err != nil {
			return err
		}
		text, err := json.Marshal(item, json.Deterministic(true))
		if err != nil {
			return err
		}
		sum := maphash.Bytes(seed, text)
		if before, ok := ids[item.ID]; ok && before != sum {
			return fmt.Errorf("item %q is there before, with different values", item.ID)
		}
		ids[item.ID] = sum
		return nil
	})
	switch {
	case err == nil && row == 0:
		err = fmt.Errorf("%s has no items", c.File)
	case err == nil && !c.Patch && priced && free != "":
		t.warn(fmt.Sprintf("%s: item %q has no revenue and counts as 1, although other items set one", c.File,
			api.Abbreviate(free, 40)))
	}
	return ids, err
}

// send sends the items of the file in parts, and returns the sum of the answers.
func (c itemsPushCmd) send(ctx context.Context, service *client.Client, m *items.Mapping) (sum api.ItemsChanged, err error) {
	change := service.PutItems
	if c.Patch {
		change = service.PatchItems
	}
	sent, part := 0, make([]api.CatalogueItem, 0, client.ItemsChunk)
	seen := map[string]bool{}
	flush := func() error {
		if len(part) == 0 {
			return nil
		}
		a, err := change(ctx, c.Placement, part)
		if err != nil {
			return serviceError(fmt.Errorf("items %d to %d: %w; the %d items before these were sent", sent+1, sent+len(part), err, sent))
		}
		sent += len(part)
		sum.Add(a)
		part = part[:0]
		return nil
	}
	err = items.Read(c.File, m, func(item *api.CatalogueItem) error {
		if seen[item.ID] {
			return nil
		}
		seen[item.ID] = true
		if part = append(part, *item); len(part) == cap(part) {
			return flush()
		}
		return nil
	})
	if err == nil {
		err = flush()
	}
	return sum, err
}

// others returns the catalogue's items that are not in the file. It refuses a file that lacks too many of them.
func (c itemsPushCmd) others(ctx context.Context, service *client.Client, ids map[string]uint64) (others []string, err error) {
	all := 0
	_, err = eachPage(ctx, service, c.Placement, func(items []api.CatalogueItem) error {
		all += len(items)
		for i := range items {
			if _, ok := ids[items[i].ID]; !ok {
				others = append(others, items[i].ID)
			}
		}
		return nil
	})
	switch n := len(others); {
	case err != nil:
		err = fmt.Errorf("the items to delete are not known, so no item was sent: %w", err)
	case n > c.MayDelete && (c.MayDelete >= 0 || n > max(all/5, 10)):
		err = hint.New(fmt.Errorf("%s lacks %d of the catalogue's %s, which --replace would delete: no item was sent",
			c.File, n, hint.Count(all, "item")), fmt.Sprintf("is the file complete? If so, add --may-delete %d", n))
	}
	return others, err
}
