package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// requestDecoder decodes a request strictly, value by value. Every error names the line, the item and the
// key.
type requestDecoder struct {
	*request
	text []byte
	in   *jsontext.Decoder
}

// fault is an error at an offset of the text. Its item is found later.
type fault struct {
	offset  int64
	message string
}

func (f *fault) Error() string { return f.message }

// decodeJSON reads a request.
func decodeJSON(name string, text []byte) (*request, error) {
	d := &requestDecoder{request: newRequest(name), text: text, in: jsontext.NewDecoder(bytes.NewBuffer(text))}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, d.refuse("empty: want a JSON object with items")
	}
	err := d.object("the request", d.member)
	if err == nil {
		if _, trailing := d.in.ReadToken(); trailing != io.EOF {
			err = d.faultf(0, "text after the request")
		}
	}
	var f *fault
	if errors.As(err, &f) {
		return nil, &refusal{fmt.Sprintf("%s:%d: %s", name, d.line(f.offset), f.message)}
	}
	if err != nil {
		return nil, err
	}
	if d.ids == nil {
		return nil, d.refuse("items is missing")
	}
	return d.request, nil
}

var requestKeys = []string{"items", "min_size", "max_size", "at_least", "at_most", "brand_at_most", "include", "exclude", "capacity", "min_revenue"}

// member reads the value of a key of the request.
func (d *requestDecoder) member(key []byte) error {
	switch key := string(key); key {
	case "items":
		d.ids = []string{}
		return d.array(key, d.item)
	case "min_size":
		return d.whole(key, &d.minSize)
	case "max_size":
		return d.whole(key, &d.maxSize)
	case "at_least":
		return d.object(key, func(group []byte) error { return d.bound(d.atLeast, string(group)) })
	case "at_most":
		return d.object(key, func(group []byte) error { return d.bound(d.atMost, string(group)) })
	case "brand_at_most":
		return d.object(key, func(brand []byte) error { return d.bound(d.brandAtMost, string(brand)) })
	case "include":
		return d.array(key, func() error { return d.appendID(key, &d.include) })
	case "exclude":
		return d.array(key, func() error { return d.appendID(key, &d.exclude) })
	case "capacity":
		d.capacity = new(int)
		return d.whole(key, d.capacity)
	case "min_revenue":
		d.minRevenue = new(float64)
		return d.number(key, func(v float64) (legal string) {
			*d.minRevenue = v
			return legalFloor(v)
		})
	default:
		return d.unknown(key, requestKeys)
	}
}

// item reads an item.
func (d *requestDecoder) item() error {
	start := d.in.InputOffset()
	i := noItem
	err := d.object("", func(key []byte) error { return d.itemMember(&i, key) })
	if err == nil {
		if key := i.missing(); key != "" {
			err = d.faultf(0, "%s is missing", key)
		}
	}
	var f *fault
	if errors.As(err, &f) {
		f.message = d.itemAt(start) + ": " + f.message
		return f
	}
	if err == nil {
		d.add(&i)
	}
	return err
}

func (d *requestDecoder) itemMember(i *item, key []byte) error {
	switch key := string(key); key {
	case "id":
		return d.str("id", func(s []byte) string { return i.setID(string(s)) })
	case "utility":
		return d.number("utility", i.setUtility)
	case "revenue":
		return d.number("revenue", i.setRevenue)
	case "group":
		return d.str("group", func(s []byte) string { i.group = d.intern(s); return "" })
	case "brand":
		return d.str("brand", func(s []byte) string { i.brand = string(s); return "" })
	case "weight":
		var v int
		if err := d.whole(key, &v); err != nil {
			return err
		}
		if legal := i.setWeight(v); legal != "" {
			return d.faultf(0, "%s = %d: %s", key, v, legal)
		}
		return nil
	default:
		return d.unknown(key, itemKeys)
	}
}

// itemAt names the item whose object begins after an offset.
func (d *requestDecoder) itemAt(offset int64) string {
	text := bytes.TrimLeft(d.text[offset:], ", \t\r\n")
	in := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))
	in.ReadToken()
	for in.PeekKind() == '"' {
		name, err := in.ReadToken()
		if err != nil {
			break
		}
		isID := name.String() == "id"
		value, err := in.ReadValue()
		if err != nil {
			break
		}
		if id := unquote(value); isID && value.Kind() == '"' && len(id) > 0 {
			return fmt.Sprintf("item %q", id)
		}
	}
	return fmt.Sprintf("item %d", len(d.ids)+1)
}

// bound reads the number of a group or a brand.
func (d *requestDecoder) bound(bounds map[string]int, name string) error {
	var n int
	err := d.whole(name, &n)
	bounds[name] = n
	return err
}

// appendID reads an id of a list.
func (d *requestDecoder) appendID(key string, ids *[]string) error {
	return d.str(key, func(s []byte) string { *ids = append(*ids, string(s)); return "" })
}

