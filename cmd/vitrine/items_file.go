package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"vitrine/internal/decompress"
	"vitrine/internal/table"
	"vitrine/service/api"
)

// readItemFile calls visit with each item of a file, plain or compressed: JSON Lines if the text begins with {, and otherwise a
// table. Without a mapping, lines of JSON are items as the service writes them. The item is valid until visit returns. Errors
// name the row.
func readItemFile(path string, m *mapping, visit func(*api.CatalogueItem) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	plain, _, err := decompress.Reader(bufio.NewReaderSize(f, 1<<16))
	if err != nil {
		return fmt.Errorf("%s: %w", path, table.Damaged(err))
	}
	r := bufio.NewReaderSize(plain, 1<<16)
	start, _ := r.Peek(1 << 10) // an error is that of the next read, too
	switch isJSON := bytes.HasPrefix(bytes.TrimLeft(start, " \t\r\n"), []byte("{")); {
	case isJSON && m.given:
		err = readRowLines(r, m, visit)
	case isJSON:
		err = readItemLines(r, visit)
	default:
		if _, err = f.Seek(0, io.SeekStart); err == nil {
			err = readTableItems(f, m, visit)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func rowError(number int, err error) error { return fmt.Errorf("row %d: %w", number, err) }

func readItemLines(r io.Reader, visit func(*api.CatalogueItem) error) error {
	in := jsontext.NewDecoder(r)
	for number := 1; in.PeekKind() != 0 || !isEnd(in); number++ {
		item := new(api.CatalogueItem)
		if err := json.UnmarshalDecode(in, item, json.RejectUnknownMembers(true)); err != nil {
			return rowError(number, api.JSONError(err))
		}
		if item.ID == "" {
			return rowError(number, errors.New("has no id"))
		}
		if err := visit(item); err != nil {
			return rowError(number, err)
		}
	}
	return nil
}

// isEnd reports whether the text ends, and not with an error.
func isEnd(in *jsontext.Decoder) bool {
	_, err := in.ReadToken()
	return err == io.EOF
}

func readRowLines(r io.Reader, m *mapping, visit func(*api.CatalogueItem) error) error {
	in := jsontext.NewDecoder(r)
	for number := 1; in.PeekKind() != 0 || !isEnd(in); number++ {
		var cells map[string]any
		if err := json.UnmarshalDecode(in, &cells); err != nil {
			return rowError(number, api.JSONError(err))
		}
		maps.DeleteFunc(cells, func(_ string, v any) bool { return v == nil })
		for name, v := range cells { // objects and lists are texts of JSON
			switch v.(type) {
			case map[string]any, []any:
				text, err := json.Marshal(v, json.Deterministic(true))
				if err != nil {
					return rowError(number, err)
				}
				cells[name] = string(text)
			}
		}
		if err := visitRow(m, cells, visit); err != nil {
			return rowError(number, err)
		}
	}
	return nil
}

func visitRow(m *mapping, r row, visit func(*api.CatalogueItem) error) error {
	item, err := m.item(r)
	if err != nil {
		return err
	}
	return visit(item)
}

func readTableItems(f *os.File, m *mapping, visit func(*api.CatalogueItem) error) error {
	t, err := table.Open(f, table.Options{Texts: true})
	if err != nil {
		return err
	}
	names := t.Header()
	if nested := t.Nested(); nested != nil && !m.given {
		return fmt.Errorf("column %s holds lists or groups, which are no values of an item: name the columns to use with --mapping", strings.Join(nested, ", "))
	}
	if m, err = m.infer(names); err != nil {
		return err
	}
	all := make([]int, len(names))
	for j := range all {
		all[j] = j
	}
	for {
		b, err := t.Next(all)
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		for i := range b.N {
			cells := row{}
			for j, name := range names {
				switch c := &b.Columns[j]; {
				case c.Missing(i):
				case c.Text == nil:
					cells[name] = c.Number[i]
				case c.Bare:
					cells[name] = guess(c.Text[i])
				default:
					cells[name] = c.Text[i]
				}
			}
			if err := visitRow(m, cells, visit); err != nil {
				return rowError(b.First+i+1, err)
			}
		}
	}
}
