package main

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// The commands of docs/howto/fit-a-choice-model.md print what the page shows.
func TestHowToFit(t *testing.T) {
	page := readPage(t, "fit-a-choice-model")
	trips := fatal.Or(os.ReadFile("../../choice/testdata/trips.csv"))(t)
	specs := regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllSubmatch(page, -1)
	t.Chdir(t.TempDir())
	modes := regexp.MustCompile("(?s)```csv\n(.*?)```").FindSubmatch(page)[1]
	for name, text := range map[string][]byte{"trips.csv": trips, "modes.csv": modes, "trips.toml": specs[0][1],
		"nested.toml": append(bytes.Clone(specs[0][1]), specs[1][1]...),
		"small.toml":  bytes.Replace(specs[0][1], []byte("individual = [\"income\"]\n"), nil, 1)} {
		write(t, name, string(text))
	}
	expect.Equal(t, play(t, page), 11, "commands on the page")
}

// The commands of docs/howto/swissmetro.md print what the page shows, on the real data.
func TestHowToSwissmetro(t *testing.T) {
	page := readPage(t, "swissmetro")
	root := os.Getenv("VITRINE_DATA")
	if root == "" {
		root = "../../../shared/data"
	}
	data, err := os.ReadFile(filepath.Join(root, "swissmetro", "swissmetro.dat"))
	if err != nil {
		t.Skipf("no data: %v: see docs/data.md, or set VITRINE_DATA", err)
	}
	specs := regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllSubmatch(page, -1)
	t.Chdir(t.TempDir())
	for name, text := range map[string][]byte{"swissmetro.dat": data, "swissmetro.toml": specs[0][1],
		"nested.toml": slices.Concat(specs[0][1], specs[1][1])} {
		write(t, name, string(text))
	}
	expect.Equal(t, play(t, page), 3, "commands on the page")
}

// The commands of the pages about logs print what the pages show. The second page goes on where the
// first one ends.
func TestHowToLogs(t *testing.T) {
	evaluate, live := readPage(t, "is-my-log-good-enough"), readPage(t, "from-log-to-live")
	clicks := fatal.Or(os.ReadFile("../../docs/howto/clicks.csv"))(t)
	if string(clicks) != simulatedClicks() {
		t.Error("docs/howto/clicks.csv is not the simulated log")
	}
	t.Chdir(t.TempDir())
	write(t, "clicks.csv", string(clicks))
	commands := 0
	for _, page := range [][]byte{evaluate, live} {
		for _, file := range regexp.MustCompile(
			"(?s)`([\\w-]+\\.(?:toml|json))`[^`]*```(?:toml|json)\n(.*?)```").FindAllSubmatch(page, -1) {
			write(t, string(file[1]), string(file[2]))
		}
		commands += play(t, page)
	}
	expect.Equal(t, commands, 12, "commands on the pages")
}

// readPage reads a page of docs/howto.
func readPage(t *testing.T, name string) []byte {
	t.Helper()
	return fatal.Or(os.ReadFile("../../docs/howto/" + name + ".md"))(t)
}

// play runs the commands of a page, compares what they print, and returns their number.
func play(t *testing.T, page []byte) (commands int) {
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllSubmatch(page, -1) {
		for _, part := range strings.Split(string(block[1]), "$ ")[1:] {
			line, want, _ := strings.Cut(part, "\n")
			line, file, redirected := strings.Cut(line, " > ")
			got := shell(t, line)
			if redirected {
				write(t, file, got)
				got = ""
			}
			expect.Equal(t, got, want, line)
			commands++
		}
	}
	return commands
}

