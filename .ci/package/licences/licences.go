// Package licences collects the licences of what is linked into the program.
package licences

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/licensecheck"
)

// Module is a module linked into a program, or a package for npm in its desk.
type Module struct {
	Registry      string // golang or npm, as in package URLs
	Path, Version string
	Licences      []string          // SPDX identifiers
	texts         map[string][]byte // by file; for npm, the build of the desk collects them
}

// allowed lists the licences whose terms a release keeps by printing them.
var allowed = []string{"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0", "OFL-1.1",
	"Unlicense"}

// chosen are licences that people had to find, by the module's path: the file and its SPDX identifier.
var chosen = map[string][2]string{
	"github.com/ajstarks/svgo":   {"LICENSE", "CC-BY-4.0"},
	"github.com/golang/freetype": {"licenses/ftl.txt", "FTL"},
}

// text matches the names of files with a licence or notice.
var text = regexp.MustCompile(`(?i)^((un)?licen[cs]e|copying|copyright|notice|patents)`)

// licence matches the names of files that must contain a known licence.
var licence = regexp.MustCompile(`(?i)^((un)?licen[cs]e|copying)`)

type listed struct {
	ImportPath, Dir string
	Standard        bool
	Module          *struct {
		Path, Version, Dir string
		Main               bool
		Replace            *struct{ Path string }
	}
}

// Linked returns the modules linked into cmd/vitrine for systems and machines such as linux/amd64, sorted by path. The first one is Go
// itself, the last ones are the desk's packages for npm. It returns an error if a module has no licence, or one that is not allowed.
func Linked(root string, targets []string) ([]*Module, error) {
	goroot, err := output(root, nil, "go", "env", "GOROOT", "GOVERSION")
	if err != nil {
		return nil, err
	}
	dir, version, _ := strings.Cut(strings.TrimSpace(string(goroot)), "\n")
	std := &Module{Registry: "golang", Path: "std", Version: strings.TrimPrefix(version, "go"),
		texts: map[string][]byte{}}
	if err := std.collect(dir, dir); err != nil {
		return nil, err
	}
	found := map[string]*Module{}
	for _, target := range targets {
		system, machine, _ := strings.Cut(target, "/")
		list, err := output(root, []string{"GOOS=" + system, "GOARCH=" + machine, "CGO_ENABLED=0", "GOFLAGS="}, "go",
			"list", "-deps", "-json=ImportPath,Dir,Standard,Module", "./cmd/vitrine")
		if err != nil {
			return nil, err
		}
		for d := json.NewDecoder(bytes.NewReader(list)); ; {
			var p listed
			if err := d.Decode(&p); err == io.EOF {
				break
			} else if err != nil {
				return nil, err
			}
			if p.Standard || p.Module == nil || p.Module.Main {
				continue
			}
			m := found[p.Module.Path]
			if m == nil {
				m = &Module{Registry: "golang", Path: p.Module.Path, Version: p.Module.Version,
					texts: map[string][]byte{}}
				found[m.Path] = m
			}
			if err := m.collect(p.Dir, p.Module.Dir); err != nil {
				return nil, err
			}
		}
	}
	modules := []*Module{std}
	for _, m := range found {
		modules = append(modules, m)
	}
	slices.SortFunc(modules[1:], func(a, b *Module) int { return strings.Compare(a.Path, b.Path) })
	var problems []error
	for _, m := range modules {
		problems = append(problems, m.classify())
	}
	desk, err := deskPackages(root)
	return append(modules, desk...), errors.Join(append(problems, err)...)
}

// deskPackages returns the packages for npm that the desk's files contain.
func deskPackages(root string) (packages []*Module, err error) {
	text, err := os.ReadFile(filepath.Join(root, "service/desk/web/package-lock.json"))
	if err != nil {
		return nil, err
	}
	var lock struct {
		Packages map[string]struct {
			Version, License string
			Dev              bool
		}
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		return nil, err
	}
	for _, path := range slices.Sorted(maps.Keys(lock.Packages)) {
		p := lock.Packages[path]
		name, ok := strings.CutPrefix(path, "node_modules/")
		if !ok || p.Dev {
			continue
		}
		if !slices.Contains(allowed, p.License) {
			return nil, fmt.Errorf("%s@%s is %s, which a release may not have", name, p.Version, p.License)
		}
		packages = append(packages, &Module{Registry: "npm", Path: name, Version: p.Version,
			Licences: []string{p.License}})
	}
	return packages, nil
}

