// Package study writes and reads the results that the paper's figures need besides played experiments: a record,
// run.json, and tables as CSV.
package study

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"vitrine/internal/replace"
)

// RecordFile is the name of the record.
const RecordFile = "run.json"

// File is a file in a study, with its content for writing and a function that takes the content for reading.
type File struct {
	Name    string
	Content []byte
	Decode  func([]byte) error
}

// Write makes dir, writes each of the files atomically, and then writes the record.
func Write(dir string, record any, files ...File) error {
	text, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range append(files, File{Name: RecordFile, Content: append(text, '\n')}) {
		if err := replace.File(filepath.Join(dir, f.Name), f.Content); err != nil {
			return err
		}
	}
	return nil
}

// Read reads files in dir. Errors name the file, and the command that creates it.
func Read(dir, experiment string, files ...File) error {
	for _, f := range files {
		path := filepath.Join(dir, f.Name)
		text, err := os.ReadFile(path)
		if err == nil {
			err = f.Decode(text)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return err
		case err != nil:
			return fmt.Errorf("%s: %w; run vitrine reproduce %s again", path, err, experiment)
		}
	}
	return nil
}

// column is a table's column: a field of its rows, or an element of an array field.
type column struct {
	name  string
	index []int // index of the field
	item  int   // index in the array; -1 unless it is an array
}

// columns returns the columns for a struct type of rows. They are named by the fields' JSON names; array elements add a
// number, from 1.
func columns(t reflect.Type) (all []column) {
	for _, f := range reflect.VisibleFields(t) {
		name := f.Tag.Get("json")
		switch {
		case f.Anonymous:
		case f.Type.Kind() == reflect.Array:
			for k := range f.Type.Len() {
				all = append(all, column{name + strconv.Itoa(k+1), f.Index, k})
			}
		default:
			all = append(all, column{name, f.Index, -1})
		}
	}
	return all
}

// of returns a row's value in the column.
func (c column) of(row reflect.Value) reflect.Value {
	v := row.FieldByIndex(c.index)
	if c.item >= 0 {
		v = v.Index(c.item)
	}
	return v
}

func names(columns []column) (list []string) {
	for _, c := range columns {
		list = append(list, c.name)
	}
	return list
}

// Encode returns rows, which are structs of numbers and texts, as CSV with nine significant digits.
func Encode[T any](rows []T) []byte {
	columns := columns(reflect.TypeFor[T]())
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	line := names(columns)
	_ = w.Write(line) // a buffer accepts everything
	for _, row := range rows {
		for k, c := range columns {
			v := c.of(reflect.ValueOf(row))
			if line[k] = fmt.Sprint(v.Interface()); v.CanFloat() {
				line[k] = strconv.FormatFloat(v.Float(), 'g', 9, 64)
			}
		}
		_ = w.Write(line)
	}
	w.Flush()
	return out.Bytes()
}

// MaxValue is the largest number in a picture that cannot overflow.
const MaxValue = 1e100

// Decode inverts [Encode]. Errors name the line.
func Decode[T any](text []byte) (rows []T, err error) {
	if len(text) == 0 || text[len(text)-1] != '\n' {
		return nil, errors.New("truncated: the last line is not complete")
	}
	columns := columns(reflect.TypeFor[T]())
	r := csv.NewReader(bytes.NewReader(text))
	r.FieldsPerRecord = len(columns)
	header, err := r.Read()
	if want := names(columns); err == nil && !slices.Equal(header, want) || errors.Is(err, csv.ErrFieldCount) {
		return nil, fmt.Errorf("the header is %q, want %q", strings.Join(header, ","), strings.Join(want, ","))
	}
	for {
		fields, err := r.Read()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		var row T
		for k, c := range columns {
			v, what := c.of(reflect.ValueOf(&row).Elem()), ""
			switch v.Kind() {
			case reflect.Float64:
				number, err := strconv.ParseFloat(fields[k], 64)
				if v.SetFloat(number); err != nil || !(math.Abs(number) <= MaxValue) {
					what = "a finite number"
				}
			case reflect.Int:
				number, err := strconv.Atoi(fields[k])
				if v.SetInt(int64(number)); err != nil || number < 0 {
					what = "a whole number from 0"
				}
			case reflect.String:
				v.SetString(fields[k])
			default:
				panic(fmt.Sprintf("study: column %s is a %v", c.name, v.Type()))
			}
			if what != "" {
				line, _ := r.FieldPos(k)
				return nil, fmt.Errorf("line %d: %s %q is not %s", line, c.name, fields[k], what)
			}
		}
		rows = append(rows, row)
	}
}
