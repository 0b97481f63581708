package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"vitrine/service/api"
	"vitrine/service/budget"
	"vitrine/service/engine"
)

const asLines = "application/x-ndjson"

type itemList struct {
	Items []api.CatalogueItem `json:"items" minItems:"1" doc:"items; the media type application/x-ndjson has one a line instead"`
}

// itemMemory is roughly how much memory items take for each byte of their body.
const itemMemory = 8

// changeItems returns the handler of a change of items.
func (s *Server) changeItems(change func(e *engine.Engine, ctx context.Context, name string, items []api.CatalogueItem, now int64) (*api.ItemsChanged, error)) func(*call) error {
	return func(c *call) error {
		mediaType, err := c.mediaType(asJSON, asLines)
		if err != nil {
			return err
		}
		if _, err := s.engine.Config(c.placement); err != nil { // before reading the body
			return err
		}
		body, err := c.body()
		if err != nil {
			return err
		}
		if err := c.memory.Take(c.ctx, budget.Work, itemMemory*int64(len(body))); err != nil {
			return err
		}
		items, err := readItems(mediaType, body)
		if err != nil {
			return err
		}
		return c.reply(change(s.engine, c.ctx, c.placement, items, c.now))
	}
}

func readItems(mediaType string, body []byte) ([]api.CatalogueItem, error) {
	var list itemList
	if mediaType == asJSON {
		if err := json.Unmarshal(body, &list, json.RejectUnknownMembers(true)); err != nil {
			return nil, api.InText(body, api.JSONError(err))
		}
	} else {
		in := jsontext.NewDecoder(bytes.NewReader(body))
		for i := 0; ; i++ {
			var item api.CatalogueItem
			err := json.UnmarshalDecode(in, &item, json.RejectUnknownMembers(true))
			if errors.Is(err, io.EOF) && in.PeekKind() == 0 {
				break
			}
			if err != nil {
				var field *api.FieldError
				if err = api.JSONError(err); errors.As(err, &field) {
					err = api.Fieldf(fmt.Sprintf("/items/%d%s", i, field.Field), "%s", field.Message)
				}
				return nil, err
			}
			list.Items = append(list.Items, item)
		}
	}
	if len(list.Items) == 0 {
		return nil, api.Fieldf("/items", "must have at least one item")
	}
	return list.Items, nil
}

func (s *Server) deleteItems(c *call) error {
	var ids api.ItemIDs
	if err := c.read(&ids); err != nil {
		return err
	}
	if len(ids.IDs) == 0 {
		return api.Fieldf("/ids", "must have at least one id")
	}
	return c.reply(s.engine.DeleteItems(c.ctx, c.placement, ids.IDs, c.now))
}

func (s *Server) deleteItem(c *call) error {
	id := c.PathValue("item")
	answer, err := s.engine.DeleteItems(c.ctx, c.placement, []string{id}, c.now)
	switch {
	case err != nil:
		return err
	case answer.Changed == 0:
		return fmt.Errorf("placement %q, item %q: %w", c.placement, api.Abbreviate(id, 40), engine.ErrNotFound)
	}
	return c.nothing()
}

func (s *Server) listItems(c *call) error {
	from, limit, err := c.part(100, engine.MaxPage)
	if err != nil {
		return err
	}
	return c.reply(s.engine.Items(c.placement, from, limit))
}

// part returns the part of a list that the query asks for: at most limit entries from a place on.
func (c *call) part(byDefault, most int) (from, limit int, err error) {
	if from, err = c.whole("from", 0, 0, 1<<30); err == nil {
		limit, err = c.whole("limit", byDefault, 1, most)
	}
	return from, limit, err
}

// whole returns a whole number from the query.
func (c *call) whole(name string, byDefault, minV, maxV int) (int, error) {
	text := c.URL.Query().Get(name)
	if text == "" {
		return byDefault, nil
	}
	v, err := strconv.Atoi(text)
	if err != nil {
		return 0, api.Fieldf("/"+name, "%q: must be a whole number from %d to %d", api.Abbreviate(text, 40), minV, maxV)
	}
	return v, api.InRange("/"+name, v, minV, maxV)
}

// maxShelf is the max number of items of a page of the shelf.
const maxShelf = 200

func (s *Server) shelf(c *call) (err error) {
	query := c.URL.Query()
	q := engine.ShelfQuery{Contains: strings.ToLower(query.Get("contains")), Only: query.Get("only"),
		Sort: query.Get("sort"), IDs: query["id"]}
	if slices.Contains(q.IDs, "") {
		return api.Fieldf("/id", "must not be empty")
	}
	if q.Only != "" {
		if err := api.OneOf("/only", q.Only, "available", "unavailable", "shown", "unseen", "pinned",
			"excluded"); err != nil {
			return err
		}
	}
	if q.Sort != "" {
		if err := api.OneOf("/sort", q.Sort, "earned", "shown"); err != nil {
			return err
		}
	}
	if err := api.CheckLength("/id", len(q.IDs), maxShelf); err != nil {
		return err
	}
	if q.From, q.Limit, err = c.part(100, maxShelf); err != nil {
		return err
	}
	leave, err := c.turn()
	if err != nil {
		return err
	}
	defer leave()
	return c.reply(s.engine.Shelf(c.ctx, c.placement, q, c.now))
}
