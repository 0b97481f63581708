package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"vitrine/config"
	"vitrine/docs/algorithms"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
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
	fatal.If(t, err)
	return found
}

var (
	link      = regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`)
	reference = regexp.MustCompile("`([\\w/]+\\.go)`((?:,? `[\\w.]+`)+)")
	quoted    = regexp.MustCompile("`([^`]+)`")
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

// A record of a decision gives the context, the decision and its consequences, on at most 25 lines of 120 characters,
// and the index lists it once.
func TestDecisionsAreShortAndListed(t *testing.T) {
	const most, width = 25, 120
	part := regexp.MustCompile(`(?m)^\*\*[^*]+\*\*`)
	decisions, list := pages(t, "adr"), ""
	for _, path := range slices.Sorted(maps.Keys(decisions)) {
		name := filepath.Base(path)
		if name == "README.md" {
			continue
		}
		list += "[" + name[:4] + "](" + name + ")\n"
		text := decisions[path]
		n := -1 // after the last line there is an empty one
		for line := range strings.SplitSeq(text, "\n") {
			n += 1 + max(utf8.RuneCountInString(line)-1, 0)/width
		}
		if n > most {
			t.Errorf("%s has %d lines of %d characters", path, n, width)
		}
		expect.Equal(t, part.FindAllString(text, -1), []string{"**Context.**", "**Decision.**", "**Consequences.**"},
			path, "-the parts of a decision +its parts")
	}
	var listed []string
	for _, m := range regexp.MustCompile(`(?m)^- (\[\d{4}\]\(\d{4}-[\w-]+\.md\)) \S`).FindAllStringSubmatch(
		decisions[filepath.Join("adr", "README.md")], -1) {
		listed = append(listed, m[1]+"\n")
	}
	slices.Sort(listed)
	expect.Equal(t, strings.Join(listed, ""), list, "the list in adr/README.md")
}

// A reference is a file of the module and identifiers that it declares,
//
//	`bandit/onl.go` `ONL.beta`, `FitOptions.Lambda`
//
// Every row of a table of symbols has one.
func TestReferencesAreDeclared(t *testing.T) {
	for page, text := range pages(t, "algorithms") {
		table := false
		for _, line := range strings.Split(text, "\n") {
			isRow := strings.HasPrefix(line, "| ")
			switch refs := reference.FindAllStringSubmatch(line, -1); {
			case strings.HasSuffix(line, "| in the code |"):
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
	file := fatal.Or(parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution))(t)
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

// A policy has a page if the catalog gives it one. The page says how to print the policy's options.
func TestPagesOfPolicies(t *testing.T) {
	for _, d := range config.Descriptions() {
		if d.Page == "" {
			continue
		}
		page, err := algorithms.Page(d.Page)
		if err != nil {
			t.Errorf("%s: %v", d.Name, err)
		} else if len(d.Options) > 0 && !strings.Contains(page, "`vitrine describe "+d.Name+"`") {
			t.Errorf("docs/algorithms/%s.md does not name the command vitrine describe %s", d.Page, d.Name)
		}
	}
}
