package docs_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/long"
)

// page returns the text of a page of the module.
func page(t *testing.T, path string) string {
	t.Helper()
	text := fatal.Or(os.ReadFile(filepath.Join("..", path)))(t)
	return string(text)
}

// command runs a command in a directory, and returns what it prints.
func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GOWORK=off")
	out, err := c.CombinedOutput()
	fatal.If(t, err, name, strings.Join(args, " "), out)
	return string(out)
}

// A policy takes a file in bandit and the line of the catalog that docs/howto/add-a-policy.md shows. Laid over the
// module, the two pass the tests that judge all policies, the command knows the policy, and an experiment plays it.
func TestAddingAPolicy(t *testing.T) {
	long.Test(t)
	dir := t.TempDir()
	line := regexp.MustCompile(`(?m)^\{Name: "nearest".*\},$`).FindString(page(t, "docs/howto/add-a-policy.md"))
	if line == "" {
		t.Fatal("docs/howto/add-a-policy.md shows no line of the catalog for the policy nearest")
	}
	const catalog, table = "bandit/policy/table.go", "var All = []Policy{\n"
	text := page(t, catalog)
	expect.Equal(fatal.T(t), strings.Count(text, table), 1, catalog, "has no table of policies")
	write(t, filepath.Join(dir, "table.go"), []byte(strings.Replace(text, table, table+"\t"+line+"\n", 1)))
	module := fatal.Or(filepath.Abs(".."))(t)
	overlay := fatal.Or(json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(module, catalog):             filepath.Join(dir, "table.go"),
		filepath.Join(module, "bandit/nearest.go"): filepath.Join(module, "docs/testdata/nearest.go"),
	}}))(t)
	write(t, filepath.Join(dir, "overlay.json"), overlay)
	with := "-overlay=" + filepath.Join(dir, "overlay.json")

	command(t, module, "go", "vet", with, "./bandit", "./bandit/policy")
	t.Setenv("VITRINE_LONG", "")
	command(t, module, "go", "test", with, "./config", "./docs", "./paper/tractability", "./internal/option")
	command(t, module, "go", "test", with, "-run", "Style|Legend|Golden", "./figure")

	vitrine := filepath.Join(dir, "vitrine")
	command(t, module, "go", "build", with, "-o", vitrine, "./cmd/vitrine")
	if out := command(t, dir, vitrine, "list", "policies"); !strings.Contains(out, "  nearest ") ||
		strings.Count(out, "\n") > 24 {
		t.Errorf("vitrine list policies:\n%s", out)
	}
	if out := command(t, dir, vitrine, "describe", "nearest"); !strings.Contains(out, "scale = 1.0   number, "+
		"positive   how much") || !strings.Contains(out, "It cannot be the policy of a placement: it cannot "+
		"serve, because") {
		t.Errorf("vitrine describe nearest:\n%s", out)
	}
	write(t, filepath.Join(dir, "mine.toml"), []byte(`name = "mine"
rounds = 50
seeds = 2
contexts.kind = "gaussian"
truth.kind = "cosine"
[[policy]]
name = "nearest"
scale = 2
[[policy]]
name = "uniform"
`))
	expect.Contains(t, command(t, dir, vitrine, "run", "mine.toml"), "nearest", "vitrine run")
	if _, err := os.Stat(filepath.Join(dir, "out", "mine", "regret.svg")); err != nil {
		t.Error(err)
	}
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	fatal.If(t, os.WriteFile(path, text, 0o644))
}

// Another module uses the library as the README says: a policy and a world of its own are played
// by experiment and drawn by figure.
func TestAnotherModule(t *testing.T) {
	dir := t.TempDir()
	source := fatal.Or(os.ReadFile("testdata/shop/main.go"))(t)
	write(t, filepath.Join(dir, "main.go"), source)
	module := fatal.Or(filepath.Abs(".."))(t)
	// Checksums of the library's imports; go mod tidy would fetch them from the network.
	sums := fatal.Or(os.ReadFile("../go.sum"))(t)
	command(t, dir, "go", "mod", "init", "shop")
	edit := "go mod edit -require vitrine@v0.0.0 -replace vitrine=../vitrine"
	expect.Contains(fatal.T(t), page(t, "README.md"), edit, "README.md")
	command(t, dir, "go", strings.Fields(strings.Replace(edit, "../vitrine", module, 1))[1:]...)
	write(t, filepath.Join(dir, "go.sum"), sums)
	out := command(t, dir, "go", "run", "-mod=mod", ".")
	if !strings.Contains(out, "bold: regret ") || !strings.Contains(out, "ucb-mnl: regret ") {
		t.Errorf("it prints %q", out)
	}
	for _, name := range []string{"regret.csv", "summary.csv", "run.json", "regret.svg", "regret.png"} {
		if _, err := os.Stat(filepath.Join(dir, "out", "season", name)); err != nil {
			t.Error(err)
		}
	}
	if again := command(t, dir, "go", "run", "-mod=mod", "."); !strings.Contains(again, "season: 10 of 10 runs "+
		"were there already\n"+out) {
		t.Errorf("the second time it prints %q", again)
	}
	write(t, filepath.Join(dir, "main_test.go"), fatal.Or(os.ReadFile("testdata/shop/main_test.go"))(t))
	command(t, dir, "go", "test", "-mod=mod", ".")
	write(t, filepath.Join(dir, "main.go"), bytes.Replace(source, []byte("AtMost(size).MaxGain"),
		[]byte("AtMost(1).MaxGain"), 1))
	if changed := command(t, dir, "go", "run", "-mod=mod", "."); strings.Contains(changed, "already") ||
		strings.Contains(changed, out) || !strings.Contains(changed, "because these changed: the program\n") {
		t.Errorf("with another policy it prints %q", changed)
	}
}

// The README shows the program in testdata/first, and its output.
func TestFirstProgram(t *testing.T) {
	source := fatal.Or(os.ReadFile("testdata/first/main.go"))(t)
	_, body, _ := strings.Cut(string(source), "func main() {")
	readme := page(t, "README.md")
	expect.Contains(t, readme, "```go\nfunc main() {"+body+"```\n",
		"README.md does not show func main of docs/testdata/first/main.go")
	out := command(t, "..", "go", "run", "docs/testdata/first/main.go")
	expect.Contains(t, readme, "$ go run docs/testdata/first/main.go\n"+out+"```",
		"README.md does not show what the program prints", out)

	// A shop that knows the utilities meets the same shoppers; the program's learner still draws its numbers.
	const bought = "if choice != vitrine.Outside {"
	expect.Equal(fatal.T(t), strings.Count(body, bought), 1, "the program does not say", bought, "once")
	knows := filepath.Join(t.TempDir(), "main.go")
	write(t, knows, []byte(strings.Replace(string(source), bought,
		"best, _ := assortment.Maximize(nil, problem.Constraint, utilities, nil)\nif vitrine.Choose(best, "+
			"utilities, shock) != vitrine.Outside {", 1)))
	sentence := fmt.Sprintf("would sell to %d of these 1,000 shoppers; Vitrine sells to %d",
		sum(t, command(t, "..", "go", "run", knows)), sum(t, out))
	expect.Contains(t, readme, sentence, "README.md does not say that a shop that knew the utilities")
}

// sum adds the numbers in the brackets of what the first program prints.
func sum(t *testing.T, out string) (n int) {
	t.Helper()
	_, list, _ := strings.Cut(strings.Trim(out, "]\n"), "[")
	for _, field := range strings.Fields(list) {
		v, err := strconv.Atoi(field)
		fatal.If(t, err, "the program prints", out)
		n += v
	}
	return n
}
