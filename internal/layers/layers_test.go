package layers_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// table lists the directories of every layer, from 0 on; "." is the root.
var table = [][]string{
	{"service/api", "service/budget", "service/desk", "docs/algorithms", "paper/experiments", "internal/buildid", "internal/commandline",
		"internal/cpu",
		"internal/decompress", "internal/expect", "internal/extsort", "internal/fatal", "internal/fields", "internal/flock",
		"internal/freeport",
		"internal/hint", "internal/kernel", "internal/layers", "internal/long", "internal/option", "internal/panics", "internal/parallel",
		"internal/portable", "internal/precise", "internal/quantile", "internal/rapidseed", "internal/replace", "internal/scratch",
		"internal/stream", "internal/strict", "internal/wait", "internal/watch"},
	{".", "utility", "service/alert", "service/client", "service/eventlog", "service/expiry", "service/health", "service/live",
		"service/keys", "service/shoppers",
		"service/eventlog/natslog/natstest", "service/report", "internal/confseq", "internal/gram",
		"internal/settings", "internal/sockets", "internal/sparse", "internal/table", "paper/study"},
	{"assortment", "choice", "mle", "env", "service/importer/cell", "service/eventlog/filelog",
		"service/eventlog/memlog", "service/eventlog/natslog", "internal/text"},
	{"assortment/search", "offpolicy", "service/feature", "service/importer/items"},
	{"bandit", "service/catalogue", "paper/geometry", "paper/imdb", "service/demo", "service/load", "service/offer"},
	{"experiment", "bandit/policy", "mdp", "paper/tractability", "service/earnings", "service/feed", "service/past"},
	{"tune", "paper/sessions", "paper/theory", "service/earnings/abtest"},
	{"service/setup"},
	{"config", "figure", "service/learner", "service/page"},
	{"service/state"},
	{"service/engine"},
	{"bench/fitted", "bench/rounds", "service/metrics", "service/personalizer"},
	{"service/importer", "service/server"},
	{"service/host"},
	{"service/inspect", "service/sim"},
	{"service/judge"},
	{"cmd/vitrine", "bench", "bench/bma", "bench/choice", "bench/coverage", "bench/exponent", "bench/offpolicy",
		"bench/pessimism", "bench/replay", "bench/scale", "bench/sessions", "bench/soak", "bench/warm", "docs"},
}

// users lists the only packages allowed to import a restricted package.
var users = map[string][]string{
	"internal/kernel": {".", "assortment", "bandit", "choice", "internal/gram", "internal/sparse", "mdp", "mle", "utility"},
}

// parts lists the directories of the workbench and of the service. Neither part imports the other, and the library
// imports neither. The programs in the top layer may import both.
var parts = map[string][]string{
	"the service":   {"service", "bench/rounds"},
	"the workbench": {"experiment", "figure", "tune", "config", "paper"},
}

// part returns the part that a directory belongs to, or "" for the library and the programs.
func part(dir string) string {
	for name, dirs := range parts {
		for _, d := range dirs {
			if dir == d || strings.HasPrefix(dir, d+"/") {
				return name
			}
		}
	}
	return ""
}

// ground lists the packages of layer 0 that import no others of the module, and that layer 0 may import.
var ground = []string{"internal/hint", "internal/portable"}

// drawers lists package names that do not describe their content.
var drawers = []string{"util", "utils", "common", "helpers", "core", "base", "manager", "misc"}

func TestImportsGoDown(t *testing.T) {
	file := fatal.Or(os.ReadFile("../../go.mod"))(t)
	module := regexp.MustCompile(`(?m)^module (.*)$`).FindSubmatch(file)
	found := fatal.Or(violations(os.DirFS("../.."), string(module[1])))(t)
	for _, v := range found {
		t.Error(v)
	}
}

