package feature

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"vitrine/service/api"
)

const (
	maxObjectDepth  = 16   // nested objects and lists
	maxObjectValues = 1000 // values in an object
)

// object adds a JSON object's values to zeroed columns, or returns an error message.
func (c *column) object(to []float64, text string) (message string) {
	o := objectReader{column: c, to: to, in: jsontext.NewDecoder(bytes.NewBufferString(text))}
	if err := o.value(c.prefix(), 0, false); err != nil {
		return err.Error()
	}
	if _, err := o.in.ReadToken(); err != io.EOF {
		return "has more than one value"
	}
	if n := o.values - o.nulls; n > 0 {
		root := math.Sqrt(float64(n))
		for b := range to {
			to[b] /= root
		}
	}
	return ""
}

// objectReader hashes an object's values as it reads them, and keeps only the hashes of names.
type objectReader struct {
	*column
	to     []float64
	in     *jsontext.Decoder
	values int // nulls too
	nulls  int
}

// value reads a value under the name hash h. At depth 0 it must be a list or an object.
func (o *objectReader) value(h uint64, depth int, named bool) error {
	kind := o.in.PeekKind()
	if depth == 0 && kind != '{' && kind != '[' {
		return fmt.Errorf("want an object or a list of objects")
	}
	if (kind == '{' || kind == '[') && depth == maxObjectDepth {
		return fmt.Errorf("has objects and lists nested more than %d deep", maxObjectDepth)
	}
	switch kind {
	case '{':
		return o.members(h, depth, named)
	case '[':
		return o.elements(h, depth, named)
	}
	token, err := o.in.ReadToken()
	if err != nil {
		return api.JSONError(err)
	}
	if o.values++; o.values > maxObjectValues {
		return fmt.Errorf("has more than %d values", maxObjectValues)
	}
	switch kind {
	case '0':
		v, err := strconv.ParseFloat(token.String(), 64)
		if err != nil {
			return fmt.Errorf("%s: out of range", api.Abbreviate(token.String(), 40))
		}
		o.add(h, min(max(math.Asinh(v)/2, -8), 8))
	case 'n':
		o.nulls++
	default:
		o.add(fnv1a(fnv1a(h, "="), token.String()), 1)
	}
	return nil
}

func (o *objectReader) add(h uint64, x float64) {
	h = splitMix(h)
	if h>>63 == 1 {
		x = -x
	}
	o.to[h%uint64(len(o.to))] += x
}

func (o *objectReader) members(h uint64, depth int, named bool) error {
	if _, err := o.in.ReadToken(); err != nil {
		return api.JSONError(err)
	}
	if named {
		h = fnv1a(h, ".")
	}
	for o.in.PeekKind() != '}' {
		name, err := o.in.ReadToken()
		if err != nil {
			return api.JSONError(err)
		}
		if err := o.value(fnv1a(h, name.String()), depth+1, true); err != nil {
			return err
		}
	}
	_, err := o.in.ReadToken()
	return err
}

func (o *objectReader) elements(h uint64, depth int, named bool) error {
	if _, err := o.in.ReadToken(); err != nil {
		return api.JSONError(err)
	}
	for k := 0; o.in.PeekKind() != ']'; k++ {
		at := h
		switch kind := o.in.PeekKind(); {
		case !named && kind != '{' && kind > 0:
			return fmt.Errorf("want an object or a list of objects")
		case kind == '0':
			at = fnv1a(h, "."+strconv.Itoa(k))
		}
		if err := o.value(at, depth+1, named); err != nil {
			return err
		}
	}
	_, err := o.in.ReadToken()
	return err
}
