package docs_test

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"

	"vitrine/internal/fatal"
)

var redraw = flag.String("draw", "", "draw these committed figures again, or all of them, and write their "+
	"fingerprints; bench/figures.sh does this")

// provenance is docs/figures/figures.toml: the sources of the committed figures.
type provenance struct {
	// Figures and tables of an older configuration, until their command runs again, such as main-theory.png and
	// docs/results.md, configuration 0123456789ab; and pages with tables without a comment.
	Waiting []string      `toml:"waiting,multiline"`
	Figures []drawnFigure `toml:"figure"`
}

// drawnFigure is a committed figure.
type drawnFigure struct {
	File          string   `toml:"file"`
	Command       string   `toml:"command"`       // plays and draws it
	Picture       string   `toml:"picture"`       // the file that it draws, in its --out
	Panels        []string `toml:"panels"`        // with the results shown
	Policies      []string `toml:"policies"`      // of the panels
	Seeds         int      `toml:"seeds"`         // of each panel
	Configuration string   `toml:"configuration"` // its fingerprint
	Content       string   `toml:"content"`       // the fingerprint of the picture itself
}

const provenanceFile = "figures/figures.toml"

func readProvenance(t *testing.T) (p provenance) {
	t.Helper()
	text := fatal.Or(os.ReadFile(provenanceFile))(t)
	fatal.If(t, toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(&p))
	return p
}

// waits reports whether what is named waits for its command. Where it does and
// is not stale any more, it must leave the list.
func (p provenance) waits(t *testing.T, name string, stale bool) bool {
	t.Helper()
	listed := slices.Contains(p.Waiting, name)
	if listed && !stale {
		t.Errorf("%s is of today's configuration: take it out of waiting in docs/%s", name, provenanceFile)
	}
	return listed
}

// describe fills in the played configuration.
func (f *drawnFigure) describe(t *testing.T, played []configuration) {
	f.Panels, f.Policies, f.Seeds = []string{}, union(played), len(played[0].Seeds)
	for _, c := range played {
		f.Panels = append(f.Panels, c.Experiment)
	}
	f.Configuration = fingerprint(t, played...)
}

func content(t *testing.T, path string) string {
	t.Helper()
	picture := fatal.Or(os.ReadFile(path))(t)
	return short(picture)
}

// Every committed figure is what its command draws: of today's configuration, unless figures.toml lists it as waiting.
func TestFiguresAreOfTheirConfiguration(t *testing.T) {
	p := readProvenance(t)
	if *redraw != "" {
		p.draw(t, strings.Fields(*redraw))
	}
	var files []string
	for _, f := range p.Figures {
		files = append(files, f.File)
		var today drawnFigure
		today.describe(t, configured(t, f.Command))
		stale := today.Configuration != f.Configuration
		name := strings.TrimSuffix(f.File, filepath.Ext(f.File))
		if !p.waits(t, f.File, stale) && stale {
			was := drawnFigure{Panels: f.Panels, Policies: f.Policies, Seeds: f.Seeds, Configuration: f.Configuration}
			t.Errorf("docs/figures/%s is of another configuration than `%s` plays today: run bench/figures.sh %s, or list %q as waiting in docs/%s until it is run\n-drawn +today:\n%s",
				f.File, f.Command, name, f.File, provenanceFile, cmp.Diff(was, today))
		}
		if content(t, filepath.Join("figures", f.File)) != f.Content {
			t.Errorf("docs/figures/%s is another picture than the one that was drawn: run bench/figures.sh %s", f.File,
				name)
		}
	}
	entries := fatal.Or(os.ReadDir("figures"))(t)
	for _, e := range entries {
		if !e.IsDir() && e.Name() != filepath.Base(provenanceFile) && !slices.Contains(files, e.Name()) {
			t.Errorf("docs/figures/%s is not in docs/%s, which says how it is drawn", e.Name(), provenanceFile)
		}
	}
}

