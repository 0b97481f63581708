package bandit

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"vitrine/internal/option"
	"vitrine/internal/state"
)

// identity says whose state a snapshot has: the learner, the version of what it saves, and the facts
// without which the saved numbers mean nothing. These are the problem, the utility and the options,
// by the names that they have in files. In a snapshot it is a text of one fact a line:
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
// Three rules keep the snapshots of earlier programs readable:
//
//   - An option that settings leave out if it has the zero value ([option.Option]) is left out here, too.
//   - An option that a snapshot does not name is newer than the snapshot. The snapshot is read if the
//     option has its zero value or its default. So the default of a new option must change nothing, or
//     the learner passes the earlier behaviour instead of the default. Options are never renamed or removed.
//   - If the meaning of the saved numbers or the default of an option changes, the version is raised.
//     A learner that still reads the earlier versions sets oldest.
type identity struct {
	learner         string
	version, oldest int // written, and the first that is read
	facts           []fact
}

// fact is a key and its value.
type fact struct {
	key, value string
	earlier    []string // the values for which snapshots without the key are read
	since      int      // the first version whose snapshots have the key; 0 if that is not known
}

// identify returns the identity of a learner of this problem. The utility is "" if the learner has none.
// options and earlier are structs of one type, or nil; earlier has the values that learners had before
// the options existed.
func (p Problem) identify(learner string, version int, utility string, options, earlier any) identity {
	id := identity{learner: learner, version: version, oldest: version}
	for _, f := range []struct {
		key   string
		value int
	}{{"features", p.Features}, {"size", p.Size}, {"rounds", p.Rounds}} {
		id.facts = append(id.facts, fact{key: f.key, value: strconv.Itoa(f.value)})
	}
	if utility != "" {
		id.facts = append(id.facts, fact{key: "utility", value: strings.ReplaceAll(utility, "\n", " ")})
	}
	before := option.List(earlier)
	for i, o := range option.List(options) {
		if v := reflect.ValueOf(o.Default); v.Kind() == reflect.Slice && v.Len() == 0 { // not used
			continue
		}
		zero := reflect.Zero(reflect.TypeOf(o.Default)).Interface()
		if o.Omitted && reflect.DeepEqual(o.Default, zero) {
			continue
		}
		id.facts = append(id.facts, fact{key: o.Key, value: fmt.Sprint(o.Default), earlier: []string{fmt.Sprint(zero), fmt.Sprint(before[i].Default)}})
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

// open returns the version and the fields of a snapshot, which must have this identity.
func (id identity) open(data []byte) (version int, d *state.Decoder, err error) {
	text, d, err := state.Read(data)
	if err != nil {
		return 0, nil, err
	}
	version, err = id.match(text)
	return version, d, err
}

// match returns the version of a snapshot of the given text. The error names the first fact that differs.
func (id identity) match(text string) (version int, err error) {
	learner, version, facts, err := parseIdentity(text)
	switch {
	case err != nil:
		return 0, err
	case learner != id.learner:
		return 0, fmt.Errorf("snapshot is of %s, want %s", learner, id.learner)
	case version < id.oldest || version > id.version:
		return 0, fmt.Errorf("snapshot is of version %d of %s, and this program reads %d to %d", version, learner, id.oldest, id.version)
	}
	for _, f := range id.facts {
		have, named := facts[f.key]
		if named && have != f.value {
			return 0, fmt.Errorf("snapshot is of %s = %s, want %s", f.key, have, f.value)
		}
		if !named && (!slices.Contains(f.earlier, f.value) || f.since > 0 && version >= f.since) {
			return 0, fmt.Errorf("snapshot was made before there was %s, want %s = %s", f.key, f.key, f.value)
		}
		delete(facts, f.key)
	}
	for _, key := range slices.Sorted(maps.Keys(facts)) {
		return 0, fmt.Errorf("snapshot is of %s = %s, which this program does not know", key, facts[key])
	}
	return version, nil
}

// parseIdentity reads the text of a snapshot.
func parseIdentity(text string) (learner string, version int, facts map[string]string, err error) {
	facts = map[string]string{}
	learner, rest, ok := strings.Cut(text, "\n")
	if !ok {
		if learner, rest, ok = earlierText(text); !ok {
			return "", 0, nil, fmt.Errorf("snapshot is of %q, want that of a learner", text)
		}
	}
	for line := range strings.SplitSeq(rest, "\n") {
		key, value, _ := strings.Cut(line, "=")
		facts[key] = value
	}
	version, err = strconv.Atoi(facts["version"])
	if err != nil {
		return "", 0, nil, fmt.Errorf("snapshot of %s: version = %q: must be a number", learner, facts["version"])
	}
	delete(facts, "version")
	return learner, version, facts, nil
}

// earlierTexts are those of the programs that named options by the fields of Go structs, as %+v writes them:
//
//	ts-mnl d=3 K=2 T=1000 linear {LinearOptions:{Constants:theory Radius:0 Intercept:false Lambda:1} Samples:9}
//
// The first version has no number. The families of bma-mnl come after the options.
var earlierTexts = regexp.MustCompile(`^(\S+?)( v\d+)? d=(\d+) K=(\d+) T=(\d+)(.*?)(?:$| (\{\w+:[^{}]*(?:\{[^{}]*\}[^{}]*)*\})(.*)$)`)

// earlierText translates such a text.
func earlierText(text string) (learner, rest string, ok bool) {
	m := earlierTexts.FindStringSubmatch(text)
	if m == nil {
		return "", "", false
	}
	version := "1"
	if m[2] != "" {
		version = strings.TrimPrefix(m[2], " v")
	}
	lines := []string{"version=" + version, "features=" + m[3], "size=" + m[4], "rounds=" + m[5]}
	if family := strings.TrimSpace(m[6] + m[8]); family != "" {
		lines = append(lines, "utility="+family)
	}
	for word := range strings.FieldsSeq(m[7]) {
		word = strings.TrimRight(word[strings.LastIndex(word, "{")+1:], "}")
		field, value, _ := strings.Cut(word, ":")
		lines = append(lines, key(field)+"="+value)
	}
	return m[1], strings.Join(lines, "\n"), true
}

var capital = regexp.MustCompile(`(.)([A-Z])`)

// key returns the name in files of a field of options: PilotRate is pilot_rate.
func key(field string) string {
	return strings.ToLower(capital.ReplaceAllString(field, "${1}_$2"))
}
