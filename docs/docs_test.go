package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"

	"vitrine/config"
	"vitrine/docs/algorithms"
)

// pages returns the Markdown files below a directory, by path.
func pages(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		found[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

var (
	link      = regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`)
	reference = regexp.MustCompile("`([\\w/]+\\.go)`((?:,? `[\\w.]+`)+)")
	quoted    = regexp.MustCompile("`([^`]+)`")
	option    = regexp.MustCompile("^\\| `(\\w+)` \\| `([^`]+)` \\|")
)

func TestRelativeLinksResolve(t *testing.T) {
	for page, text := range pages(t, ".") {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s: link to %s: %v", page, m[1], err)
			}
		}
	}
}

// A reference is a file of the module and identifiers that it declares,
//
//	`bandit/onl.go` `ONL.beta`, `FitOptions.Lambda`
//
// Every row of a table of symbols or tests has one.
func TestReferencesAreDeclared(t *testing.T) {
	for page, text := range pages(t, "algorithms") {
		table := false
		for _, line := range strings.Split(text, "\n") {
			isRow := strings.HasPrefix(line, "| ")
			switch refs := reference.FindAllStringSubmatch(line, -1); {
			case strings.HasSuffix(line, "| in the code |") || strings.HasSuffix(line, "| test |"):
				table = true
			case table && isRow && len(refs) == 0:
				t.Errorf("%s: no reference in %s", page, line)
			default:
				table = table && strings.HasPrefix(line, "|")
				for _, ref := range refs {
					names := declared(t, filepath.Join("..", ref[1]))
					for _, m := range quoted.FindAllStringSubmatch(ref[2], -1) {
						if !names[m[1]] {
							t.Errorf("%s: %s does not declare %s", page, ref[1], m[1])
						}
					}
				}
			}
		}
	}
}

// declared returns the names that a file declares: functions, methods as
// T.M, types, their fields and interface methods as T.F, variables and
// constants.
func declared(t *testing.T, path string) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				recv := d.Recv.List[0].Type
				if star, ok := recv.(*ast.StarExpr); ok {
					recv = star.X
				}
				name = recv.(*ast.Ident).Name + "." + name
			}
			names[name] = true
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					for _, n := range s.Names {
						names[n.Name] = true
					}
				case *ast.TypeSpec:
					names[s.Name.Name] = true
					for _, f := range members(s.Type) {
						for _, n := range f.Names {
							names[s.Name.Name+"."+n.Name] = true
						}
					}
				}
			}
		}
	}
	return names
}

func members(e ast.Expr) []*ast.Field {
	switch e := e.(type) {
	case *ast.StructType:
		return e.Fields.List
	case *ast.InterfaceType:
		return e.Methods.List
	}
	return nil
}

// Under a heading "Options of `a` and `b`" each row of the table is an option
// of a and of b, with its default as a file would have it. A policy has one if the
// catalog gives it a page, which must exist.
func TestOptionsAreTheCatalogs(t *testing.T) {
	documented := map[string]map[string]any{}
	for page, text := range pages(t, "algorithms") {
		var policies []string
		for _, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(line, "#") {
				policies = nil
				if strings.HasPrefix(line, "## Options of ") {
					for _, m := range quoted.FindAllStringSubmatch(line, -1) {
						policies = append(policies, m[1])
						if documented[m[1]] == nil {
							documented[m[1]] = map[string]any{}
						}
					}
				}
			}
			m := option.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			var value struct{ V any }
			if err := toml.Unmarshal([]byte("V = "+m[2]), &value); err != nil {
				t.Errorf("%s: %s = %s: %v", page, m[1], m[2], err)
			}
			for _, p := range policies {
				documented[p][m[1]] = value.V
			}
		}
	}
	catalog := map[string]map[string]any{}
	for _, d := range config.Descriptions() {
		if d.Page == "" {
			continue
		}
		if _, err := algorithms.Page(d.Page); err != nil {
			t.Errorf("%s: %v", d.Name, err)
		}
		catalog[d.Name] = defaults(t, d.Name)
	}
	if diff := cmp.Diff(catalog, documented); diff != "" {
		t.Errorf("options (-catalog +pages):\n%s", diff)
	}
}

// defaults returns the settings of a policy of which a file says nothing but
// what it must.
func defaults(t *testing.T, policy string) map[string]any {
	t.Helper()
	load := func(utility string) (*config.File, error) {
		return config.Load("x.toml", []byte("name = \"x\"\nitems = 20\ncontexts.kind = \"gaussian\"\ntruth.kind = \"linear\"\n"+
			"[[policy]]\nname = \""+policy+"\"\n"+utility))
	}
	f, err := load("")
	if err != nil {
		f, err = load("utility.kind = \"linear\"\n")
	}
	if err != nil {
		t.Fatal(err)
	}
	e, err := f.Experiment(config.Selection{}, "")
	if err != nil {
		t.Fatal(err)
	}
	settings := e.Policies[0].Settings.(map[string]any)
	delete(settings, "name")
	delete(settings, "utility")
	return settings
}