// draw draws figures again and writes figures.toml.
func (p *provenance) draw(t *testing.T, names []string) {
	dir := t.TempDir()
	program := filepath.Join(dir, "vitrine")
	carry := func(name string, args ...string) {
		t.Logf("%s %s", filepath.Base(name), strings.Join(args, " "))
		command := exec.Command(name, args...)
		command.Stderr = os.Stderr
		fatal.If(t, command.Run())
	}
	carry("go", "build", "-o", program, "../cmd/vitrine")
	drawn := 0
	for i := range p.Figures {
		f := &p.Figures[i]
		name := strings.TrimSuffix(f.File, filepath.Ext(f.File))
		if !slices.Contains(names, "all") && !slices.Contains(names, name) {
			continue
		}
		drawn++
		out := filepath.Join(dir, name)
		carry(program, append(strings.Fields(f.Command)[1:], "--out", out)...)
		var played []configuration
		for _, c := range configured(t, f.Command) {
			played = append(played, recorded(t, out, c.Experiment))
		}
		picture := fatal.Or(os.ReadFile(filepath.Join(out, f.Picture)))(t)
		fatal.If(t, os.WriteFile(filepath.Join("figures", f.File), picture, 0o644))
		f.describe(t, played)
		f.Content = content(t, filepath.Join("figures", f.File))
		p.Waiting = slices.DeleteFunc(p.Waiting, func(w string) bool { return w == f.File })
	}
	if drawn == 0 {
		t.Fatalf("docs/%s has no figure of %s", provenanceFile, strings.Join(names, ", "))
	}
	var text bytes.Buffer
	text.WriteString(provenanceHead)
	fatal.If(t, toml.NewEncoder(&text).Encode(p))
	fatal.If(t, os.WriteFile(provenanceFile, text.Bytes(), 0o644))
}

const provenanceHead = `# The committed figures: what draws them, and of which configuration they are.
# bench/figures.sh draws them again and writes this file; a test in docs compares
# it with the experiments. A figure or a table that is known to be of an older
# configuration may stand in waiting until its command is run again.

`

// A picture of a page is a committed figure.
func TestPagesShowCommittedFigures(t *testing.T) {
	var files []string
	for _, f := range readProvenance(t).Figures {
		files = append(files, f.File)
	}
	shown := map[string]bool{}
	for page, text := range committedPages(t) {
		for _, m := range picture.FindAllStringSubmatch(text, -1) {
			file := filepath.Base(m[1])
			if filepath.Base(filepath.Dir(m[1])) == "desk" {
				continue // a picture of the desk
			}
			shown[file] = true
			if !slices.Contains(files, file) {
				t.Errorf("%s shows %s, which docs/%s does not have", page, m[1], provenanceFile)
			}
		}
	}
	for _, file := range files {
		if !shown[file] {
			t.Errorf("no page shows docs/figures/%s", file)
		}
	}
}

// The pictures of the desk on the pages exist and are not too large, and none is left over. make screenshots takes them
// again.
func TestPicturesOfTheDesk(t *testing.T) {
	shown := map[string]bool{}
	for _, text := range committedPages(t) {
		for _, m := range picture.FindAllStringSubmatch(text, -1) {
			if filepath.Base(filepath.Dir(m[1])) == "desk" {
				shown[filepath.Base(m[1])] = true
			}
		}
	}
	files := fatal.Or(os.ReadDir("figures/desk"))(t)
	for _, f := range files {
		if !shown[f.Name()] {
			t.Errorf("no page shows figures/desk/%s", f.Name())
		}
		delete(shown, f.Name())
		if info, err := f.Info(); err != nil || info.Size() > 150<<10 {
			t.Errorf("figures/desk/%s is larger than 150 KiB, %v", f.Name(), err)
		}
	}
	if len(shown) > 0 {
		t.Errorf("there are no pictures %v", shown)
	}
}