// object reads an object, and calls member for each key to read its value.
func (d *requestDecoder) object(key string, member func(key []byte) error) error {
	if err := d.begin(key, '{', "an object"); err != nil {
		return err
	}
	for d.in.PeekKind() != '}' {
		name, err := d.value()
		if err != nil {
			return err
		}
		if err := member(unquote(name)); err != nil {
			return err
		}
	}
	return d.token()
}

// array reads an array, and calls element to read each of its values.
func (d *requestDecoder) array(key string, element func() error) error {
	if err := d.begin(key, '[', "an array"); err != nil {
		return err
	}
	for d.in.PeekKind() != ']' {
		if err := element(); err != nil {
			return err
		}
	}
	return d.token()
}

// begin reads the token that an object or an array begins with.
func (d *requestDecoder) begin(key string, kind jsontext.Kind, want string) error {
	if d.in.PeekKind() == kind {
		return d.token()
	}
	v, err := d.value()
	if err != nil {
		return err
	}
	return d.wrong(key, v, want)
}

// str reads a string; set stores it, or returns what is legal.
func (d *requestDecoder) str(key string, set func(s []byte) (legal string)) error {
	v, err := d.value()
	if err != nil {
		return err
	}
	if v.Kind() != '"' {
		return d.wrong(key, v, "a string")
	}
	if legal := set(unquote(v)); legal != "" {
		return d.illegal(key, v, legal)
	}
	return nil
}

// number reads a number; set stores it, or returns what is legal. A number too large for a float64 is
// infinite.
func (d *requestDecoder) number(key string, set func(v float64) (legal string)) error {
	raw, err := d.value()
	if err != nil {
		return err
	}
	if raw.Kind() != '0' {
		return d.wrong(key, raw, "a number")
	}
	v, _ := strconv.ParseFloat(string(raw), 64)
	if legal := set(v); legal != "" {
		return d.illegal(key, raw, legal)
	}
	return nil
}

// whole reads an integer.
func (d *requestDecoder) whole(key string, dst *int) error {
	raw, err := d.value()
	if err != nil {
		return err
	}
	v, err := strconv.Atoi(string(raw))
	if err != nil {
		return d.wrong(key, raw, "a whole number")
	}
	*dst = v
	return nil
}

func (d *requestDecoder) value() (jsontext.Value, error) {
	v, err := d.in.ReadValue()
	if err != nil {
		return nil, d.syntax(err)
	}
	return v, nil
}

func (d *requestDecoder) token() error {
	if _, err := d.in.ReadToken(); err != nil {
		return d.syntax(err)
	}
	return nil
}

// unquote returns the value of a string literal.
func unquote(v jsontext.Value) []byte {
	if len(v) >= 2 && v[0] == '"' && bytes.IndexByte(v, '\\') < 0 {
		return v[1 : len(v)-1]
	}
	s, _ := jsontext.AppendUnquote(nil, v)
	return s
}

// faultf makes a fault that begins the given number of bytes before the decoder's position.
func (d *requestDecoder) faultf(before int, format string, args ...any) error {
	return &fault{d.in.InputOffset() - int64(before), fmt.Sprintf(format, args...)}
}

func (d *requestDecoder) unknown(key string, legal []string) error {
	return d.faultf(0, "unknown key %q: must be one of %s", key, strings.Join(legal, ", "))
}

func (d *requestDecoder) wrong(key string, v jsontext.Value, want string) error {
	return d.illegal(key, v, "want "+want)
}

func (d *requestDecoder) illegal(key string, v jsontext.Value, legal string) error {
	shown := shortened(string(v))
	switch v.Kind() {
	case '{':
		shown = "an object"
	case '[':
		shown = "an array"
	}
	if key != "" {
		shown = key + " = " + shown
	}
	return d.faultf(len(v), "%s: %s", shown, legal)
}

// syntax turns an error of the JSON package into a fault.
func (d *requestDecoder) syntax(err error) error {
	var syntactic *jsontext.SyntacticError
	if !errors.As(err, &syntactic) { // the input is in memory: reading cannot fail
		return d.faultf(0, "the request ends early")
	}
	f := &fault{offset: syntactic.ByteOffset}
	key := syntactic.JSONPointer.LastToken()
	switch {
	case errors.Is(syntactic.Err, io.ErrUnexpectedEOF):
		f.message = "the request ends early"
	case errors.Is(syntactic.Err, jsontext.ErrDuplicateName):
		f.message = fmt.Sprintf("duplicate key %q", key)
	default:
		f.message = syntactic.Err.Error()
		if _, err := strconv.Atoi(key); err != nil && key != "" {
			f.message = key + ": " + f.message
		}
	}
	return f
}

// line returns the line of an offset.
func (d *requestDecoder) line(offset int64) int {
	return 1 + bytes.Count(d.text[:min(offset, int64(len(d.text)))], []byte("\n"))
}
