package docs_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"vitrine/internal/fatal"
)

var (
	picture = regexp.MustCompile(`!\[[^\]]*\]\(([^)]+)\)`)
	// A comment above a table of regrets names its commands:
	//
	//	<!-- table: vitrine reproduce main --baselines both; without oracle; configuration 0123456789ab; numbers 0123456789ab -->
	//
	// Several commands are joined by " + ". columns names the experiments of the columns if they are not all of the
	// commands' in their order. numbers is the fingerprint of the cells, which -played writes from the results.
	tableComment = regexp.MustCompile(`^<!-- table: (.*) -->$`)
	sizeOf       = regexp.MustCompile(`([a-z]) = ([0-9]+)`)
)

var writeFrom = flag.String("played", "", "write the tables of regrets again, means and errors, from the results "+
	"in this directory")

// committedPages returns the README and the pages of docs, by their path in the
// module.
func committedPages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for page, text := range pages(t, ".") {
		all["docs/"+filepath.ToSlash(page)] = text
	}
	text := fatal.Or(os.ReadFile("../README.md"))(t)
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
	numbers       string
	heads, rows   []string   // its columns and policies
	cells         [][]string // of each row
}

// where names the table in a message, and name in figures.toml.
func (r regretTable) where() string { return fmt.Sprintf("%s:%d", r.page, r.line) }
func (r regretTable) name() string  { return r.page + ", configuration " + r.configuration }

// tables returns the tables of the page with a comment, and the lines of tables with policies and ± but without one.
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
			c := cells(row)
			r.rows, r.cells = append(r.rows, rowLabel(c[0])), append(r.cells, c[1:])
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
			case key == "numbers":
				r.numbers = value
			default:
				t.Errorf("%s:%d: the comment of a table has no %q: it has columns, without, configuration and numbers",
					page, i, key)
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

// experiments returns what the commands play in the table's columns, all policies; or the name of a column's experiment that
// they do not play.
func (r regretTable) experiments(t *testing.T) (played []configuration, missing string) {
	t.Helper()
	for _, command := range strings.Split(r.commands, " + ") {
		played = append(played, configured(t, command)...)
	}
	if r.columns == nil {
		return played, ""
	}
	var chosen []configuration
	for _, name := range r.columns {
		i := slices.IndexFunc(played, func(c configuration) bool { return c.Experiment == name })
		if i < 0 {
			return nil, name
		}
		chosen = append(chosen, played[i])
	}
	return chosen, ""
}

// only keeps the policies of the rows.
func (r regretTable) only(played []configuration) []configuration {
	for i := range played {
		played[i].Policies = slices.DeleteFunc(played[i].Policies, func(s settings) bool {
			return !slices.Contains(r.rows, s.Label)
		})
	}
	return played
}