// simulatedClicks is the log of docs/howto/clicks.csv: 300 pages of two of five items, drawn uniformly. Customers
// like ratings and the brand zeta, and dislike prices.
func simulatedClicks() string {
	rng := rand.New(rand.NewPCG(20260101, 1))
	var b strings.Builder
	b.WriteString("decision_id,time,item,shown,chosen,revenue,price,rating,brand\n")
	begin := time.Date(2026, 1, 1, 8, 0, 0, 0, time.UTC)
	for d := range 300 {
		shown := rng.Perm(5)[:2]
		rows := make([]string, 5)
		u := make([]float64, 5)
		for i, n := range rng.Perm(12)[:5] {
			price, rating := 5+float64(n)+float64(rng.IntN(5)), 1+float64(rng.IntN(41))/10
			brand := []string{"acme", "zeta"}[n%2]
			u[i] = 0.9*(rating-3) - 0.25*(price-8) - 0.5 + 0.8*float64(n%2)
			rows[i] = fmt.Sprintf("sku%02d,%%d,%%d,%.2f,%g,%.1f,%s", n, price*0.3, price, rating, brand)
		}
		left := rng.Float64() * (1 + math.Exp(u[shown[0]]) + math.Exp(u[shown[1]]))
		chosen := -1
		for _, i := range shown {
			if left -= math.Exp(u[i]); left < 0 && chosen < 0 {
				chosen = i
			}
		}
		at := begin.Add(time.Duration(d) * 7 * time.Minute).Format(time.RFC3339)
		for i, row := range rows {
			place, taken := slices.Index(shown, i)+1, 0
			if i == chosen {
				taken = 1
			}
			fmt.Fprintf(&b, "d%03d,%s,"+row+"\n", d, at, place, taken)
		}
	}
	return b.String()
}

// shell runs a command line of vitrine with the filters head, tail and grep, and returns what it
// prints on standard output, or else its error.
func shell(t *testing.T, line string) string {
	t.Helper()
	stages := strings.Split(line, " | ")
	words := regexp.MustCompile(`"[^"]*"|\S+`).FindAllString(stages[0], -1)
	for i, w := range words {
		words[i] = strings.Trim(w, `"`)
	}
	var out string
	switch words[0] {
	case "vitrine":
		printed, errs, code := vitrineRun(t, words[1:]...)
		if out = printed; code != 0 {
			out += errs
		}
	case "head":
		out = string(fatal.Or(os.ReadFile(words[2]))(t))
		stages = append(stages, "head "+words[1])
	default:
		t.Fatalf("no command %q", words[0])
	}
	lines := strings.SplitAfter(strings.TrimSuffix(out, "\n"), "\n")
	for _, filter := range stages[1:] {
		name, argument, _ := strings.Cut(filter, " ")
		n, _ := strconv.Atoi(strings.TrimPrefix(argument, "-"))
		switch name {
		case "head":
			lines = lines[:n]
		case "tail":
			lines = lines[len(lines)-n:]
		case "grep":
			pattern := regexp.MustCompile(strings.ReplaceAll(strings.Trim(argument, `"`), `\|`, "|"))
			var kept []string
			for _, l := range lines {
				if pattern.MatchString(l) {
					kept = append(kept, l)
				}
			}
			lines = kept
		}
	}
	return strings.TrimSuffix(strings.Join(lines, ""), "\n") + "\n"
}

