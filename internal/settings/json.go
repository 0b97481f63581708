package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// ReadJSON reads a JSON object into the values that TOML has: whole numbers are
// integers, and null is an error.
func ReadJSON(text []byte) (map[string]any, error) {
	in := jsontext.NewDecoder(bytes.NewReader(text))
	v, err := plain(in)
	if err != nil {
		return nil, err
	}
	if _, more := in.ReadToken(); more != io.EOF {
		return nil, errors.New("there is more after the object")
	}
	values, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("must be an object")
	}
	return values, nil
}

// plain reads a JSON value.
func plain(in *jsontext.Decoder) (any, error) {
	t, err := in.ReadToken()
	if err != nil {
		return nil, err
	}
	switch t.Kind() {
	case '{':
		values := map[string]any{}
		for in.PeekKind() != '}' {
			key, err := in.ReadToken()
			if err != nil {
				return nil, err
			}
			name := key.String()
			if values[name], err = plain(in); err != nil {
				return nil, err
			}
		}
		_, err = in.ReadToken()
		return values, err
	case '[':
		list := []any{}
		for in.PeekKind() != ']' {
			v, err := plain(in)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = in.ReadToken()
		return list, err
	case '"':
		return t.String(), nil
	case 't', 'f':
		return t.Bool(), nil
	case '0':
		if v, err := strconv.ParseInt(t.String(), 10, 64); err == nil {
			return v, nil
		}
		v, err := strconv.ParseFloat(t.String(), 64)
		if err != nil {
			return nil, fmt.Errorf("%s: the number %s is out of range", in.StackPointer(), t)
		}
		return v, nil
	}
	return nil, fmt.Errorf("%s: null is not a value: leave the key out", in.StackPointer())
}
