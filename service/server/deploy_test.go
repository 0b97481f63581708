package server_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/engine"
	"vitrine/service/metrics"
	"vitrine/service/server"
)

// The alerts and the dashboard in deploy/ name metrics, routes and jobs that exist, and no placement is missing in a panel by
// its labels.
func TestDeployedMetricsExist(t *testing.T) {
	s := started(t, func(o *server.Options, _ *engine.Options) { o.Appends = metrics.NewAppends() })
	known := s.MetricNames()
	if len(known) < 40 {
		t.Fatalf("the metrics are %q", known)
	}
	routes := map[string]bool{}
	for _, r := range s.Routes() {
		routes[r.Path] = true
	}
	// A Service's label names the job that the Prometheus operator makes of it.
	label := part(t, "extras/servicemonitor.yaml", `(?m)^  jobLabel: (\w+)`)
	jobs := []string{part(t, "prometheus.yaml", `job_name: (\w+)`),
		part(t, "cluster/kubernetes.yaml", `(?s)name: vitrine-processes .{0,150}labels: \{[^}]*\b`+label+`: (\w+)`)}
	check := func(file, expression string) {
		t.Helper()
		found := regexp.MustCompile(`\b(vitrine|process|go)_\w+`).FindAllString(expression, -1)
		for _, name := range found {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				if base, ok := strings.CutSuffix(name, suffix); ok && slices.Contains(known, base) {
					name = base
				}
			}
			if !slices.Contains(known, name) {
				t.Errorf("deploy/%s: %s: there is no metric %s", file, expression, name)
			}
		}
		for _, m := range regexp.MustCompile(`route="([^"]*)"`).FindAllStringSubmatch(expression, -1) {
			if !routes[m[1]] {
				t.Errorf("deploy/%s: there is no route %s", file, m[1])
			}
		}
		for _, m := range regexp.MustCompile(`job=~?"([^"]*)"`).FindAllStringSubmatch(expression, -1) {
			for _, job := range jobs {
				expect.Equal(t, job, m[1], "the job of deploy/", file)
			}
		}
	}
	alerts := deployed(t, "alerts.yaml")
	n := strings.Count(alerts, "alert: Vitrine")
	if n < 10 {
		t.Errorf("%d alerts", n)
	}
	check("alerts.yaml", alerts)

	var dashboard struct {
		Templating struct{ List []struct{ Definition string } }
		Panels     []struct {
			Type, Title string
			Targets     []struct{ Expr string }
		}
	}
	fatal.If(t, json.Unmarshal([]byte(deployed(t, "dashboard.json")), &dashboard, json.MatchCaseInsensitiveNames(true)))
	for _, v := range dashboard.Templating.List {
		check("dashboard.json", v.Definition)
	}
	panels := 0
	for _, p := range dashboard.Panels {
		if p.Type == "row" {
			continue
		}
		panels++
		if len(p.Targets) == 0 {
			t.Errorf("the panel %q shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			check("dashboard.json", target.Expr)
			expect.Contains(t, target.Expr, `instance=~"$instance"`, "the panel", p.Title, "is of all instances")
		}
	}
	if panels < 10 {
		t.Errorf("%d panels", panels)
	}
}

// part returns what the parentheses of a pattern enclose in a file of deploy/.
func part(t testing.TB, name, pattern string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(deployed(t, name))
	if found == nil {
		t.Fatalf("deploy/%s has no %s", name, pattern)
	}
	return found[1]
}

func deployed(t testing.TB, name string) string {
	t.Helper()
	text := fatal.Or(os.ReadFile("../../deploy/" + name))(t)
	return string(text)
}
