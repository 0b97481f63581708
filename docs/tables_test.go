package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	picture = regexp.MustCompile(`!\[[^\]]*\]\(([^)]+)\)`)
	// A comment above a table of regrets names what plays it:
	//
	//	<!-- table: vitrine reproduce main --baselines both; without oracle; configuration 0123456789ab -->
	//
	// Several commands are joined by " + ". columns names the experiments of the
	// columns where they are not all those of the commands, in their order.
	tableComment = regexp.MustCompile(`^<!-- table: (.*) -->$`)
	sizeOf       = regexp.MustCompile(`([a-z]) = ([0-9]+)`)
)

// committedPages returns the README and the pages of docs, by their path in the
// module.
func committedPages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for page, text := range pages(t, ".") {
		all["docs/"+filepath.ToSlash(page)] = text
	}
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	all["README.md"] = string(text)
	return all
}

// regretTable is a table of regrets in a page.
type regretTable struct {
	page          string
	line          int
	commands      string // as in the comment
	columns       []string
	without       []string
	configuration string
	heads, rows   []string // its columns and policies
}

// where names the table in a message, and name in figures.toml.
func (r regretTable) where() string { return fmt.Sprintf("%s:%d", r.page, r.line) }
func (r regretTable) name() string  { return r.page + ", configuration " + r.configuration }

// tables returns the tables of the page that have a comment, and the lines of
// those with policies and ± that have none.
func tables(t *testing.T, page, text string) (all []regretTable, bare []int) {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "| policy |") || i+2 >= len(lines) || !strings.Contains(lines[i+2], "±") {
			continue
		}
		r := regretTable{page: page, line: i + 1, heads: cells(line)[1:]}
		for _, row := range lines[i+2:] {
			if !strings.HasPrefix(row, "|") {
				break
			}
			r.rows = append(r.rows, rowLabel(cells(row)[0]))
		}
		var m []string
		if i > 0 {
			m = tableComment.FindStringSubmatch(lines[i-1])
		}
		if m == nil {
			bare = append(bare, i+1)
			continue
		}
		if m[1] == "of something else" {
			continue
		}
		for k, part := range strings.Split(m[1], "; ") {
			key, value, _ := strings.Cut(part, " ")
			switch {
			case k == 0:
				r.commands = part
			case key == "columns":
				r.columns = strings.Split(value, ", ")
			case key == "without":
				r.without = strings.Split(value, ", ")
			case key == "configuration":
				r.configuration = value
			default:
				t.Errorf("%s:%d: the comment of a table has no %q: it has columns, without and configuration", page, i, key)
			}
		}
		all = append(all, r)
	}
	return all, bare
}

func cells(row string) (cells []string) {
	for _, c := range strings.Split(strings.Trim(row, "| "), " | ") {
		cells = append(cells, strings.TrimSpace(c))
	}
	return cells
}

// rowLabel is the label of the policy of a row: **onl-mnl**, greedy (no bonus),
// *tuned:* ucb-mnl.
func rowLabel(cell string) string {
	cell, _, _ = strings.Cut(strings.NewReplacer("*", "", "`", "").Replace(cell), " (")
	cell = strings.TrimPrefix(cell, "theory: ")
	if label, ok := strings.CutPrefix(cell, "tuned: "); ok {
		return label + "-tuned"
	}
	return cell
}

// words are those of a head or of an experiment's name: n100 for N = 100.
func words(name string) []string {
	name = sizeOf.ReplaceAllString(strings.ToLower(name), "$1$2")
	return strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune(" ,-", r) })
}

// problems compares the table with what its commands play today.
func (r regretTable) problems(t *testing.T) (problems []string) {
	t.Helper()
	var played []configuration
	for _, command := range strings.Split(r.commands, " + ") {
		played = append(played, configured(t, command)...)
	}
	if r.columns != nil {
		var chosen []configuration
		for _, name := range r.columns {
			i := slices.IndexFunc(played, func(c configuration) bool { return c.Experiment == name })
			if i < 0 {
				return []string{"its commands do not play " + name}
			}
			chosen = append(chosen, played[i])
		}
		played = chosen
	}
	problem := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if len(r.heads) < len(played) {
		problem("it has %d columns, and its commands play %d experiments", len(r.heads), len(played))
	}
	var vocabulary []string
	for _, c := range played {
		vocabulary = append(vocabulary, words(c.Experiment)...)
	}
	for i, c := range played[:min(len(played), len(r.heads))] {
		for _, w := range words(r.heads[i]) {
			if slices.Contains(vocabulary, w) && !slices.Contains(words(c.Experiment), w) {
				problem("column %q stands where %s should", r.heads[i], c.Experiment)
			}
		}
	}
	labels := slices.DeleteFunc(union(played), func(l string) bool { return slices.Contains(r.without, l) })
	if !slices.Equal(labels, r.rows) {
		problem("it has the rows %s, and its commands play %s", strings.Join(r.rows, ", "), strings.Join(labels, ", "))
	}
	for i := range played {
		played[i].Policies = slices.DeleteFunc(played[i].Policies, func(s settings) bool { return !slices.Contains(r.rows, s.Label) })
	}
	if today := fingerprint(t, played...); today != r.configuration {
		problem("its numbers are of configuration %s, and its commands play %s", r.configuration, today)
	}
	return problems
}

