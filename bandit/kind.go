package bandit

import (
	"fmt"
	"reflect"
	"strings"

	"vitrine/internal/state"
	"vitrine/utility"
)

// kind names the state of a learner in its snapshots: the learner, the version of what it saves,
// the problem, the utility family, and the options by their names. A snapshot of another kind would
// be read as nonsense.
//
//	ts-mnl d=3 K=2 T=1000 linear {LinearOptions:{Constants:theory Radius:0 Intercept:true Lambda:1} Samples:9}
//
// Two rules keep the snapshots of earlier programs readable:
//
//   - An option that a snapshot does not name is newer than the snapshot. The snapshot is read if the
//     option has its zero value or its default. So the default of a new option changes nothing, or the
//     learner passes the value that it behaved by before in the place of the default. Fields of
//     options are never renamed or removed.
//   - If the meaning of a saved field or the default of an option changes, the learner's version is
//     raised. The first version has no number in the name.
type kind struct {
	head, tail        string
	options, defaults any // structs of one type; nil where there are none
}

// kind returns that of a learner.
func (p Problem) kind(learner string, version int, m utility.Model, options, defaults any) kind {
	k := kind{head: learner, options: options, defaults: defaults}
	if version > 1 {
		k.head += fmt.Sprintf(" v%d", version)
	}
	k.head += fmt.Sprintf(" d=%d K=%d T=%d", p.Features, p.Size, p.Rounds)
	if m != nil {
		k.head += " " + utility.Identity(m)
	}
	if options != nil {
		k.head += " "
	}
	return k
}

func (k kind) String() string {
	if k.options == nil {
		return k.head + k.tail
	}
	return fmt.Sprintf("%s%+v%s", k.head, k.options, k.tail)
}

// encoder begins a snapshot of this kind.
func (k kind) encoder() *state.Encoder { return state.NewEncoder(k.String()) }

// decoder begins to read a snapshot, which must be of this kind.
func (k kind) decoder(data []byte) (*state.Decoder, error) {
	name, d, err := state.Read(data)
	if err == nil && !k.reads(name) {
		err = fmt.Errorf("snapshot is of %q, want %q", name, k)
	}
	return d, err
}

// reads reports whether a snapshot of the given name has the state of this kind.
func (k kind) reads(name string) bool {
	name, ok := strings.CutPrefix(name, k.head)
	if ok && k.options != nil {
		name, ok = cutOptions(name, reflect.ValueOf(k.options), reflect.ValueOf(k.defaults))
	}
	return ok && name == k.tail
}

// cutOptions cuts the text of options off, as %+v writes them, and reports whether they agree.
// Fields that the text does not name agree if they have their zero value or their default.
func cutOptions(text string, v, standard reflect.Value) (rest string, ok bool) {
	if v.Kind() != reflect.Struct {
		return strings.CutPrefix(text, fmt.Sprintf("%+v", v))
	}
	if text, ok = strings.CutPrefix(text, "{"); !ok {
		return text, false
	}
	space := ""
	for i := range v.NumField() {
		field := v.Field(i)
		value, named := strings.CutPrefix(text, space+v.Type().Field(i).Name+":")
		if !named {
			if !field.IsZero() && !reflect.DeepEqual(field.Interface(), standard.Field(i).Interface()) {
				return text, false
			}
			continue
		}
		if text, ok = cutOptions(value, field, standard.Field(i)); !ok {
			return text, false
		}
		space = " "
	}
	return strings.CutPrefix(text, "}")
}