// problems compares the table with what its commands play today, and its numbers with those that were written.
func (r regretTable) problems(t *testing.T) (problems []string) {
	t.Helper()
	played, missing := r.experiments(t)
	if missing != "" {
		return []string{"its commands do not play " + missing}
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
	if today := fingerprint(t, r.only(played)...); today != r.configuration {
		problem("its numbers are of configuration %s, and its commands play %s", r.configuration, today)
	}
	if now := fingerprintOf(r.cells); now != r.numbers {
		problem("its means and errors are not those that were written from what was played")
	}
	return problems
}

// fingerprintOf returns the fingerprint of a table's cells.
func fingerprintOf(cells [][]string) string { return short(fmt.Append(nil, cells)) }

// The shapes of cells: mean ± standard deviation; mean (paired difference from the first row ± its standard error); and that
// difference alone.
var (
	meanSD     = regexp.MustCompile(`^[0-9.]+ ± [0-9.]+$`)
	meanPaired = regexp.MustCompile(`^[0-9.]+ \([+−][0-9.]+ ± [0-9.]+\)$`)
	paired     = regexp.MustCompile(`^[+−][0-9.]+ ± [0-9.]+$`)
)

// cellOf returns a cell of the shape for the final regrets of a policy and of the first row, paired by seed.
func cellOf(shape string, regret, first []float64) (string, error) {
	difference := make([]float64, len(regret))
	floats.SubTo(difference, regret, first)
	mean, sd := stat.MeanStdDev(regret, nil)
	gap, spread := stat.MeanStdDev(difference, nil)
	signed := strings.Replace(fmt.Sprintf("%+.1f ± %.1f", gap, spread/math.Sqrt(float64(len(regret)))), "-", "−", 1)
	switch {
	case meanSD.MatchString(shape):
		return fmt.Sprintf("%.1f ± %.1f", mean, sd), nil
	case meanPaired.MatchString(shape):
		return fmt.Sprintf("%.1f (%s)", mean, signed), nil
	case paired.MatchString(shape):
		return signed, nil
	}
	return "", fmt.Errorf("the cell %q has none of the shapes of a table: 1.2 ± 0.3, 1.2 (+0.4 ± 0.1), +0.4 ± 0.1",
		shape)
}

// write returns the table's cells from the results in a directory, and the configuration; ok is false if the directory does
// not have what the commands play today.
func (r regretTable) write(t *testing.T, dir string) (all [][]string, configuration string, ok bool) {
	t.Helper()
	today, _ := r.experiments(t)
	results := slices.Clone(today)
	for i, c := range today {
		if _, err := os.Stat(filepath.Join(dir, c.Experiment, "run.json")); err != nil {
			return nil, "", false
		}
		results[i] = recorded(t, dir, c.Experiment)
	}
	configuration = fingerprint(t, r.only(today)...)
	if len(today) == 0 || fingerprint(t, r.only(results)...) != configuration {
		return nil, "", false
	}
	for i, row := range r.cells {
		var written []string
		for j, cell := range row {
			regrets := finals(t, dir, today[min(j, len(today)-1)].Experiment)
			if own := regrets[r.rows[i]]; cell != "–" {
				var err error
				if cell, err = cellOf(cell, own, regrets[r.rows[0]]); err != nil {
					t.Fatalf("%s: %v", r.where(), err)
				}
			}
			written = append(written, cell)
		}
		all = append(all, written)
	}
	return all, configuration, true
}

// finals returns the regrets after the last round of every policy of a result, in the order of the seeds.
func finals(t *testing.T, dir, name string) map[string][]float64 {
	t.Helper()
	text := fatal.Or(os.ReadFile(filepath.Join(dir, name, "run.json")))(t)
	var record struct {
		Policies []struct {
			Label string
			Runs  []struct{ Regret float64 }
		}
	}
	fatal.If(t, json.Unmarshal(text, &record))
	all := map[string][]float64{}
	for _, p := range record.Policies {
		for _, run := range p.Runs {
			all[p.Label] = append(all[p.Label], run.Regret)
		}
	}
	return all
}

// rewrite writes the tables of a page whose results are in the directory.
func rewrite(t *testing.T, path, text, dir string) {
	t.Helper()
	lines := strings.Split(text, "\n")
	all, _ := tables(t, path, text)
	for _, r := range all {
		rows, configuration, ok := r.write(t, dir)
		if !ok {
			continue
		}
		for i, row := range rows {
			at := r.line + 1 + i
			lines[at] = "| " + cells(lines[at])[0] + " | " + strings.Join(row, " | ") + " |"
		}
		head, _, _ := strings.Cut(lines[r.line-2], "; configuration")
		lines[r.line-2] = fmt.Sprintf("%s; configuration %s; numbers %s -->", strings.TrimSuffix(head, " -->"),
			configuration, fingerprintOf(rows))
		t.Logf("%s: written", r.where())
	}
	write(t, filepath.Join("..", path), []byte(strings.Join(lines, "\n")))
}

// check reports a table that is not of today's configuration and does not wait.
func (r regretTable) check(t *testing.T, p provenance) {
	t.Helper()
	problems := r.problems(t)
	if !p.waits(t, r.name(), len(problems) > 0) && len(problems) > 0 {
		t.Errorf("%s: the table is not what its commands play: %s. Run `%s` and `go test ./docs -run Tables -played ../out`, or list %q as waiting in docs/%s until it is run",
			r.where(), strings.Join(problems, "; "), strings.Join(strings.Split(r.commands, " + "), "` and `"),
			r.name(), provenanceFile)
	}
}

// A table of regrets has the policies and the panels that its commands play, is of
// today's configuration, and has the means and errors that -played wrote, unless
// figures.toml lists it as waiting.
func TestTablesAreOfTheirConfiguration(t *testing.T) {
	p := readProvenance(t)
	if *writeFrom != "" {
		for page, text := range committedPages(t) {
			rewrite(t, page, text, *writeFrom)
		}
	}
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
				t.Errorf("%s:%d: a table of regrets without a comment above it: <!-- table: vitrine reproduce …; "+
					"configuration … -->, or <!-- table: of something else -->", page, line)
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
	const right = "| policy | realizable | misspecified, uniform |\n|---|---|---|\n| *theory:* ucb-mnl | 1 ± 1 | " +
		"2 ± 1 |\n| uniform (no bonus) | 3 (+1 ± 2) | 4 (+1 ± 2) |\n"
	hash := fingerprint(t, configured(t, "vitrine reproduce main-uniform-realizable main-uniform-misspecified "+
		"--seeds 2 --policies ucb-mnl,uniform")...)
	numbers := "; numbers " + fingerprintOf([][]string{{"1 ± 1", "2 ± 1"}, {"3 (+1 ± 2)", "4 (+1 ± 2)"}})
	for _, c := range []struct{ name, comment, table, want string }{
		{"right", command + "; configuration " + hash, right, ""},
		{"another deviation", command + "; configuration " + hash, strings.Replace(right, "1 ± 1", "1 ± 0", 1),
			"its means and errors are not those that were written"},
		{"another error", command + "; configuration " + hash, strings.Replace(right, "4 (+1 ± 2)", "4 (+1 ± 1)", 1),
			"its means and errors are not those that were written"},
		{"other seeds", "vitrine reproduce main-uniform --policies ucb-mnl,uniform; configuration " + hash, right,
			"its numbers are of configuration " + hash},
		{"an older configuration", command + "; configuration 0123", right, "its numbers are of configuration 0123"},
		{"a row too few", "vitrine reproduce main-uniform --seeds 2 --policies ucb-mnl,uniform,oracle; " +
			"configuration " + hash, right, "its commands play ucb-mnl, uniform, oracle"},
		{"a row that is named", "vitrine reproduce main-uniform --seeds 2 --policies ucb-mnl,uniform,oracle; " +
			"without oracle; configuration " + hash, right, ""},
		{"rows in another order", command + "; configuration " + hash,
			strings.NewReplacer("*theory:* ucb-mnl", "uniform", "uniform (no bonus)", "ucb-mnl").Replace(right),
			"it has the rows uniform, ucb-mnl"},
		{"columns in another order", command + "; configuration " + hash, strings.Replace(right, "| realizable | "+
			"misspecified, uniform |", "| misspecified | realizable, uniform |", 1), "column \"misspecified\" " +
			"stands where main-uniform-realizable should"},
		{"a column too few", command + "; configuration " + hash, strings.Replace(right, " | misspecified, uniform |",
			" |", 1), "it has 1 columns, and its commands play 2"},
		{"columns that are not played", command + "; columns imdb; configuration " + hash, right, "its commands " +
			"do not play imdb"},
	} {
		all, bare := tables(t, "page.md", "text\n<!-- table: "+c.comment+numbers+" -->\n"+c.table)
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

// The means, deviations and paired errors of a table are those of the runs.
func TestTablesAreWritten(t *testing.T) {
	const command = "vitrine reproduce main-uniform-realizable main-uniform-misspecified --seeds 2 --policies " +
		"ucb-mnl,uniform"
	dir := t.TempDir()
	regrets := map[string][][]float64{"main-uniform-realizable": {{1, 3}, {5, 9}},
		"main-uniform-misspecified": {{4, 4}, {2, 3}}}
	for _, c := range configured(t, command) {
		var policies []any
		for i, p := range c.Policies {
			var runs []any
			for _, v := range regrets[c.Experiment][i] {
				runs = append(runs, map[string]any{"regret": v})
			}
			policies = append(policies, map[string]any{"label": p.Label, "settings": p.Settings, "runs": runs})
		}
		text := fatal.Or(json.Marshal(map[string]any{"experiment": c.Experiment, "settings": c.Settings,
			"seeds": c.Seeds, "policies": policies}))(t)
		fatal.If(t, os.Mkdir(filepath.Join(dir, c.Experiment), 0o755))
		write(t, filepath.Join(dir, c.Experiment, "run.json"), text)
	}
	const page = "<!-- table: " + command + "; configuration 0123 -->\n| policy | realizable | misspecified, " +
		"uniform |\n|---|---|---|\n| ucb-mnl | 0 ± 0 | 0 ± 0 |\n| uniform | 0 (+0 ± 0) | +0 ± 0 |\n"
	all, _ := tables(t, "page.md", page)
	rows, configuration, ok := all[0].write(t, dir)
	if diff := cmp.Diff([][]string{{"2.0 ± 1.4", "4.0 ± 0.0"}, {"7.0 (+5.0 ± 1.0)", "−1.5 ± 0.5"}}, rows); !ok ||
		diff != "" || configuration != fingerprint(t, configured(t, command)...) {
		t.Errorf("written %v, configuration %s (-want +got):\n%s", ok, configuration, diff)
	}
	all[0].commands += " --first-seed 7"
	if _, _, ok := all[0].write(t, dir); ok {
		t.Error("results of other seeds are written")
	}
}
