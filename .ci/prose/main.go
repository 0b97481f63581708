// Prose counts the habits that make Vitrine's English hard to read, in the comments of its Go code and in its pages.
//
//	go run ./.ci/prose [-v]
//
// It prints each habit per 1,000 words, for the tree and for each package, and the twenty worst sentences. It exits
// with status 1 if the comments or the pages as a whole are above a limit. It is a smoke detector: rewrite the
// sentence, don't swap a word.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// habits lists the habits to count, with the limit per 1,000 words.
var habits = []struct {
	name  string
	limit float64
	match *regexp.Regexp
}{
	{"has/have/had", 6, regexp.MustCompile(`(?i)\b(has|have|had)\b`)},
	{"that of", 0.3, regexp.MustCompile(`(?i)\b(that|those) of\b`)},
	{"what/who clause", 0.7, regexp.MustCompile(
		`(?i)(^|[.;:,(]\s*|\b(is|are|was|of|to|for|with|from|by|than|and|or|but|if|as|in|on|at|about|like|not|only|says?|shows?|tells?|sees?)\s+)(what|who|whatever|whoever)\b`)},
	{"of which/whose", 0.4, regexp.MustCompile(`(?i)\bof which\b|\bwhose\b`)},
	{"none/nothing/nobody", 1, regexp.MustCompile(`(?i)\b(none|nothing|nobody)\b`)},
}

// Lines may have 120 columns. Of comments and of code, longer ones are at most this share of all lines of Go. A raw
// string, such as a tag or a document in a test, cannot be broken: a line with one may be longer.
const (
	maxColumns = 120
	maxLong    = 0.003
)

// count is the number of words and of each habit.
type count struct {
	words int
	hits  [5]int
}

func (c *count) add(o count) {
	c.words += o.words
	for i := range c.hits {
		c.hits[i] += o.hits[i]
	}
}

func (c *count) rate(i int) float64 { return 1000 * float64(c.hits[i]) / float64(max(c.words, 1)) }

type sentence struct {
	where, text string
	hits        int
}

// tally counts the habits in the comments, or in the pages.
type tally struct {
	name      string
	total     count
	parts     map[string]*count // by package or page
	sentences []sentence
}

var (
	code   = regexp.MustCompile("`[^`]*`|\\[[^\\]]*\\]\\([^)]*\\)|https?://\\S+")
	ending = regexp.MustCompile(`[.?!:;]\s+|\n\s*\n`)
	word   = regexp.MustCompile(`[A-Za-z][A-Za-z'’-]*`)
)

// text counts a paragraph of prose.
func (t *tally) text(part, where, s string) {
	s = code.ReplaceAllStringFunc(s, func(c string) string {
		if name, _, ok := strings.Cut(strings.TrimPrefix(c, "["), "]("); ok && c[0] == '[' {
			return name // a link's text
		}
		return " "
	})
	for _, one := range ending.Split(s, -1) {
		c := count{words: len(word.FindAllString(one, -1))}
		n := 0
		for i, h := range habits {
			if h.name == "what/who clause" && strings.HasSuffix(strings.TrimSpace(one), "?") {
				continue
			}
			c.hits[i] = len(h.match.FindAllString(strings.TrimSpace(one), -1))
			n += c.hits[i]
		}
		t.total.add(c)
		if t.parts[part] == nil {
			t.parts[part] = &count{}
		}
		t.parts[part].add(c)
		if n > 1 {
			t.sentences = append(t.sentences, sentence{where, strings.Join(strings.Fields(one), " "), n})
		}
	}
}

// comments counts the comments of a Go file, without directives and indented blocks.
func (t *tally) comments(path string) error {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
	if err != nil {
		return err
	}
	if ast.IsGenerated(file) {
		return nil
	}
	for _, group := range file.Comments {
		var lines []string
		for line := range strings.Lines(group.Text()) {
			if !strings.HasPrefix(line, "\t") && !strings.HasPrefix(line, "    ") {
				lines = append(lines, line)
			}
		}
		t.text(filepath.Dir(path), files.Position(group.Pos()).String(), strings.Join(lines, ""))
	}
	return nil
}

