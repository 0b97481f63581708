package main

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// itemKeys are the keys of an item and the columns of a table of items.
var itemKeys = []string{"id", "utility", "revenue", "group", "brand", "weight"}

// decodeCSV reads a table of items with a header. With a model the utilities are its own: other
// columns are its variables, and ids may be missing.
func decodeCSV(name string, text []byte, model bool) (*request, error) {
	r := newRequest(name)
	in := csv.NewReader(bytes.NewReader(text))
	in.ReuseRecord = true
	header, err := in.Read()
	if err == io.EOF {
		return nil, r.refuse("empty: want a header, such as id,utility,revenue,group,weight, and an item a line")
	}
	if err != nil {
		return nil, r.refuseCSV(err)
	}
	columns := slices.Clone(header)
	for at, column := range columns {
		if model && column == "utility" {
			return nil, r.refuse("column \"utility\": the model says what utilities are: leave it out")
		}
		if !model && !slices.Contains(itemKeys, column) {
			return nil, r.refuse("unknown column %q: must be one of %s", column, strings.Join(itemKeys, ", "))
		}
		if slices.Index(columns, column) < at {
			return nil, r.refuse("duplicate column %q", column)
		}
	}
	for _, key := range itemKeys[:2] {
		if !model && !slices.Contains(columns, key) {
			return nil, r.refuse("column %q is missing", key)
		}
	}
	r.numbered = !slices.Contains(columns, "id")
	for {
		record, err := in.Read()
		if err == io.EOF {
			return r, nil
		}
		if err != nil {
			return nil, r.refuseCSV(err)
		}
		i := noItem
		i.complete = model
		if r.numbered {
			i.id = strconv.Itoa(len(r.ids) + 1)
		}
		for at, cell := range record {
			if !slices.Contains(itemKeys, columns[at]) {
				continue
			}
			if legal := r.setCell(&i, columns[at], cell); legal != "" {
				line, _ := in.FieldPos(at)
				return nil, r.refuseAt(line, csvItem(columns, record, len(r.ids)), fmt.Sprintf("%s = %s: %s", columns[at], shortened(cell), legal))
			}
		}
		if key := i.missing(); key != "" {
			line, _ := in.FieldPos(0)
			return nil, r.refuseAt(line, csvItem(columns, record, len(r.ids)), key+" is missing")
		}
		r.add(&i)
	}
}

// setCell stores a cell, or returns what is legal. An empty cell is a missing value.
func (r *request) setCell(i *item, column, cell string) (legal string) {
	if cell == "" {
		return ""
	}
	switch column {
	case "id", "group", "brand":
		if !utf8.ValidString(cell) {
			return "want text in UTF-8"
		}
	default:
		if strings.ContainsAny(cell, "_xX") { // Go syntax that no table means
			return "want a number"
		}
	}
	switch column {
	case "id":
		return i.setID(strings.Clone(cell))
	case "group":
		i.group = r.intern([]byte(cell))
		return ""
	case "brand":
		i.brand = strings.Clone(cell)
		return ""
	case "weight":
		v, err := strconv.Atoi(cell)
		if err != nil {
			return "want a whole number"
		}
		return i.setWeight(v)
	}
	v, err := strconv.ParseFloat(cell, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange):
		return "want a number"
	case column == "utility":
		return i.setUtility(v)
	default:
		return i.setRevenue(v)
	}
}

// csvItem names the item of a record.
func csvItem(columns, record []string, number int) string {
	if at := slices.Index(columns, "id"); at >= 0 && record[at] != "" && utf8.ValidString(record[at]) {
		return fmt.Sprintf("item %q", record[at])
	}
	return fmt.Sprintf("item %d", number+1)
}

// refuseAt returns an error at a line.
func (r *request) refuseAt(line int, what, message string) error {
	return &refusal{fmt.Sprintf("%s:%d: %s: %s", r.name, line, what, message)}
}

func (r *request) refuseCSV(err error) error {
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return &refusal{fmt.Sprintf("%s:%d: %v", r.name, parse.Line, parse.Err)}
	}
	return r.refuse("%v", err)
}