// Under latent classes and mixed logit the answer of optimize has a bound, and under nested logit it
// takes no rules.
func TestOptimizeUnderFittedModels(t *testing.T) {
	trips := fatal.Or(os.ReadFile("../../choice/testdata/trips.csv"))(t)
	t.Chdir(t.TempDir())
	const spec = `
[data]
form = "long"
choice = ["trip"]
alternative = "mode"
chosen = "chosen"
available = "available"
outside = "implicit"
panel = "traveller"
[utility]
generic = ["cost", "time / 60"]
[model]
`
	for name, text := range map[string]string{
		"trips.csv": string(trips), "modes.csv": "id,mode,cost,time,revenue\na,bike,0,32,0.5\nb,bus,1,46.2,1\nc,car,4,15.6,2\nd,train,4,26,2.5\n",
		"latent.toml": spec + "kind = \"latent\"\nclasses = 2\n",
		"mixed.toml":  spec + "kind = \"mixed\"\ndraws = 30\n[[model.random]]\ncoefficient = \"cost\"\n",
		"nested.toml": spec + "kind = \"nested\"\n[[model.nests]]\nname = \"road\"\nalternatives = [\"bus\", " +
			"\"car\"]\n",
	} {
		fatal.If(t, os.WriteFile(name, []byte(text), 0o644))
	}
	for _, kind := range []string{"latent", "mixed", "nested"} {
		shell(t, "vitrine fit trips.csv "+kind+".toml --out model.json")
		rules := " --max-size 2"
		if kind == "nested" {
			expect.Contains(t, shell(t, "vitrine optimize modes.csv --model model.json"+rules),
				"modes.csv: the best assortment under nested logit is known without rules only", "nested logit with rules")
			rules = ""
		}
		var answer struct {
			Assortment []string           `json:"assortment"`
			Revenue    float64            `json:"expected_revenue"`
			Outside    float64            `json:"outside_probability"`
			Choice     map[string]float64 `json:"choice_probability"`
			Bound      *float64           `json:"upper_bound"`
		}
		text := shell(t, "vitrine optimize modes.csv --model model.json"+rules)
		fatal.If(t, json.Unmarshal([]byte(text), &answer), kind, text)
		revenue, sum := 0.0, answer.Outside
		for id, p := range answer.Choice {
			sum += p
			revenue += p * map[string]float64{"a": 0.5, "b": 1, "c": 2, "d": 2.5}[id]
		}
		if len(answer.Assortment) == 0 || math.Abs(sum-1) > 1e-12 || math.Abs(revenue-answer.Revenue) > 1e-12 {
			t.Errorf("%s: probabilities sum to %v, and earn %v: %s", kind, sum, revenue, text)
		}
		if (answer.Bound == nil) != (kind == "nested") || answer.Bound != nil && *answer.Bound < answer.Revenue {
			t.Errorf("%s: the bound is wrong: %s", kind, text)
		}
	}
	// With constants, the dissimilarity of this nest is above 1.
	apart := strings.Replace(spec, "generic", "constants = true\ngeneric", 1) + "kind = \"nested\"\n[[model.nests]]\n" +
		"name = \"road\"\nalternatives = [\"bus\", \"car\"]\n"
	fatal.If(t, os.WriteFile("apart.toml", []byte(apart), 0o644))
	shell(t, "vitrine fit trips.csv apart.toml --out model.json")
	expect.Contains(t, shell(t, "vitrine optimize modes.csv --model model.json"),
		`model.json: the dissimilarity of nest "road" is 1.1`, "a nest apart")
}

// The learner of docs/howto/learners-in-other-languages.md plays, and earns what the page says.
func TestHowToLearnersInOtherLanguages(t *testing.T) {
	page := readPage(t, "learners-in-other-languages")
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 to run the learner")
	}
	dir := t.TempDir()
	learner := regexp.MustCompile("(?s)```python\n(.*?)```").FindSubmatch(page)[1]
	if lines := bytes.Count(regexp.MustCompile(`\n+`).ReplaceAll(learner, []byte("\n")), []byte("\n")); lines > 30 {
		t.Errorf("the learner has %d lines", lines)
	}
	write(t, filepath.Join(dir, "learner.py"), string(learner))
	file := regexp.MustCompile("(?s)```toml\n(.*?)```").FindSubmatch(page)[1]
	write(t, filepath.Join(dir, "mine.toml"), strings.Replace(string(file), "python3", python, 1))
	expect.Contains(fatal.T(t), shell(t, "vitrine run "+filepath.Join(dir, "mine.toml")+" --out "+dir),
		"mine: regret after 500 rounds, 5 seeds")
	summary := fatal.Or(os.ReadFile(filepath.Join(dir, "mine", "summary.csv")))(t)
	said := regexp.MustCompile(`mean regret is (\d+); a random policy's is (\d+)`).FindSubmatch(page)
	for k, policy := range []string{"learner", "uniform"} {
		var have, want float64
		fmt.Sscan(string(regexp.MustCompile(policy + `,5,500,([^,]*),`).FindSubmatch(summary)[1]), &have)
		fmt.Sscan(string(said[k+1]), &want)
		if math.Abs(have-want) > 0.1*want { // exponentials of other machines may differ in the last bit
			t.Errorf("%s has regret %v, and the page says %v", policy, have, want)
		}
	}
}