// page counts a page, without its code and with its tables' cells as sentences.
func (t *tally) page(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	fence, start, number := false, 1, 0
	var paragraph strings.Builder
	flush := func() {
		t.text(path, fmt.Sprintf("%s:%d", path, start), paragraph.String())
		paragraph.Reset()
		start = number + 1
	}
	for line := range strings.Lines(string(data)) {
		number++
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "```"):
			fence = !fence
			flush()
		case fence || strings.HasPrefix(line, "    ") && paragraph.Len() == 0:
			start = number + 1
		case trimmed == "":
			flush()
		case strings.HasPrefix(trimmed, "|"):
			paragraph.WriteString(strings.ReplaceAll(trimmed, "|", ". ") + "\n")
		default:
			paragraph.WriteString(line)
		}
	}
	flush()
	return nil
}

// report prints the tally and reports whether it keeps the limits.
func (t *tally) report(verbose bool) bool {
	fmt.Printf("%s: %d words\n", t.name, t.total.words)
	ok := true
	for i, h := range habits {
		mark := ""
		if t.total.rate(i) > h.limit {
			mark, ok = "  above", false
		}
		fmt.Printf("  %-20s %6.2f of %.1f per 1,000%s\n", h.name, t.total.rate(i), h.limit, mark)
	}
	excess := func(c *count) (n float64) { // hits above the limits
		for i, h := range habits {
			n += max(0, float64(c.hits[i])-h.limit*float64(c.words)/1000)
		}
		return n
	}
	names := slices.SortedFunc(maps.Keys(t.parts), func(a, b string) int {
		return cmp.Or(cmp.Compare(excess(t.parts[b]), excess(t.parts[a])), cmp.Compare(a, b))
	})
	if !verbose {
		names = names[:min(10, len(names))]
	}
	for _, name := range names {
		c := t.parts[name]
		fmt.Printf("  %6.0f too many in %6d words of %s:", excess(c), c.words, name)
		for i := range habits {
			fmt.Printf(" %.1f", c.rate(i))
		}
		fmt.Println()
	}
	slices.SortStableFunc(t.sentences, func(a, b sentence) int {
		return cmp.Or(b.hits-a.hits, len(a.text)-len(b.text))
	})
	for _, s := range t.sentences[:min(20, len(t.sentences))] {
		fmt.Printf("  %s: %s\n", s.where, s.text)
	}
	return ok
}

func run(verbose bool) (bool, error) {
	list, err := exec.Command("git", "ls-files", "*.go", "*.md").Output()
	if err != nil {
		return false, err
	}
	comments := &tally{name: "comments", parts: map[string]*count{}}
	pages := &tally{name: "pages", parts: map[string]*count{}}
	lines, longComments, longCode := 0, 0, 0
	for _, path := range strings.Fields(string(list)) {
		if strings.HasSuffix(path, ".md") {
			if err := pages.page(path); err != nil {
				return false, err
			}
			continue
		}
		if err := comments.comments(path); err != nil {
			return false, err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return false, err
		}
		for line := range strings.Lines(string(data)) {
			lines++
			if utf8.RuneCountInString(strings.TrimRight(strings.ReplaceAll(line, "\t", "    "), "\n")) <= maxColumns {
				continue
			}
			switch {
			case strings.HasPrefix(strings.TrimSpace(line), "//"):
				longComments++
			case !strings.Contains(line, "`"):
				longCode++
			}
		}
	}
	ok := comments.report(verbose)
	ok = pages.report(verbose) && ok
	for _, of := range []struct {
		what string
		n    int
	}{{"comments", longComments}, {"code", longCode}} {
		rate := float64(of.n) / float64(lines)
		fmt.Printf("lines of %s over %d columns: %d of %d, %.2f%% of %.1f%%\n", of.what, maxColumns, of.n, lines,
			100*rate, 100*maxLong)
		ok = ok && rate <= maxLong
	}
	return ok, nil
}

func main() {
	verbose := flag.Bool("v", false, "list all packages and pages")
	flag.Parse()
	ok, err := run(*verbose)
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}