// check reports a table that is not of today's configuration and does not wait.
func (r regretTable) check(t *testing.T, p provenance) {
	t.Helper()
	problems := r.problems(t)
	if !p.waits(t, r.name(), len(problems) > 0) && len(problems) > 0 {
		t.Errorf("%s: the table is of another configuration: %s. Run `%s` and write its numbers and the configuration, or list %q as waiting in docs/%s until it is run",
			r.where(), strings.Join(problems, "; "), strings.Join(strings.Split(r.commands, " + "), "` and `"), r.name(), provenanceFile)
	}
}

// A table of regrets has the policies and the panels that its commands play, and
// is of today's configuration, unless figures.toml lists it as waiting.
func TestTablesAreOfTheirConfiguration(t *testing.T) {
	p := readProvenance(t)
	var names []string
	for _, f := range p.Figures {
		names = append(names, f.File)
	}
	for page, text := range committedPages(t) {
		all, bare := tables(t, page, text)
		for _, r := range all {
			names = append(names, r.name())
			r.check(t, p)
		}
		names = append(names, page)
		if !p.waits(t, page, len(bare) > 0) {
			for _, line := range bare {
				t.Errorf("%s:%d: a table of regrets without a comment above it: <!-- table: vitrine reproduce …; configuration … -->, or <!-- table: of something else -->", page, line)
			}
		}
	}
	for _, w := range p.Waiting {
		if !slices.Contains(names, w) {
			t.Errorf("docs/%s: %q waits, and there is no such figure, table or page", provenanceFile, w)
		}
	}
}

// The test above finds what can be wrong with a table.
func TestTableProblems(t *testing.T) {
	const command = "vitrine reproduce main-uniform --seeds 2 --policies ucb-mnl,uniform"
	const right = "| policy | realizable | misspecified, uniform |\n|---|---|---|\n| *theory:* ucb-mnl | 1 ± 1 | 2 ± 1 |\n| uniform (no bonus) | 3 | 4 |\n"
	hash := fingerprint(t, configured(t, "vitrine reproduce main-uniform-realizable main-uniform-misspecified --seeds 2 --policies ucb-mnl,uniform")...)
	for _, c := range []struct{ name, comment, table, want string }{
		{"right", command + "; configuration " + hash, right, ""},
		{"other seeds", "vitrine reproduce main-uniform --policies ucb-mnl,uniform; configuration " + hash, right, "its numbers are of configuration " + hash},
		{"an older configuration", command + "; configuration 0123", right, "its numbers are of configuration 0123"},
		{"a row too few", "vitrine reproduce main-uniform --seeds 2 --policies ucb-mnl,uniform,oracle; configuration " + hash, right, "its commands play ucb-mnl, uniform, oracle"},
		{"a row that is named", "vitrine reproduce main-uniform --seeds 2 --policies ucb-mnl,uniform,oracle; without oracle; configuration " + hash, right, ""},
		{"rows in another order", command + "; configuration " + hash, strings.NewReplacer("*theory:* ucb-mnl", "uniform", "uniform (no bonus)", "ucb-mnl").Replace(right), "it has the rows uniform, ucb-mnl"},
		{"columns in another order", command + "; configuration " + hash, strings.Replace(right, "| realizable | misspecified, uniform |", "| misspecified | realizable, uniform |", 1), "column \"misspecified\" stands where main-uniform-realizable should"},
		{"a column too few", command + "; configuration " + hash, strings.Replace(right, " | misspecified, uniform |", " |", 1), "it has 1 columns, and its commands play 2"},
		{"columns that are not played", command + "; columns imdb; configuration " + hash, right, "its commands do not play imdb"},
	} {
		all, bare := tables(t, "page.md", "text\n<!-- table: "+c.comment+" -->\n"+c.table)
		if len(all) != 1 || len(bare) != 0 {
			t.Fatalf("%s: %d tables, %d without a comment", c.name, len(all), len(bare))
		}
		if got := strings.Join(all[0].problems(t), "; "); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if _, bare := tables(t, "page.md", right); !slices.Equal(bare, []int{1}) {
		t.Errorf("tables without a comment are on the lines %v", bare)
	}
}
