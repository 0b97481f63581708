package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"vitrine/internal/strict"
	"vitrine/internal/table"
	"vitrine/service/api"
)

// mapping says which columns of a table are what of an item.
type mapping struct {
	ID         string            `toml:"id"`
	Revenue    string            `toml:"revenue"`
	Space      string            `toml:"space"`
	Available  string            `toml:"available"`
	ValidFrom  string            `toml:"valid_from"`
	ValidUntil string            `toml:"valid_until"`
	Groups     []string          `toml:"groups"`
	Payload    []string          `toml:"payload"`
	Features   map[string]string `toml:"features"`
	Attributes map[string]string `toml:"attributes"`

	kinds map[string]string // of the features of items, by name
	given bool              // whether a file has said so
}

// readMapping reads a mapping for the features of a placement. Without a file it is filled by the names of
// columns: see infer.
func readMapping(path string, features []api.Feature) (*mapping, error) {
	m := &mapping{ID: "id", kinds: map[string]string{}, given: path != ""}
	for _, f := range features {
		if f.Kind != "cross" && f.From != "user" {
			m.kinds[f.Name] = f.Kind
		}
	}
	if path == "" {
		return m, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := strict.Decode(text, m); err != nil {
		switch at := new(strict.Error); {
		case errors.As(err, &at) && at.Key != "":
			return nil, fmt.Errorf("%s: %s: unknown key: a mapping has id, revenue, space, available, valid_from, valid_until, groups, payload, [features] and [attributes]", path, at.Key)
		case errors.As(err, &at):
			return nil, fmt.Errorf("%s, line %d: toml: %s", path, at.Line, at.Message)
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Features)) {
		if m.kinds[name] == "" {
			return nil, fmt.Errorf("%s: features.%s: the placement has no feature of items of this name: it has %s", path, name, strings.Join(slices.Sorted(maps.Keys(m.kinds)), ", "))
		}
	}
	return m, nil
}

// infer returns the mapping for the columns of a table. Without a file a column is what its name says: a field, a feature,
// or else an attribute. The error names a column that the table does not have.
func (m *mapping) infer(columns []string) (*mapping, error) {
	if m.given {
		for _, name := range m.columns() {
			if !slices.Contains(columns, name) {
				return nil, fmt.Errorf("there is no column %q: there are %s", name, strings.Join(columns, ", "))
			}
		}
		return m, nil
	}
	if !slices.Contains(columns, "id") {
		return nil, fmt.Errorf("there is no column \"id\": there are %s: name the column with --mapping", strings.Join(columns, ", "))
	}
	n := *m
	n.Features, n.Attributes = map[string]string{}, map[string]string{}
	for _, name := range columns {
		to := map[string]*string{"revenue": &n.Revenue, "space": &n.Space, "available": &n.Available, "valid_from": &n.ValidFrom, "valid_until": &n.ValidUntil}[name]
		switch {
		case name == "id":
		case to != nil:
			*to = name
		case name == "groups":
			n.Groups = []string{name}
		case name == "payload":
			n.Payload = []string{name}
		case n.kinds[name] != "":
			n.Features[name] = name
		default:
			n.Attributes[name] = name
		}
	}
	return &n, nil
}

// columns returns the columns that the mapping names.
func (m *mapping) columns() (names []string) {
	for _, name := range []string{m.ID, m.Revenue, m.Space, m.Available, m.ValidFrom, m.ValidUntil} {
		if name != "" {
			names = append(names, name)
		}
	}
	names = slices.Concat(names, m.Groups, m.Payload)
	for _, of := range []map[string]string{m.Features, m.Attributes} {
		for _, key := range slices.Sorted(maps.Keys(of)) {
			names = append(names, of[key])
		}
	}
	return names
}

// row is a row of a table: float64, bool or string by column. Empty cells are not there.
type row map[string]any

// item returns the item of a row.
func (m *mapping) item(r row) (*api.CatalogueItem, error) {
	item := new(api.CatalogueItem)
	if item.ID = textOf(r[m.ID]); item.ID == "" {
		return nil, fmt.Errorf("column %s: has no id", m.ID)
	}
	for _, f := range []struct {
		column string
		to     **float64
	}{{m.Revenue, &item.Revenue}, {m.Space, &item.Space}} {
		if cell, ok := r[f.column]; ok {
			v, ok := numberOf(cell)
			if !ok {
				return nil, fmt.Errorf("column %s: %q is not a number", f.column, textOf(cell))
			}
			*f.to = &v
		}
	}
	if cell, ok := r[m.Available]; ok {
		v, ok := truthOf(cell)
		if !ok {
			return nil, fmt.Errorf("column %s: %q is neither true nor false", m.Available, textOf(cell))
		}
		item.Available = &v
	}
	for _, f := range []struct {
		column string
		to     **time.Time
	}{{m.ValidFrom, &item.ValidFrom}, {m.ValidUntil, &item.ValidUntil}} {
		if cell, ok := r[f.column]; ok {
			v, err := time.Parse(time.RFC3339, textOf(cell))
			if err != nil {
				return nil, fmt.Errorf("column %s: %q is not a time such as 2026-11-22T10:00:00Z", f.column, textOf(cell))
			}
			*f.to = &v
		}
	}
	for _, column := range m.Groups {
		for name := range strings.SplitSeq(textOf(r[column]), "|") {
			if name = strings.TrimSpace(name); name != "" && !slices.Contains(item.Groups, name) {
				item.Groups = append(item.Groups, name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Features)) {
		cell, ok := r[m.Features[name]]
		if !ok {
			continue
		}
		switch m.kinds[name] {
		case "number":
			v, ok := numberOf(cell)
			if !ok {
				return nil, fmt.Errorf("column %s: %q is not a number, and feature %s is", m.Features[name], textOf(cell), name)
			}
			item.Features = append(item.Features, api.Number(name, v))
		case "object":
			item.Features = append(item.Features, api.Object(name, textOf(cell)))
		default:
			item.Features = append(item.Features, api.Text(name, textOf(cell)))
		}
	}
	for name, column := range m.Attributes {
		if cell, ok := r[column]; ok {
			if item.Attributes == nil {
				item.Attributes = map[string]any{}
			}
			item.Attributes[name] = guess(cell)
		}
	}
	if len(m.Payload) > 0 {
		payload := map[string]any{}
		for _, column := range m.Payload {
			if cell, ok := r[column]; ok {
				payload[column] = cell
			}
		}
		text, err := json.Marshal(payload, json.Deterministic(true))
		if err != nil {
			return nil, err
		}
		item.Payload = text
	}
	return item, nil
}

// guess returns the number or the truth that a text is.
func guess(cell any) any {
	text, ok := cell.(string)
	if !ok {
		return cell
	}
	if v, ok := numberOf(text); ok && !table.IsCode(text) {
		return v
	}
	if text == "true" || text == "false" {
		return text == "true"
	}
	return text
}

func textOf(cell any) string {
	switch v := cell.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return table.FormatNumber(v)
	}
	return fmt.Sprint(cell)
}

func numberOf(cell any) (float64, bool) {
	switch v := cell.(type) {
	case float64:
		return v, true
	case string:
		f, err := table.ParseNumber(strings.TrimSpace(v))
		return f, err == nil && f-f == 0 // finite
	}
	return 0, false
}

func truthOf(cell any) (v, ok bool) {
	switch c := cell.(type) {
	case bool:
		return c, true
	case float64:
		return c == 1, c == 0 || c == 1
	case string:
		switch strings.ToLower(strings.TrimSpace(c)) {
		case "true", "1", "yes":
			return true, true
		case "false", "0", "no":
			return false, true
		}
	}
	return false, false
}
