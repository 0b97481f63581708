package main

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"strings"

	"github.com/go-json-experiment/json"

	"vitrine/internal/hint"
	"vitrine/service/api"
	"vitrine/service/catalogue"
	"vitrine/service/client"
	"vitrine/service/feature"
	"vitrine/service/importer/items"
)

type itemsPushCmd struct {
	catalogueFlags
	File    string `arg:"" help:"CSV, Parquet or JSON Lines, plain or compressed with gzip or zstd."`
	Mapping string `placeholder:"FILE" help:"TOML that says which column is what. If no mapping names a column, columns have the names of fields and features; others are attributes."`
	Patch   bool   `help:"Change only the fields that the file has, of items that are there."`
	Replace bool   `help:"Delete the items that the file does not have."`
}

func (itemsPushCmd) Help() string {
	return `The whole file is read and checked before anything is sent: each item has one id and fits the placement's features. Items are sent in chunks. The service stores each chunk completely or not at all. After an interruption the same command finishes the rest: items that the service has already change nothing.

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
	schema, err := feature.New(config.Features)
	if err != nil {
		return err
	}
	ids, err := c.check(t, m, schema)
	if err != nil {
		return err
	}
	changed, unknown, err := c.send(ctx, service, m)
	if err != nil {
		return err
	}
	deleted := 0
	if c.Replace {
		if deleted, err = c.deleteOthers(ctx, service, ids); err != nil {
			return err
		}
	}
	fmt.Fprintf(t.err, "vitrine: %s in the file: %d changed, %d deleted\n", hint.Count(len(ids), "item"), changed,
		deleted)
	if unknown > 0 {
		t.warn("the catalogue lacks " + hint.Count(unknown, "item") + " of the file: --patch adds none")
	}
	return nil
}

// check reads the file, and returns the ids of its items. It returns an error if two items with different values share
// an id or, except for a patch, if an item does not fit the features. It warns if only some items set a revenue.
func (c itemsPushCmd) check(t terminal, m *items.Mapping, schema *feature.Schema) (map[string]uint64, error) {
	seed, empty := maphash.MakeSeed(), catalogue.New(schema)
	ids, row := map[string]uint64{}, 0
	var priced bool
	var free string // an item without a revenue
	err := items.Read(c.File, m, func(item *api.CatalogueItem) error {
		row++
		if item.Revenue != nil {
			priced = true
		} else if free == "" {
			free = item.ID
		}
		if !c.Patch {
			record, err := catalogue.Encode(item, schema, "")
			if err == nil {
				_, err = empty.NewChange([]string{record}, nil)
			}
			if field, ok := errors.AsType[*api.FieldError](err); ok {
				err = api.Fieldf(strings.TrimPrefix(field.Field, "/items/0"), "%s", field.Message)
			}
			if err != nil {
				return fmt.Errorf("item %q: %w", api.Abbreviate(item.ID, 40), err)
			}
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

// send sends the items of the file in parts.
func (c itemsPushCmd) send(ctx context.Context, service *client.Client,
	m *items.Mapping) (changed, unknown int, err error) {
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
			return serviceError(fmt.Errorf("items from %d on: %w; the catalogue has the %d before", sent+1, err, sent))
		}
		sent += len(part)
		changed, unknown = changed+a.Changed, unknown+len(a.Unknown)
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
	return changed, unknown, err
}

// deleteOthers deletes the catalogue's items that are not in the file.
func (c itemsPushCmd) deleteOthers(ctx context.Context, service *client.Client,
	ids map[string]uint64) (n int, err error) {
	var others []string
	_, err = eachPage(ctx, service, c.Placement, func(items []api.CatalogueItem) error {
		for i := range items {
			if _, ok := ids[items[i].ID]; !ok {
				others = append(others, items[i].ID)
			}
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("items that the file does not have were not deleted: %w", err)
	}
	for ; len(others) > 0; others = others[min(client.ItemsChunk, len(others)):] {
		a, err := service.DeleteItems(ctx, c.Placement, others[:min(client.ItemsChunk, len(others))])
		if err != nil {
			return n, err
		}
		n += a.Changed
	}
	return n, nil
}
