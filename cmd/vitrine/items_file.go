package main

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/parquet-go/parquet-go"

	"vitrine/service/api"
)

// readItemFile calls visit with each item of a file: Parquet by its first bytes, JSON Lines if it begins with {, and
// otherwise CSV. Lines of JSON without a mapping are items as the service has them. The item is valid until visit
// returns. Errors name the row.
func readItemFile(path string, m *mapping, visit func(*api.CatalogueItem) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	magic := make([]byte, 4)
	n, err := io.ReadFull(f, magic)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && err != io.EOF {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	switch {
	case string(magic) == "PAR1":
		err = readParquetItems(f, m, visit)
	case n > 0 && magic[0] == '{' && !m.given:
		err = readItemLines(f, visit)
	case n > 0 && magic[0] == '{':
		err = readRowLines(f, m, visit)
	default:
		err = readCSVItems(f, m, visit)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func rowError(number int, err error) error { return fmt.Errorf("row %d: %w", number, err) }

func readItemLines(f io.Reader, visit func(*api.CatalogueItem) error) error {
	in := jsontext.NewDecoder(bufio.NewReaderSize(f, 1<<16))
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

func readRowLines(f io.Reader, m *mapping, visit func(*api.CatalogueItem) error) error {
	in := jsontext.NewDecoder(bufio.NewReaderSize(f, 1<<16))
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

func readCSVItems(f io.Reader, m *mapping, visit func(*api.CatalogueItem) error) error {
	in := csv.NewReader(bufio.NewReaderSize(f, 1<<16))
	in.ReuseRecord = true
	first, err := in.Read()
	if err == io.EOF {
		return errors.New("is empty: the first line names the columns")
	}
	if err != nil {
		return err
	}
	names := slices.Clone(first)
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("column %q is a duplicate", name)
		}
	}
	if m, err = m.infer(names); err != nil {
		return err
	}
	for number := 1; ; number++ {
		record, err := in.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		cells := row{}
		for i, text := range record {
			if text != "" {
				cells[names[i]] = text
			}
		}
		if err := visitRow(m, cells, visit); err != nil {
			return rowError(number, err)
		}
	}
}

func readParquetItems(f *os.File, m *mapping, visit func(*api.CatalogueItem) error) (err error) {
	defer func() {
		if v := recover(); v != nil { // the reader panics on damaged files
			err = fmt.Errorf("the file is damaged: %v", v)
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	file, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		return err
	}
	var names []string
	for _, column := range file.Schema().Columns() {
		if len(column) != 1 {
			return fmt.Errorf("column %q is nested: a table of items has one value a cell", column[0])
		}
		names = append(names, column[0])
	}
	if m, err = m.infer(names); err != nil {
		return err
	}
	number := 0
	for _, group := range file.RowGroups() {
		rows := group.Rows()
		buffer := make([]parquet.Row, 256)
		for err == nil {
			var n int
			n, err = rows.ReadRows(buffer)
			for _, r := range buffer[:n] {
				number++
				if failed := visitRow(m, cellsOf(r, names), visit); failed != nil {
					rows.Close()
					return rowError(number, failed)
				}
			}
		}
		rows.Close()
		if err != io.EOF {
			return err
		}
		err = nil
	}
	return nil
}

func cellsOf(r parquet.Row, names []string) row {
	cells := row{}
	for _, v := range r {
		name := names[v.Column()]
		switch {
		case v.IsNull():
		case v.Kind() == parquet.Boolean:
			cells[name] = v.Boolean()
		case v.Kind() == parquet.Int32:
			cells[name] = float64(v.Int32())
		case v.Kind() == parquet.Int64:
			cells[name] = float64(v.Int64())
		case v.Kind() == parquet.Float:
			cells[name] = float64(v.Float())
		case v.Kind() == parquet.Double:
			cells[name] = v.Double()
		default:
			cells[name] = string(v.ByteArray())
		}
	}
	return cells
}
