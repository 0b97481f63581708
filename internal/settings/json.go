package settings

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ReadJSON reads a JSON object into the same values as TOML: whole numbers become integers, and null is an error.
func ReadJSON(text []byte) (values map[string]any, err error) {
	var wrong error // error of a value, without the decoder's additions
	plain := json.UnmarshalFromFunc(func(in *jsontext.Decoder, v *any) error {
		switch in.PeekKind() {
		case 'n':
			_, err := in.ReadToken()
			wrong = fmt.Errorf("%s: null is not a value: leave the key out", in.StackPointer())
			return errors.Join(err, wrong)
		case '0':
			t, err := in.ReadToken()
			if err != nil {
				return err
			}
			if whole, err := strconv.ParseInt(t.String(), 10, 64); err == nil {
				*v = whole
			} else if *v, err = strconv.ParseFloat(t.String(), 64); err != nil {
				wrong = fmt.Errorf("%s: the number %s is out of range", in.StackPointer(), t)
				return wrong
			}
			return nil
		}
		return errors.ErrUnsupported
	})
	err = json.Unmarshal(text, &values, json.WithUnmarshalers(plain))
	switch _, other := errors.AsType[*json.SemanticError](err); {
	case wrong != nil:
		return nil, wrong
	case other || err == nil && values == nil:
		return nil, errors.New("must be an object")
	}
	return values, err
}