// The commands of docs/howto/run-an-experiment.md work as they stand, and do what the page says.
func TestHowToRunAnExperiment(t *testing.T) {
	s := newService(t)
	url, _, stop := serving(t, s)
	commands := regexp.MustCompile(`(?m)^(?:curl (-X PUT )?'?localhost:8080([^\s']+)'?(?: -d '([^']*)')?|vitrine report (.*) > report.html)$`).FindAllStringSubmatch(string(readPage(t, "run-an-experiment")), -1)
	ask(t, 201, "PUT", url+"/v1/placements/home",
		`{"max_size": 3, "features": [{"name": "price", "kind": "number"}]}`)
	var answers []string
	for _, c := range commands {
		if c[4] != "" {
			answers = append(answers, shell(t, "vitrine report "+c[4]+" --url "+url))
			continue
		}
		method, status := "GET", 200
		switch {
		case c[1] != "":
			method = "PUT"
		case strings.HasSuffix(c[2], "/decisions"):
			method, status = "POST", 201
		case c[3] != "":
			method, status = "POST", 204
		}
		answers = append(answers, ask(t, status, method, url+c[2], c[3]))
	}
	for i, want := range []string{`"gains":[]`, `"control":"shop"`, `"variant":"`, "", `"result":"continue"`,
		"<title>summer – home</title>", `"mode":"learn"`} {
		if i >= len(answers) || !strings.Contains(answers[i], want) {
			t.Fatalf("command %d of %d answers %v, want %s", i, len(answers), answers, want)
		}
	}
	if past := ask(t, 200, "GET", url+"/v1/placements/home/experiment", ""); !strings.Contains(past,
		`"past":[{"name":"summer"`) || strings.Contains(past, `"experiment":`) {
		t.Errorf("afterwards: %s", past)
	}
	for line, want := range map[string]string{
		"vitrine report home --experiment summer": "<title>summer – home</title>",
		"vitrine report home --experiment winter": `placement "home" has had no experiment "winter": there are ["summer"]`,
		"vitrine report cart":                     `placement "cart": not found`,
	} {
		expect.Contains(t, shell(t, line+" --url "+url), want, line)
	}
	ask(t, 201, "PUT", url+"/v1/placements/cart", `{"max_size":1,"features":[{"name":"x","kind":"number"}]}`)
	if have := shell(t, "vitrine report cart --url "+url); !strings.Contains(have,
		`placement "cart" has had no experiment`) || !strings.Contains(have, "hint: an experiment begins with") {
		t.Errorf("a placement without experiments: %s", have)
	}
	expect.Error(t, stop(), nil)
	expect.Contains(t, shell(t, "vitrine report home --url "+url), "is vitrine serve at this URL?",
		"a service that has stopped")
}

// The requests of the pages about placements work as they stand, and have the answers that the pages promise. The
// others go on where the first one ends.
func TestHowToPlacements(t *testing.T) {
	type answer struct {
		status int
		has    string
	}
	s := newService(t)
	url, _, stop := serving(t, s)
	for _, page := range []struct {
		name string
		want []answer
	}{
		{"first-placement", []answer{{201, `"auto"`},
			{201, `"assortment":[{"id":"sku4","position":1,"choice_probability":0.285`}, {204, ""}, {204, ""},
			{200, `"corrected":1`}}},
		{"ask-why", []answer{{200, `"next_best"`}, {200, `"effects"`}, {200, `"assortment":[{"id":"sku1"`}}},
		{"roll-back", []answer{
			{200, `{"version":3}`},
			{409, `"rounds":1`}, {200, `"max_size":4`}, {200, `"before the sale"`}, {204, ""}, {200, `"max_size":3`},
		}},
		{"catalogue", []answer{{200, `"brand"`}, {200, `"changed":2`}, {201, `"payload":{"title":"Hat"}`}}},
	} {
		requests := regexp.MustCompile(`(?m)^curl (-X PUT )?localhost:8080(\S+)(?: -d '([^']*)')?$`).FindAllStringSubmatch(string(readPage(t, page.name)), -1)
		expect.Equal(fatal.T(t), len(requests), len(page.want), page.name, "requests")
		for i, r := range requests {
			method := "GET"
			switch {
			case r[1] != "":
				method = "PUT"
			case r[3] != "":
				method = "POST"
			}
			expect.Contains(t, ask(t, page.want[i].status, method, url+r[2], r[3]), page.want[i].has, page.name,
				method, r[2])
		}
	}
	expect.Error(t, stop(), nil)
}
