package settings

import (
	"fmt"
	"maps"

	"github.com/pelletier/go-toml/v2"

	"vitrine/internal/hint"
	"vitrine/internal/option"
)

// Kind is a name that the key "kind" of a section may have, with a line about it. It makes a T from the section.
type Kind[T any] struct {
	Name, Doc string
	Options   []option.Option // with their defaults
	// Make also returns the settings that determine the T, without the kind.
	Make func(s Section, d Dims) (T, map[string]any, error)
}

// Dims are the sizes of a problem: N items of d features, of which at most K are shown.
type Dims struct{ Features, Items, Size int }

// Of returns a kind with options, a struct of their defaults with the tags of package option. It may have a method
// Check() error, which is called before create. Errors of both have the form "key = value: …".
func Of[O, T any](name, doc string, defaults O, create func(o O, d Dims) (T, error)) Kind[T] {
	return Kind[T]{name, doc, option.List(defaults), func(s Section, d Dims) (v T, known map[string]any, err error) {
		o := defaults
		if err := s.Bind(&o, "kind"); err != nil {
			return v, nil, err
		}
		if c, ok := any(o).(interface{ Check() error }); ok {
			err = c.Check()
		}
		if err == nil {
			v, err = create(o, d)
		}
		if err != nil {
			return v, nil, s.At(err)
		}
		return v, Keys(o), nil
	}}
}

// Bare returns a kind without options.
func Bare[T any](name, doc string, create func(d Dims) (T, error)) Kind[T] {
	return Of(name, doc, struct{}{}, func(_ struct{}, d Dims) (T, error) { return create(d) })
}

// Fixed returns a kind that is v.
func Fixed[T any](name, doc string, v T) Kind[T] {
	return Bare(name, doc, func(Dims) (T, error) { return v, nil })
}

// Pick makes what the key "kind" of the section names. It also returns the settings that determine it.
func Pick[T any](s Section, table []Kind[T], d Dims) (v T, known map[string]any, err error) {
	kind, _ := s.Values["kind"].(string)
	var legal []string
	for _, k := range table {
		if k.Name == kind {
			v, known, err = k.Make(s, d)
			return v, Merge(map[string]any{"kind": kind}, known), err
		}
		legal = append(legal, k.Name)
	}
	if _, ok := s.Values["kind"]; !ok {
		return v, nil, s.Errorf("", "kind is missing%s", hint.Legal("", legal))
	}
	return v, nil, s.Errorf("kind", "kind = %s: unknown%s", Literal(s.Values["kind"]), hint.Legal(kind, legal))
}

// Merge returns the settings and the keys that options, a struct or a map, have in TOML.
func Merge(settings map[string]any, options any) map[string]any {
	all := map[string]any{}
	maps.Copy(all, settings)
	if table, ok := options.(map[string]any); ok {
		maps.Copy(all, table)
	} else {
		maps.Copy(all, Keys(options))
	}
	return all
}

// Keys returns the keys and values that a struct has in TOML. It panics if TOML cannot hold the struct.
func Keys(v any) map[string]any {
	text, err := toml.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("settings: options that TOML cannot hold: %v", err))
	}
	values := map[string]any{}
	if err := toml.Unmarshal(text, &values); err != nil {
		panic(fmt.Sprintf("settings: options that TOML cannot read back: %v", err))
	}
	return values
}
