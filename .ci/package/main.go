// Command package packs the programs of a release: archives, packages for Debian and RPM, an image, a bill of materials, a formula for
// Homebrew and a file for Nix. The same programs give the same bytes. .ci/release runs it.
package main

import (
	"bytes"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"package/licences"
)

// release is what is packed.
type release struct {
	Version, Commit string
	URL             string // of the directory that will hold the files
	Module          string
	Archives        map[string]archive // by target, such as linux/amd64

	date     time.Time
	root     string // of the tree
	programs string // the directory with vitrine-linux-amd64 and so on
	out      string
	targets  []string
	common   []file // of every archive
	modules  []*licences.Module
}

// archive is a file of the release and its SHA-256.
type archive struct {
	Name string
	sum  [32]byte
}

func (a archive) Hex() string { return hex.EncodeToString(a.sum[:]) }
func (a archive) SRI() string { return "sha256-" + base64.StdEncoding.EncodeToString(a.sum[:]) }

//go:embed files
var files embed.FS

func main() {
	r := &release{root: "../..", Archives: map[string]archive{}}
	flag.StringVar(&r.Version, "version", "", "the `version`")
	flag.StringVar(&r.Commit, "commit", "", "the `commit`")
	flag.StringVar(&r.URL, "url", "", "the `address` of the directory that will hold the files")
	flag.StringVar(&r.programs, "programs", "", "the `directory` with the programs that .ci/dist built")
	flag.StringVar(&r.out, "out", "", "the `directory` to write to")
	date := flag.String("date", "", "the commit's `time`")
	host := flag.String("host", "", "a `program` that runs here, which prints the manual and the completions")
	flag.Parse()
	r.targets = flag.Args()
	work = must(os.MkdirTemp("", "package-"))
	defer os.RemoveAll(work)
	r.date = must(time.Parse(time.RFC3339, *date))
	r.Module = strings.TrimSpace(string(command(r.root, "go", "list", "-m")))
	r.modules = must(licences.Linked(r.root, r.targets))
	r.describe(*host)
	for _, target := range r.targets {
		r.archive(target)
		if system, machine, _ := strings.Cut(target, "/"); system == "linux" {
			r.install("deb", machine)
			r.install("rpm", machine)
		}
	}
	r.image()
	r.bill()
	r.fill("vitrine.rb")
	r.fill("vitrine.nix")
	r.deploy()
}

// work is a temporary directory.
var work string

// check ends the program if there is an error: a release is complete or fails.
func check(err error) {
	if err != nil {
		os.RemoveAll(work)
		fmt.Fprintln(os.Stderr, "package:", err)
		os.Exit(1)
	}
}

// must returns a value, or ends the program if there is an error.
func must[V any](v V, err error) V {
	check(err)
	return v
}

// read reads a file of the tree.
func (r *release) read(name string) []byte { return must(os.ReadFile(filepath.Join(r.root, name))) }

// write writes a file of the release.
func (r *release) write(name string, body []byte) {
	check(os.WriteFile(filepath.Join(r.out, name), body, 0o644))
}

// describe makes the files that every archive has.
func (r *release) describe(host string) {
	var notices bytes.Buffer
	check(licences.Notices(&notices, r.root, r.modules))
	r.common = []file{{name: "THIRD-PARTY-NOTICES.txt", body: notices.Bytes()},
		{name: "defaults.toml", body: r.read("deploy/defaults.toml")}}
	for _, name := range []string{"LICENSE", "CHANGELOG.md"} {
		r.common = append(r.common, file{name: name, body: r.read(name)})
	}
	for name, args := range map[string][]string{
		"vitrine.1": {"man"}, "completions/vitrine.bash": {"completion", "bash"},
		"completions/_vitrine":     {"completion", "zsh"},
		"completions/vitrine.fish": {"completion", "fish"}, "completions/vitrine.ps1": {"completion", "powershell"},
	} {
		r.common = append(r.common, file{name: name, body: command(r.root, host, args...)})
	}
}

// find returns the common file of a name.
func (r *release) find(name string) []byte {
	for _, f := range r.common {
		if f.name == name {
			return f.body
		}
	}
	panic("there is no " + name)
}

// program reads the program of a target.
func (r *release) program(target string) []byte {
	name := "vitrine-" + strings.ReplaceAll(target, "/", "-")
	if strings.HasPrefix(target, "windows/") {
		name += ".exe"
	}
	return must(os.ReadFile(filepath.Join(r.programs, name)))
}

// fill writes a file from its template.
func (r *release) fill(name string) {
	t := must(template.ParseFS(files, "files/"+name+".tmpl"))
	var out bytes.Buffer
	check(t.Execute(&out, r))
	r.write(name, out.Bytes())
}

// Brew returns the archives by the formula's names of systems and processors.
func (r *release) Brew() map[string]map[string]archive {
	found := map[string]map[string]archive{}
	for target, a := range r.Archives {
		system, machine, _ := strings.Cut(target, "/")
		on := map[string]string{"darwin": "macos", "linux": "linux"}[system]
		if on == "" {
			continue
		}
		if found[on] == nil {
			found[on] = map[string]archive{}
		}
		found[on][map[string]string{"amd64": "intel", "arm64": "arm"}[machine]] = a
	}
	return found
}

// Nix returns the archives by Nix's names of platforms.
func (r *release) Nix() map[string]archive {
	found := map[string]archive{}
	for target, a := range r.Archives {
		system, machine, _ := strings.Cut(target, "/")
		if system != "windows" {
			found[map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[machine]+"-"+system] = a
		}
	}
	return found
}

func command(dir, name string, args ...string) []byte {
	c := exec.Command(name, args...)
	c.Dir, c.Stderr = dir, os.Stderr
	out, err := c.Output()
	if err != nil {
		check(fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err))
	}
	return out
}
