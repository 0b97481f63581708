package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"vitrine/internal/replace"
)

// Shard is a part of an experiment's units: the ones at the places Index, Index+Of, Index+2·Of, …, counted from 1,
// policy by policy and seed by seed. The shards 1/n, …, n/n together contain every unit once. A shard may be empty. The
// zero value is not a shard.
type Shard struct {
	Index int `json:"index"` // from 1
	Of    int `json:"of"`
}

var shardForm = regexp.MustCompile(`^([0-9]+)/([1-9][0-9]*)$`)

// ParseShard reads a shard of the form "3/20".
func ParseShard(text string) (Shard, error) {
	m := shardForm.FindStringSubmatch(text)
	if m == nil {
		return Shard{}, fmt.Errorf("%q is not a shard: write 3/20 for the third of twenty", text)
	}
	index, err1 := strconv.Atoi(m[1])
	of, err2 := strconv.Atoi(m[2])
	if err1 != nil || err2 != nil || index < 1 || index > of {
		return Shard{}, fmt.Errorf("%s is not a shard: the first of %s is 1/%s, the last %s/%s",
			text, m[2], m[2], m[2], m[2])
	}
	return Shard{index, of}, nil
}

// String returns the form that [ParseShard] accepts.
func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Of) }

// has reports whether the shard contains the unit at a place, counted from 0.
func (s Shard) has(place int) bool { return place%s.Of == s.Index-1 }

// Units returns the number of an experiment's units in the shard.
func (s Shard) Units(e *Experiment) int {
	return (len(e.Policies)*len(e.Seeds) + s.Of - s.Index) / s.Of
}

// ShardFile is the name of the file that marks a shard's results.
const ShardFile = "shard.json"

// RunShard plays a shard's units like [Run], with the same errors, and writes only runs.jsonl and [ShardFile] to
// Dir/Name. [Merge] joins the shards of an experiment.
func RunShard(ctx context.Context, e *Experiment, s Shard, o Options) error {
	if s.Of < 1 || s.Index < 1 || s.Index > s.Of {
		return fmt.Errorf("shard %v: the index must be from 1 to the number of shards", s)
	}
	if err := e.checkNames(); err != nil {
		return err
	}
	e, err := e.versioned()
	if err != nil {
		return err
	}
	r, err := e.record(Machine())
	if err != nil {
		return err
	}
	r.Rounds, r.Shard = e.Rounds, &s
	_, lock, err := e.complete(ctx, o, s.has)
	if err != nil {
		return err
	}
	defer lock.Release()
	return r.write(filepath.Join(o.Dir, e.Name, ShardFile))
}

