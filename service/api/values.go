package api

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Values are values of features by name, in any order. In JSON they are an object, where null is a
// missing value.
type Values []Value

// Value is the value of the feature Name. [Number], [Text] and [Object] make values.
type Value struct {
	Name   string
	Kind   ValueKind
	Number float64 // of the kind IsNumber
	Text   string  // of the kind IsText; of the kind IsObject, JSON
}

// ValueKind is the type of a value.
type ValueKind uint8

// The types of values. Missing is the zero value.
const (
	Missing ValueKind = iota
	IsNumber
	IsText
	IsObject
)

// Number returns the value of a number.
func Number(name string, v float64) Value { return Value{Name: name, Kind: IsNumber, Number: v} }

// Text returns the value of a category or a text.
func Text(name, v string) Value { return Value{Name: name, Kind: IsText, Text: v} }

// Object returns the value of an object: text is the JSON of an object, or of a list of objects.
func Object(name, text string) Value { return Value{Name: name, Kind: IsObject, Text: text} }

// Append appends a value without its name, as logs and checksums contain it: its kind, 1 byte, then a number's 8 bytes,
// little endian, or a text's length, as a uvarint, and its bytes. Other kinds end after the first byte.
func (v *Value) Append(b []byte) []byte {
	b = append(b, byte(v.Kind))
	switch v.Kind {
	case IsNumber:
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v.Number))
	case IsText, IsObject:
		b = append(binary.AppendUvarint(b, uint64(len(v.Text))), v.Text...)
	}
	return b
}

// MarshalJSONTo implements json.MarshalerTo.
func (v Values) MarshalJSONTo(out *jsontext.Encoder) error {
	if err := out.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for i := range v {
		if err := out.WriteToken(jsontext.String(v[i].Name)); err != nil {
			return err
		}
		if err := v[i].write(out); err != nil {
			return err
		}
	}
	return out.WriteToken(jsontext.EndObject)
}

// MarshalJSON implements json.Marshaler, for encoding/json.
func (v Values) MarshalJSON() ([]byte, error) { return json.Marshal(v) }

// UnmarshalJSON implements json.Unmarshaler, for encoding/json.
func (v *Values) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, v) }

func (v *Value) write(out *jsontext.Encoder) error {
	switch v.Kind {
	case IsNumber:
		return json.MarshalEncode(out, v.Number) // an error if it is not finite
	case IsText:
		return out.WriteToken(jsontext.String(v.Text))
	case IsObject:
		return out.WriteValue(jsontext.Value(v.Text))
	}
	return out.WriteToken(jsontext.Null)
}

var errValue = errors.New("wrong type: want a number, a string or an object")

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (v *Values) UnmarshalJSONFrom(in *jsontext.Decoder) error {
	if in.PeekKind() != '{' {
		return errors.New("wrong type: want an object")
	}
	if _, err := in.ReadToken(); err != nil {
		return err
	}
	*v = Values{}
	for in.PeekKind() != '}' {
		name, err := in.ReadToken()
		if err != nil {
			return err
		}
		value := Value{Name: name.String()}
		switch in.PeekKind() {
		case '0':
			value.Kind = IsNumber
			err = json.UnmarshalDecode(in, &value.Number)
		case '"':
			value.Kind = IsText
			err = json.UnmarshalDecode(in, &value.Text)
		case '{', '[':
			value.Kind = IsObject
			var text jsontext.Value
			text, err = in.ReadValue()
			value.Text = string(text)
		case 'n':
			err = in.SkipValue()
		default:
			if err = in.SkipValue(); err == nil {
				err = errValue
			}
		}
		if err != nil {
			return err
		}
		*v = append(*v, value)
	}
	_, err := in.ReadToken()
	return err
}