// collect reads the licences in a directory and in those above it, up to the module's own.
func (m *Module) collect(dir, top string) error {
	if c, ok := chosen[m.Path]; ok {
		text, err := os.ReadFile(filepath.Join(top, c[0]))
		m.texts[c[0]] = text
		return err
	}
	for ; ; dir = filepath.Dir(dir) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !e.Type().IsRegular() || !text.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
				continue
			}
			path := filepath.Join(dir, e.Name())
			name, err := filepath.Rel(top, path)
			if err != nil {
				return err
			}
			if m.texts[filepath.ToSlash(name)], err = os.ReadFile(path); err != nil {
				return err
			}
		}
		if dir == top {
			return nil
		}
	}
}

// classify finds the licences in the texts.
func (m *Module) classify() error {
	if c, ok := chosen[m.Path]; ok {
		m.Licences = []string{c[1]}
		return nil
	}
	for _, name := range m.names() {
		if !licence.MatchString(filepath.Base(name)) {
			continue
		}
		cover := licensecheck.Scan(m.texts[name])
		if cover.Percent < 75 {
			return fmt.Errorf("%s@%s: %s is no licence that is known: read it, and add it to .ci/package/licences "+
				"if a release may have it", m.Path, m.Version, name)
		}
		for _, match := range cover.Match {
			if !slices.Contains(allowed, match.ID) {
				return fmt.Errorf("%s@%s: %s is %s, which a release may not have", m.Path, m.Version, name, match.ID)
			}
			if !slices.Contains(m.Licences, match.ID) {
				m.Licences = append(m.Licences, match.ID)
			}
		}
	}
	if len(m.Licences) == 0 {
		return fmt.Errorf("%s@%s has no licence", m.Path, m.Version)
	}
	slices.Sort(m.Licences)
	return nil
}

func (m *Module) names() []string { return slices.Sorted(maps.Keys(m.texts)) }

// Notices prints the modules with their licences, and then the licences of the packages for npm in the desk.
func Notices(w io.Writer, root string, modules []*Module) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "The program vitrine contains the modules below, under their own licences. The source of "+
		"each is in the Go module proxy\nunder the path and version given here.\n")
	line := strings.Repeat("=", 100)
	for _, m := range modules {
		if m.Registry == "npm" {
			continue
		}
		fmt.Fprintf(&out, "\n%s\n%s %s (%s)\n%s\n", line, m.Path, m.Version, strings.Join(m.Licences, ", "), line)
		for _, name := range m.names() {
			text := m.texts[name]
			if !utf8.Valid(text) {
				text = fromLatin1(text)
			}
			fmt.Fprintf(&out, "\n--- %s\n\n%s\n", name,
				bytes.TrimSpace(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))))
		}
	}
	desk, err := os.ReadFile(filepath.Join(root, "service/desk/dist/desk/licenses.md"))
	if err != nil {
		return err
	}
	fmt.Fprintf(&out, "\n%s\nThe desk\n%s\n\n%s\n", line, line, bytes.TrimSpace(desk))
	_, err = w.Write(out.Bytes())
	return err
}

// fromLatin1 converts a text from ISO 8859-1 to UTF-8.
func fromLatin1(text []byte) []byte {
	runes := make([]rune, len(text))
	for i, b := range text {
		runes[i] = rune(b)
	}
	return []byte(string(runes))
}

func output(dir string, env []string, name string, args ...string) ([]byte, error) {
	c := exec.Command(name, args...)
	c.Dir, c.Env, c.Stderr = dir, append(os.Environ(), env...), os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return out, nil
}
