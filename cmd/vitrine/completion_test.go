package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp/cmpopts"

	"vitrine/internal/commandline"
	"vitrine/internal/expect"
)

func complete(t *testing.T, words ...string) []string {
	t.Helper()
	out, errs, code := vitrineRun(t, append([]string{"complete", "--"}, words...)...)
	if code != 0 || errs != "" {
		t.Fatalf("%q: exit status %d, %s", words, code, errs)
	}
	return strings.Fields(out)
}

func TestCompletion(t *testing.T) {
	for _, c := range []struct {
		words []string
		want  []string
	}{
		{[]string{"rep"}, []string{"reproduce", "replay", "report"}},
		{[]string{"reproduce", "main-gaussian-"}, []string{"main-gaussian-realizable", "main-gaussian-misspecified"}},
		{[]string{"reproduce", "main", "tab"}, []string{"table1"}},
		{[]string{"reproduce", "--see"}, []string{"--seeds"}},
		{[]string{"run", "mine.toml", "--pol"}, []string{"--policies"}},
		{[]string{"reproduce", "main", "--policies", "on"}, []string{"onl-mnl"}},
		{[]string{"reproduce", "main", "--policies", "onl-mnl,u"}, []string{"onl-mnl,ucb-mnl", "onl-mnl,uniform"}},
		{[]string{"reproduce", "main", "--policies", "uniform,u"}, []string{"uniform,ucb-mnl"}},
		{[]string{"reproduce", "main", "--policies=greedy,o"}, []string{"--policies=greedy,onl-mnl",
			"--policies=greedy,ofu-mnl-plus", "--policies=greedy,oracle"}},
		{[]string{"reproduce", "main", "--policies", "=", "greedy,b"}, []string{"greedy,bma-mnl"}}, // bash
		{[]string{"reproduce", "--baselines", "t"}, []string{"theory", "tuned"}},
		{[]string{"plot", "out", "--band", "s"}, []string{"se", "sd"}},
		{[]string{"plot", "out", "--format", "svg,p"}, []string{"svg,png", "svg,pdf"}},
		{[]string{"plot", "out", "--scale", "l"}, []string{"linear", "log"}},
		{[]string{"plot", "out", "--names", "p"}, []string{"paper"}},
		{[]string{"plot", "out", "--policies", "onl-mnl,u"}, []string{"onl-mnl,ucb-mnl", "onl-mnl,uniform"}},
		{[]string{"plot", "out", "--difference", "on"}, []string{"onl-mnl"}},
		{[]string{"reproduce", "--seeds", ""}, nil},
		{[]string{"run", ""}, nil}, // files
		{[]string{"describe", "spe"}, []string{"spectral"}},
		{[]string{"list", "t"}, []string{"tunings"}},
		{[]string{"list", "--print", "main-uniform-r"}, []string{"main-uniform-realizable"}},
		{[]string{"completion", ""}, []string{"bash", "zsh", "fish", "powershell"}},
		{[]string{"help", "comp"}, []string{"completion"}},
		{[]string{"nonesuch", "--nothing=x"}, nil},
	} {
		expect.Equal(t, complete(t, c.words...), c.want, c.words, cmpopts.EquateEmpty())
	}
	if all := complete(t); slices.Contains(all, "complete") || !slices.Contains(all, "serve") {
		t.Errorf("commands: %q", all)
	}
	if all := complete(t, ""); !slices.Contains(all, "describe") {
		t.Errorf("commands: %q", all)
	}
}

// Every source gives words, and every tag names a source.
func TestCompletionSources(t *testing.T) {
	parser := kong.Must(&cli{}, kong.Name("vitrine"))
	for name, source := range sources {
		if len(source(parser.Model.Node)) == 0 {
			t.Errorf("source %s has no words", name)
		}
	}
	var walk func(n *kong.Node)
	walk = func(n *kong.Node) {
		check := func(v *kong.Value) {
			if tag := v.Tag.Get("complete"); tag != "" && sources[tag] == nil {
				t.Errorf("%s %s: there is no source %q", n.Path(), v.Name, tag)
			}
		}
		for _, p := range n.Positional {
			check(p)
		}
		for _, f := range n.Flags {
			check(f.Value)
		}
		for _, c := range n.Children {
			walk(c)
		}
	}
	walk(parser.Model.Node)
	for _, what := range lists {
		if run1(t, "list", what) == "" {
			t.Errorf("vitrine list %s prints nothing", what)
		}
	}
}

// The manual contains every command and flag in the help.
func TestManual(t *testing.T) {
	parser := kong.Must(&cli{}, kong.Name("vitrine"), kong.Description(description))
	escaped := strings.NewReplacer("-", `\-`).Replace
	page := string(commandline.Manual(parser.Model, version))
	var walk func(n *kong.Node)
	walk = func(n *kong.Node) {
		for _, c := range commandline.Visible(n) {
			expect.Contains(t, page, ".SS "+escaped(c.Path()), "the manual has no command", c.Path())
			for _, f := range c.Flags {
				expect.Contains(t, page, escaped("--"+f.Name), "the manual has no", f.Name, "of", c.Path())
			}
			walk(c)
		}
	}
	walk(parser.Model.Node)
	if strings.Contains(page, "complete ") && strings.Contains(page, ".SS complete\n") {
		t.Error("the manual has the hidden command complete")
	}
}
