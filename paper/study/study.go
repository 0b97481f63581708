// Package study writes and reads the results that the paper's figures need besides played experiments: a record,
// run.json, which is read again, and tables as CSV for other programs.
package study

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"

	"vitrine/internal/replace"
)

// RecordFile is the name of the record.
const RecordFile = "run.json"

// File is a file in a study.
type File struct {
	Name    string
	Content []byte
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
	for _, f := range append(files, File{RecordFile, append(text, '\n')}) {
		if err := replace.File(filepath.Join(dir, f.Name), f.Content); err != nil {
			return err
		}
	}
	return nil
}

// Read reads the record in dir and calls check. Errors name the file and the command that creates it.
func Read(dir, experiment string, record any, check func() error) error {
	path := filepath.Join(dir, RecordFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil {
		err = json.Unmarshal(text, record)
	}
	if err == nil {
		err = check()
	}
	if err != nil {
		return fmt.Errorf("%s: %w; run vitrine reproduce %s again", path, err, experiment)
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

// Encode returns rows, which are structs of numbers and texts, as CSV with nine significant digits.
func Encode[T any](rows []T) []byte {
	columns := columns(reflect.TypeFor[T]())
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	var line []string
	for _, c := range columns {
		line = append(line, c.name)
	}
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

// Drawable returns an error if a number is too large for a picture.
func Drawable(numbers ...float64) error {
	for _, v := range numbers {
		if !(math.Abs(v) <= 1e100) {
			return fmt.Errorf("%g is too large to be drawn", v)
		}
	}
	return nil
}
