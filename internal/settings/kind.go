package settings

import (
	"fmt"
	"maps"

	"github.com/pelletier/go-toml/v2"

	"vitrine/internal/hint"
	"vitrine/internal/option"
)

// Kind describes one legal value of a section's key "kind", and creates a T from the section.
type Kind[T any] struct {
	Name, Doc string
	Options   []option.Option // with their defaults
	// Make also returns the settings that determine the T, without the kind.
	Make func(s Section, d Dims) (T, map[string]any, error)
}

// Dims holds the sizes of a problem: N items of d features, at most K of them shown.
type Dims struct{ Features, Items, Size int }

// Of returns a kind with options. defaults is a struct of their default values with the tags of package option. If it
// provides a method Check() error, that is called before create. Errors of both take the form "key = value: …".
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

// Fixed returns a kind that always creates v.
func Fixed[T any](name, doc string, v T) Kind[T] {
	return Bare(name, doc, func(Dims) (T, error) { return v, nil })
}

// Pick creates the T named by the section's key "kind". It also returns the settings that determine it.
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

// Merge returns the settings combined with the keys of options, a struct or a map, as in TOML.
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

// Keys returns the keys and values of a struct as in TOML. It panics if TOML cannot represent the struct.
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
