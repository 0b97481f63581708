package client

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"vitrine/service/api"
)

// The messages are defined in service/server/proto/decision.proto.

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

// appendBinary appends a DecisionRequest without its decision_id.
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

// unmarshalBinary reads a DecisionAnswer. It skips unknown fields, which a later service may send.
func unmarshalBinary(a *api.Answer, b []byte) error {
	var m message
	for len(b) > 0 {
		n, t, size := protowire.ConsumeTag(b)
		if size < 0 {
			return fmt.Errorf("%w: %w", errBinary, protowire.ParseError(size))
		}
		b = b[size:]
		if size = m.field(n, t, b); size < 0 {
			return fmt.Errorf("%w: field %d: %w", errBinary, n, protowire.ParseError(size))
		}
		b = b[size:]
	}
	return m.answer(a)
}

// message is a DecisionAnswer.
type message struct {
	decision    string
	items       []string
	probability []float64
	numbers     [3]float64 // p(0|S), R(S), π(S)
	version     uint64
}

func (m *message) answer(a *api.Answer) error {
	if m.probability != nil && len(m.probability) != len(m.items) {
		return fmt.Errorf("%w: %d items and %d probabilities", errBinary, len(m.items), len(m.probability))
	}
	a.Decision, a.PolicyVersion, a.Assortment = m.decision, m.version, make([]api.Shown, len(m.items))
	for k, id := range m.items {
		a.Assortment[k] = api.Shown{ID: id, Position: k + 1}
		if m.probability != nil {
			a.Assortment[k].Probability = &m.probability[k]
		}
	}
	if m.probability != nil {
		a.OutsideProbability, a.ExpectedRevenue = &m.numbers[0], &m.numbers[1]
	}
	if m.numbers[2] != 0 {
		a.Propensity = &m.numbers[2]
	}
	return nil
}

// field reads the value of a field and returns its size, or a negative error code of protowire.
func (m *message) field(n protowire.Number, t protowire.Type, b []byte) int {
	switch {
	case n == 1 && t == protowire.BytesType:
		v, size := protowire.ConsumeString(b)
		m.decision = v
		return size
	case n == 2 && t == protowire.BytesType:
		v, size := protowire.ConsumeString(b)
		m.items = append(m.items, v)
		return size
	case n == 3 && t == protowire.BytesType:
		packed, size := protowire.ConsumeBytes(b)
		for size >= 0 && len(packed) > 0 {
			v, one := protowire.ConsumeFixed64(packed)
			if one < 0 {
				return one
			}
			m.probability = append(m.probability, math.Float64frombits(v))
			packed = packed[one:]
		}
		return size
	case n == 3 && t == protowire.Fixed64Type:
		v, size := protowire.ConsumeFixed64(b)
		m.probability = append(m.probability, math.Float64frombits(v))
		return size
	case n >= 4 && n <= 6 && t == protowire.Fixed64Type:
		v, size := protowire.ConsumeFixed64(b)
		m.numbers[n-4] = math.Float64frombits(v)
		return size
	case n == 7 && t == protowire.VarintType:
		v, size := protowire.ConsumeVarint(b)
		m.version = v
		return size
	}
	return protowire.ConsumeFieldValue(n, t, b)
}
