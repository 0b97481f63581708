package client

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// The messages are those of service/server/proto/decision.proto.

const decisionField = 1 // of DecisionRequest

func appendText(b []byte, n protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), s)
}

func appendTexts(b []byte, n protowire.Number, list []string) []byte {
	for _, s := range list {
		b = appendText(b, n, s)
	}
	return b
}

func appendNumbers(b []byte, n protowire.Number, list []float64) []byte {
	if len(list) == 0 {
		return b
	}
	b = protowire.AppendVarint(protowire.AppendTag(b, n, protowire.BytesType), uint64(8*len(list)))
	for _, v := range list {
		b = protowire.AppendFixed64(b, math.Float64bits(v))
	}
	return b
}

func appendWhole(b []byte, n protowire.Number, v int) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), uint64(v))
}

// appendBinary appends a DecisionRequest, all but its decision_id.
func (r *Flat) appendBinary(b []byte) []byte {
	b = appendTexts(b, 2, r.Items)
	b = appendNumbers(b, 3, r.Numbers)
	b = appendTexts(b, 4, r.Texts)
	b = appendNumbers(b, 5, r.Revenues)
	b = appendNumbers(b, 6, r.UserNumbers)
	b = appendTexts(b, 7, r.UserTexts)
	b = appendWhole(b, 8, r.Size)
	b = appendTexts(b, 9, r.Include)
	b = appendTexts(b, 10, r.Exclude)
	for _, l := range r.AtMost {
		limit := appendTexts(nil, 1, l.Items)
		if l.Feature != "" {
			limit = appendText(limit, 2, l.Feature)
		}
		limit = appendWhole(limit, 3, l.Most)
		b = protowire.AppendBytes(protowire.AppendTag(b, 11, protowire.BytesType), limit)
	}
	return appendTexts(b, 12, r.Baseline)
}

var errBinary = errors.New("client: the answer is not a DecisionAnswer")

// unmarshalBinary reads a DecisionAnswer. Fields that it does not know are of a later
// service, and skipped.
func (a *Answer) unmarshalBinary(b []byte) error {
	for len(b) > 0 {
		n, t, size := protowire.ConsumeTag(b)
		if size < 0 {
			return fmt.Errorf("%w: %w", errBinary, protowire.ParseError(size))
		}
		b = b[size:]
		if size = a.field(n, t, b); size < 0 {
			return fmt.Errorf("%w: field %d: %w", errBinary, n, protowire.ParseError(size))
		}
		b = b[size:]
	}
	return nil
}

// field reads the value of a field, and returns its size or a negative code.
func (a *Answer) field(n protowire.Number, t protowire.Type, b []byte) int {
	switch {
	case n == 1 && t == protowire.BytesType:
		v, size := protowire.ConsumeString(b)
		a.Decision = v
		return size
	case n == 2 && t == protowire.BytesType:
		v, size := protowire.ConsumeString(b)
		a.Shown = append(a.Shown, v)
		return size
	case n == 3 && t == protowire.BytesType:
		packed, size := protowire.ConsumeBytes(b)
		for size >= 0 && len(packed) > 0 {
			v, one := protowire.ConsumeFixed64(packed)
			if one < 0 {
				return one
			}
			a.Probability = append(a.Probability, math.Float64frombits(v))
			packed = packed[one:]
		}
		return size
	case n == 3 && t == protowire.Fixed64Type:
		v, size := protowire.ConsumeFixed64(b)
		a.Probability = append(a.Probability, math.Float64frombits(v))
		return size
	case n >= 4 && n <= 6 && t == protowire.Fixed64Type:
		v, size := protowire.ConsumeFixed64(b)
		*[]*float64{&a.Outside, &a.Revenue, &a.Propensity}[n-4] = math.Float64frombits(v)
		return size
	case n == 7 && t == protowire.VarintType:
		v, size := protowire.ConsumeVarint(b)
		a.PolicyVersion = v
		return size
	}
	return protowire.ConsumeFieldValue(n, t, b)
}
