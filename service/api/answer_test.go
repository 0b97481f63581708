package api

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"vitrine/internal/fatal"
	"vitrine/internal/stream"
)

// drawn is an answer with drawn members; those of the log are few of these.
func drawn(rng *rand.Rand) *Answer {
	number := func() *float64 {
		v := []float64{rng.Float64(), 0, 1, 1e-7 * rng.Float64(), 1e21, 1e20, 1e-6, rng.NormFloat64(),
			math.Copysign(0, -1), 5e-324, math.MaxFloat64}[rng.IntN(11)]
		return []*float64{&v, &v, nil}[rng.IntN(3)]
	}
	text := func() string {
		return []string{"sku1", "", "a\"b\\", "<ü>\u2028\n\x01", "😀", "\ufffd"}[rng.IntN(6)]
	}
	a := &Answer{Decision: text(), OutsideProbability: number(), ExpectedRevenue: number(), Propensity: number(),
		PolicyEntry: rng.Uint64N(1 << 40), Assortment: []Shown{}}
	for k := range rng.IntN(4) {
		a.Assortment = append(a.Assortment, Shown{ID: text(), Position: k + 1, Probability: number()})
	}
	if rng.IntN(3) == 0 {
		a.Variant, a.CatalogueEntry = text(), rng.Uint64N(100)
	}
	return a
}

func appends(t *testing.T, a *Answer) {
	t.Helper()
	want, wantErr := json.Marshal(a, json.Deterministic(true))
	have, err := a.AppendJSON([]byte("before "))
	if (err == nil) != (wantErr == nil) || err == nil && string(have) != "before "+string(want) {
		t.Errorf("%s, %v, and by json v2 %s, %v", have, err, want, wantErr)
	}
}

// Answers by hand have the bytes of json v2, with each of their members.
func TestAppendJSON(t *testing.T) {
	rng := stream.New(1, 0, stream.World)
	for range 2000 {
		appends(t, drawn(rng))
	}
	of := reflect.TypeFor[Answer]()
	for i := range of.NumField() {
		a := drawn(rng)
		switch v := reflect.ValueOf(a).Elem().Field(i); v.Kind() {
		case reflect.String:
			v.SetString("x")
		case reflect.Uint64:
			v.SetUint(7)
		case reflect.Int:
			v.SetInt(7)
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Pointer:
			v.Set(reflect.ValueOf(new(0.25)))
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		default:
			t.Fatalf("%s: a member of the kind %v has no test", of.Field(i).Name, v.Kind())
		}
		appends(t, a)
	}
	for _, shown := range []Shown{{ID: "i", Slot: "top"}, {ID: "i", Payload: jsontext.Value(`{"a": [1]}`)},
		{ID: "i", Payload: jsontext.Value(`{`)}, {ID: "\xff"}, {Probability: new(math.NaN())},
		{Probability: new(math.Inf(1))}} {
		appends(t, &Answer{Assortment: []Shown{shown}})
	}
	if n := reflect.TypeFor[Shown]().NumField(); n != 5 {
		t.Errorf("an item shown has %d members: AppendJSON writes three of five and leaves those with others to json v2", n)
	}
	appends(t, &Answer{}) // without a list
}

func BenchmarkAnswer(b *testing.B) {
	a := drawn(stream.New(1, 0, stream.World))
	a.Assortment = nil
	for k := range 5 {
		a.Assortment = append(a.Assortment, Shown{ID: "item-123", Position: k + 1,
			Probability: new(0.1 + 0.01/float64(k+3))})
	}
	b.Run("hand", func(b *testing.B) {
		text := make([]byte, 0, 1000)
		for b.Loop() {
			fatal.Or(a.AppendJSON(text))(b)
		}
	})
	b.Run("v2", func(b *testing.B) {
		for b.Loop() {
			fatal.Or(json.Marshal(a))(b)
		}
	})
}