func TestViolations(t *testing.T) {
	imports := func(paths ...string) *fstest.MapFile {
		text := "package p\n"
		for _, p := range paths {
			text += fmt.Sprintf("import _ %q\n", p)
		}
		return &fstest.MapFile{Data: []byte(text)}
	}
	for _, c := range []struct {
		name, file string
		imports    []string
		want       []string
	}{
		{"down", "bandit/onl.go", []string{"fmt", "vitrine", "vitrine/mle", "gonum.org/v1/gonum/mat"}, nil},
		{"up", "vitrine.go", []string{"vitrine/bandit"},
			[]string{"vitrine.go (layer 1) imports vitrine/bandit (layer 4)"}},
		{"across", "mle/nll.go", []string{"vitrine/assortment"},
			[]string{"mle/nll.go (layer 2) imports vitrine/assortment (layer 2)"}},
		{"a test may look up", "utility/mlp_test.go", []string{"vitrine/bandit", "vitrine/bandit/bandittest"}, nil},
		{"a test may not import a program", "utility/mlp_test.go", []string{"vitrine/cmd/vitrine"},
			[]string{"utility/mlp_test.go (layer 1, test) imports vitrine/cmd/vitrine (layer 16)"}},
		{"a battery imports its package", "utility/utilitytest/t.go", []string{"vitrine/utility"}, nil},
		{"a battery does not import up", "utility/utilitytest/t.go", []string{"vitrine/mle"},
			[]string{"utility/utilitytest/t.go (layer 1, battery) imports vitrine/mle (layer 2)"}},
		{"a battery builds on a battery", "bandit/bandittest/t.go", []string{"vitrine/utility/utilitytest"}, nil},
		{"a battery is for tests", "bandit/onl.go", []string{"vitrine/utility/utilitytest"},
			[]string{"bandit/onl.go (layer 4) imports vitrine/utility/utilitytest (layer 1, battery)"}},
		{"a package that is not for everyone", "paper/geometry/minima.go", []string{"vitrine/internal/kernel"},
			[]string{"paper/geometry/minima.go imports vitrine/internal/kernel, which is only for ., assortment, " +
				"bandit, choice, internal/gram, internal/sparse, mdp, mle, utility"}},
		{"a test may import it", "paper/geometry/minima_test.go", []string{"vitrine/internal/kernel"}, nil},
		{"a package without a layer", "pricing/price.go", nil,
			[]string{"pricing has no layer: give it one in the table of internal/layers"}},
		{"an import without a layer", "bandit/onl.go", []string{"vitrine/pricing"},
			[]string{"bandit/onl.go (layer 4) imports vitrine/pricing (no layer)"}},
		{"the service does not import the workbench", "service/server/x.go", []string{"vitrine/experiment"}, []string{
			"service/server/x.go imports vitrine/experiment, which is in the workbench: only programs import two parts",
		}},
		{"the workbench does not import the service", "tune/x.go", []string{"vitrine/service/eventlog"}, []string{
			"tune/x.go imports vitrine/service/eventlog, which is in the service: only programs import two parts",
		}},
		{"the paper is in the workbench", "tune/x.go", []string{"vitrine/paper/experiments"}, nil},
		{"a program imports all parts", "cmd/vitrine/x.go",
			[]string{"vitrine/service/server", "vitrine/experiment"}, nil},

		{"the ground", "internal/kernel/exp.go", []string{"vitrine/internal/portable"}, nil},
		{"a drawer", "internal/utils/x.go", nil, []string{"internal/utils: name a package after what it holds"}},
		{"not Go's business", "figure/testdata/x.go", []string{"vitrine/cmd/vitrine"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.Equal(t, fatal.Or(violations(fstest.MapFS{c.file: imports(c.imports...)}, "vitrine"))(t), c.want)
		})
	}
}

// kind distinguishes the kinds of code within a layer.
type kind string

const (
	code    kind = ""
	battery kind = ", battery"
	test    kind = ", test"
)

// place is the position of a file.
type place struct {
	layer int // -1 if outside all layers
	kind  kind
}

func (p place) String() string {
	if p.layer < 0 {
		return "no layer"
	}
	return fmt.Sprintf("layer %d%s", p.layer, p.kind)
}

// locate finds a directory in the table. A directory that ends in "test" but is not in the table is a battery, next to
// the package it tests.
func locate(dir string) place {
	in := func(dir string) int {
		return slices.IndexFunc(table, func(dirs []string) bool { return slices.Contains(dirs, dir) })
	}
	if layer := in(dir); layer >= 0 || !strings.HasSuffix(dir, "test") {
		return place{layer: layer, kind: code}
	}
	return place{layer: in(path.Dir(dir)), kind: battery}
}

// mayImport implements the rule.
func (p place) mayImport(q place) bool {
	switch {
	case q.layer < 0:
		return false
	case p.kind == test:
		return q.layer < len(table)-1
	case p.kind == battery && q.kind == code:
		return q.layer <= p.layer
	case p.kind == code && q.kind == battery:
		return false
	default:
		return q.layer < p.layer
	}
}

// violations returns a line for each violation of the rules in the module of the given name.
func violations(root fs.FS, module string) (found []string, err error) {
	report := func(format string, args ...any) {
		if line := fmt.Sprintf(format, args...); !slices.Contains(found, line) {
			found = append(found, line)
		}
	}
	err = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return enter(root, name)
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		dir := path.Dir(name)
		if slices.Contains(drawers, path.Base(dir)) {
			report("%s: name a package after what it holds", dir)
			return nil
		}
		from := locate(dir)
		if from.layer < 0 {
			report("%s has no layer: give it one in the table of internal/layers", dir)
			return nil
		}
		if strings.HasSuffix(name, "_test.go") {
			from.kind = test
		}
		imported, err := importsOf(root, name, module)
		if err != nil {
			return err
		}
		for _, i := range imported {
			if to := locate(i); !slices.Contains(ground, i) && !from.mayImport(to) && !(from.kind == test && i == dir) {
				report("%s (%v) imports %s (%v)", name, from, path.Join(module, i), to)
			}
			if p := part(i); p != "" && p != part(dir) && from.kind != test && from.layer < len(table)-1 {
				report("%s imports %s, which is in %s: only programs import two parts", name, path.Join(module, i), p)
			}
			if by, ok := users[i]; ok && from.kind != test && !slices.Contains(by, dir) {
				report("%s imports %s, which is only for %s", name, path.Join(module, i), strings.Join(by, ", "))
			}
		}
		return nil
	})
	return found, err
}

// enter skips the same directories as the go command: testdata, names that start with a dot or an underscore, and other
// modules.
func enter(root fs.FS, dir string) error {
	if dir == "." {
		return nil
	}
	base := path.Base(dir)
	_, err := fs.Stat(root, path.Join(dir, "go.mod"))
	if base == "testdata" || base[0] == '.' || base[0] == '_' || err == nil {
		return fs.SkipDir
	}
	return nil
}

// importsOf returns the directories of the module that a file imports.
func importsOf(root fs.FS, name, module string) (dirs []string, err error) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		if imported == module {
			dirs = append(dirs, ".")
		} else if dir, ok := strings.CutPrefix(imported, module+"/"); ok {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}
