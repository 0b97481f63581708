package settings

import (
	"fmt"
	"maps"

	"github.com/pelletier/go-toml/v2"

	"vitrine/internal/option"
)

// Entry is a name that a file may use, and a line about it.
type Entry struct {
	Name, Doc string
}

// Named is an entry that makes a T from its section.
type Named[T any] struct {
	Entry
	Maker[T]
}

// Name returns the entry of a name, with a line about it.
func Name[T any](name, doc string, m Maker[T]) Named[T] { return Named[T]{Entry{name, doc}, m} }

// Maker makes a T from a section, for items of the given number of features.
type Maker[T any] struct {
	Options any // the defaults, a struct; nil for none
	Build   func(s Section, features int) (Made[T], error)
}

// Made is what an entry made, and the settings that determine it.
type Made[T any] struct {
	Value    T
	Settings any
}

// Options makes what has options, with their defaults, which must have no list. The tags of their struct say what they
// are.
func Options[O, T any](defaults O, create func(s Section, o O, features int) (T, error)) Maker[T] {
	return WithDefaults(func() O { return defaults }, create)
}

// WithDefaults is Options for defaults with a list: reading a section would overwrite it.
func WithDefaults[O, T any](defaults func() O, create func(s Section, o O, features int) (T, error)) Maker[T] {
	return Maker[T]{defaults(), func(s Section, features int) (Made[T], error) {
		o := defaults()
		if err := s.Bind(&o, "kind"); err != nil {
			return Made[T]{}, err
		}
		if err := option.Check(o); err != nil {
			return Made[T]{}, s.At(err)
		}
		v, err := create(s, o, features)
		return Made[T]{v, o}, err
	}}
}

// Bare makes what has no options.
func Bare[T any](create func(s Section, features int) (T, error)) Maker[T] {
	return Maker[T]{nil, func(s Section, features int) (Made[T], error) {
		if err := s.Bind(&struct{}{}, "kind"); err != nil {
			return Made[T]{}, err
		}
		v, err := create(s, features)
		return Made[T]{v, nil}, err
	}}
}

// Fixed makes v.
func Fixed[T any](v T) Maker[T] {
	return Bare(func(Section, int) (T, error) { return v, nil })
}

// Entries returns the entries of a table.
func Entries[T any](prefix string, table []Named[T]) []Entry {
	var list []Entry
	for _, n := range table {
		list = append(list, Entry{prefix + n.Name, n.Doc})
	}
	return list
}

// Pick makes what the key "kind" of the section names.
func Pick[T any](s Section, table []Named[T], features int) (Made[T], error) {
	kind, _ := s.Values["kind"].(string)
	var legal []string
	for _, n := range table {
		if n.Name == kind {
			m, err := n.Build(s, features)
			if err != nil {
				return Made[T]{}, err
			}
			m.Settings = Merge(map[string]any{"kind": kind}, m.Settings)
			return m, nil
		}
		legal = append(legal, n.Name)
	}
	if _, ok := s.Values["kind"]; !ok {
		return Made[T]{}, s.Errorf("", "kind is missing%s", Hint("", legal))
	}
	return Made[T]{}, s.Errorf("kind", "kind = %s: unknown%s", Literal(s.Values["kind"]), Hint(kind, legal))
}

// Merge returns the settings and the keys that options have in TOML.
func Merge(settings map[string]any, options any) map[string]any {
	all := map[string]any{}
	maps.Copy(all, settings)
	if options != nil {
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