// Sharded returns the sorted names of the experiments for which any of the directories contains a shard's results.
func Sharded(dirs []string) ([]string, error) {
	names := map[string]bool{}
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		found := false
		for _, entry := range entries {
			if _, err := os.Stat(filepath.Join(dir, entry.Name(), ShardFile)); err == nil {
				names[entry.Name()], found = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("%s: no %s in the directories below it: give the directories that vitrine run "+
				"--shard named", dir, ShardFile)
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// Merge joins the shards of the experiment called name, found in DIR/name under some of the directories, and writes the
// same files as [Run] to o.Dir/name. The bytes equal those from one run on one worker, except that times are the
// shards' own, and that run.json lists the machines if there are several. It is an error if the shards differ in
// configuration or program build, if a unit is missing, or if two shards contain the same unit with different results;
// Merge then writes no files. If two shards contain a unit with equal results, it counts once, and o.Warn is called.
func Merge(name string, dirs []string, o Options) ([]Summary, error) {
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	shards, err := readManifests(name, dirs)
	if err != nil {
		return nil, err
	}
	if len(shards) == 0 {
		return nil, fmt.Errorf("%s: no %s of it in %s", name, ShardFile, strings.Join(dirs, ", "))
	}
	first := shards[0]
	for _, m := range shards[1:] {
		if err := first.differs(m); err != nil {
			return nil, err
		}
	}
	e := &Experiment{Name: name, Title: first.Title, Rounds: first.Rounds, Seeds: first.Seeds, Settings: first.Settings,
		Version: first.Version}
	for _, p := range first.Policies {
		e.Policies = append(e.Policies, Policy{Label: p.Label, Settings: p.Settings})
	}
	units, err := e.gather(shards, o.Warn)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(o.Dir, name)
	lock, err := lockDir(dir, o.Warn)
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	if err := checkFresh(dir, units); err != nil {
		return nil, err
	}
	err = replace.Stream(filepath.Join(dir, "runs.jsonl"), func(w io.Writer) error {
		for _, u := range units {
			line, err := encodeUnit(u)
			if err != nil {
				return err
			}
			if _, err := w.Write(line); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return e.write(dir, units, machines(shards))
}

// checkFresh returns an error if dir's journal contains runs that are not among the units, because a merged journal
// would replace them.
func checkFresh(dir string, units []*unit) error {
	path := filepath.Join(dir, "runs.jsonl")
	merged := map[unitKey]bool{}
	for _, u := range units {
		merged[u.key()] = true
	}
	err := readJournal(path, func(u *unit, _ []byte) error {
		if !merged[u.key()] {
			return fmt.Errorf("%s has other runs, such as %s, seed %d, which the merged ones would replace: "+
				"choose another directory", path, u.Policy, u.Seed)
		}
		return nil
	}, func(int, string) {})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// readManifests reads the experiment's manifests, in the order of the directories.
func readManifests(name string, dirs []string) ([]*record, error) {
	var shards []*record
	for _, dir := range dirs {
		path := filepath.Join(dir, name, ShardFile)
		r, err := readRecord(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if r.Experiment != name || r.Shard == nil || r.Shard.Of < 1 || r.Shard.Index < 1 ||
			r.Shard.Index > r.Shard.Of || len(r.Seeds) == 0 || len(r.Policies) == 0 {
			return nil, fmt.Errorf("%s: not written by a shard of %s", path, name)
		}
		shards = append(shards, r)
	}
	return shards, nil
}

// differs describes the first difference from another shard's experiment or program.
func (r *record) differs(other *record) error {
	for _, c := range []struct {
		what string
		a, b any
	}{
		{"by the program", r.Version, other.Version},
		{"with the rounds", r.Rounds, other.Rounds},
		{"with the seeds", r.Seeds, other.Seeds},
		{"with the policies", r.labels(), other.labels()},
		{"with the world", compact(r.Settings), compact(other.Settings)},
		{"under the title", r.Title, other.Title},
	} {
		if !reflect.DeepEqual(c.a, c.b) {
			return fmt.Errorf("%s was played %s %v, and %s %s %v: only shards of one configuration and one "+
				"program build can be merged", r.dir, c.what, c.a, other.dir, c.what, c.b)
		}
	}
	for i, p := range r.Policies {
		if a, b := compact(p.Settings), compact(other.Policies[i].Settings); a != b {
			return fmt.Errorf("policy %s of %s has the settings %s, and in %s %s: only shards of one "+
				"configuration and one program build can be merged", p.Label, r.dir, a, other.dir, b)
		}
	}
	return nil
}

// gather returns the experiment's units, policy by policy and seed by seed.
func (e *Experiment) gather(shards []*record, warn func(string)) ([]*unit, error) {
	ids := map[string]string{}
	for _, p := range e.Policies {
		id, err := fingerprint(e, p)
		if err != nil {
			return nil, err
		}
		ids[p.Label] = id
	}
	found, from := map[unitKey]*unit{}, map[unitKey]string{}
	for _, m := range shards {
		path := filepath.Join(m.dir, "runs.jsonl")
		have, err := journalUnits(path, func(line int, why string) {
			warn(fmt.Sprintf("%s, line %d: %s: the run is left out", path, line, why))
		})
		if err != nil {
			return nil, err
		}
		twice := 0
		var example string
		for _, key := range slices.SortedFunc(maps.Keys(have), compareKeys) {
			u := have[key]
			switch old := found[key]; {
			case ids[key.policy] != key.fingerprint:
				// A run of an earlier configuration in the same directory, which Run would ignore too.
			case old == nil:
				found[key], from[key] = u, m.dir
			case !reflect.DeepEqual(old.Regret, u.Regret) || !reflect.DeepEqual(old.Diagnostics, u.Diagnostics):
				return nil, fmt.Errorf("%s and %s both have policy %s on seed %d, with different results: they "+
					"cannot be of one experiment and one processor type: play one of them again", from[key], m.dir,
					key.policy, key.seed)
			default:
				if twice++; twice == 1 {
					example = fmt.Sprintf("policy %s on seed %d of %s", key.policy, key.seed, from[key])
				}
			}
		}
		if twice > 0 {
			warn(fmt.Sprintf("%s repeats runs of other shards with equal results, %d in all, such as %s: each is "+
				"counted once", m.dir, twice, example))
		}
	}
	var units []*unit
	var lost []int
	for _, p := range e.Policies {
		for _, seed := range e.Seeds {
			u := found[unitKey{ids[p.Label], p.Label, seed}]
			if u == nil {
				lost = append(lost, len(units))
			}
			units = append(units, u)
		}
	}
	if len(lost) > 0 {
		return nil, e.missing(shards, lost)
	}
	return units, nil
}

func compareKeys(a, b unitKey) int {
	return cmp.Or(strings.Compare(a.policy, b.policy), cmp.Compare(a.seed, b.seed),
		strings.Compare(a.fingerprint, b.fingerprint))
}

// missing names the shards that contain the missing units.
func (e *Experiment) missing(shards []*record, lost []int) error {
	name := func(place int) string {
		return fmt.Sprintf("policy %s on seed %d", e.Policies[place/len(e.Seeds)].Label, e.Seeds[place%len(e.Seeds)])
	}
	of := shards[0].Shard.Of
	here := map[int]string{}
	for _, m := range shards {
		if m.Shard.Of != of {
			return fmt.Errorf("%s: %d of %d runs are in no shard, the first %s; the shards are of different "+
				"splits, %v in %s and %v in %s",
				e.Name, len(lost), len(e.Policies)*len(e.Seeds), name(lost[0]), shards[0].Shard, shards[0].dir, m.Shard,
				m.dir)
		}
		here[m.Shard.Index] = m.dir
	}
	var absent []string
	for index := 1; index <= of; index++ {
		if s := (Shard{index, of}); here[index] == "" && slices.ContainsFunc(lost, s.has) {
			absent = append(absent, s.String())
		}
	}
	if len(absent) > 0 {
		return fmt.Errorf("%s: these shards are missing: %s. Play them, and give their directories, too", e.Name,
			strings.Join(absent, ", "))
	}
	first := Shard{lost[0]%of + 1, of}
	return fmt.Errorf("%s: shard %v in %s is not complete: it lacks %s: give its command again",
		e.Name, first, here[first.Index], name(lost[0]))
}

// machines returns the shards' machine, or a list if there are several.
func machines(shards []*record) any {
	var list []any
	for _, m := range shards {
		if !slices.ContainsFunc(list, func(o any) bool { return reflect.DeepEqual(o, m.Machine) }) {
			list = append(list, m.Machine)
		}
	}
	if len(list) == 1 {
		return list[0]
	}
	return list
}
