package bandit

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"vitrine/internal/fields"
	"vitrine/internal/option"
)

// identity identifies a snapshot's state: the learner, the version of its encoding, and the facts that give the saved
// numbers their meaning (problem, utility, options), by the names used in files. In a snapshot it is a text of one fact
// a line:
//
//	ts-mnl
//	version=1
//	features=3
//	size=2
//	rounds=1000
//	utility=linear
//	constants=theory
//	…
//
// A learner reads a snapshot only if their texts are equal. Raise the version if the meaning of the saved numbers
// changes.
type identity struct {
	learner string
	version int
	facts   []fact
}

// fact is a key and its value.
type fact struct{ key, value string }

// identify returns the identity of a learner of this problem. The utility may be "". options is a struct, or nil.
func (p Problem) identify(learner string, version int, utility string, options any) identity {
	id := identity{learner: learner, version: version}
	for _, f := range []struct {
		key   string
		value int
	}{{"features", p.NumFeatures}, {"size", p.MaxShown}, {"rounds", p.Rounds}} {
		id.facts = append(id.facts, fact{f.key, strconv.Itoa(f.value)})
	}
	if utility != "" {
		id.facts = append(id.facts, fact{"utility", strings.ReplaceAll(utility, "\n", " ")})
	}
	for _, o := range option.List(options) {
		if v := reflect.ValueOf(o.Default); v.Kind() == reflect.Slice && v.Len() == 0 { // not used
			continue
		}
		zero := reflect.Zero(reflect.TypeOf(o.Default)).Interface()
		if o.Omitted && reflect.DeepEqual(o.Default, zero) {
			continue
		}
		id.facts = append(id.facts, fact{o.Key, fmt.Sprint(o.Default)})
	}
	return id
}

// String returns the text in snapshots.
func (id identity) String() string {
	text := fmt.Sprintf("%s\nversion=%d", id.learner, id.version)
	for _, f := range id.facts {
		text += "\n" + f.key + "=" + f.value
	}
	return text
}

// open returns the fields of a snapshot, which must carry this identity.
func (id identity) open(data []byte) (*fields.Fields, error) {
	text, f, err := fields.Open(data)
	if err != nil {
		return nil, err
	}
	return f, id.match(text)
}

// match returns an error that names the first fact in which the text of a snapshot differs.
func (id identity) match(text string) error {
	if text == id.String() {
		return nil
	}
	learner, rest, _ := strings.Cut(text, "\n")
	if learner != id.learner {
		return fmt.Errorf("snapshot is of %q, want %s", learner, id.learner)
	}
	have := map[string]string{}
	for line := range strings.SplitSeq(rest, "\n") {
		key, value, _ := strings.Cut(line, "=")
		have[key] = value
	}
	for _, f := range append([]fact{{"version", strconv.Itoa(id.version)}}, id.facts...) {
		value, named := have[f.key]
		switch {
		case !named:
			return fmt.Errorf("snapshot of %s does not name %s, want %s = %s", learner, f.key, f.key, f.value)
		case f.key == "version" && value != f.value:
			return fields.UnknownFormat("snapshot of "+learner, value, f.value)
		case value != f.value:
			return fmt.Errorf("snapshot is of %s = %s, want %s", f.key, value, f.value)
		}
		delete(have, f.key)
	}
	for _, key := range slices.Sorted(maps.Keys(have)) {
		return fmt.Errorf("snapshot is of %s = %s, which this program does not know", key, have[key])
	}
	return fmt.Errorf("snapshot of %s names its facts in another order", learner)
}
