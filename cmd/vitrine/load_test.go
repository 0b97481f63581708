package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/load"
)

func loaded(t *testing.T, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	stdout, stderr, got := vitrineRun(t, append([]string{"load"}, args...)...)
	if got != code {
		t.Fatalf("load %q: exit status %d, want %d: %s", args, got, code, stderr)
	}
	return stdout, stderr
}

// A service that requires keys is loaded with a key from a file.
func TestLoad(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	tokens := map[string]string{}
	for name, scopes := range map[string]string{"all": "decide,outcome,read,admin", "blind": "decide,outcome"} {
		token := run1(t, "keys", "add", path("keys.toml"), name, "--scopes", scopes)
		tokens[name] = strings.TrimSpace(token)
		fatal.If(t, os.WriteFile(path(name), []byte(token), 0o600))
	}
	s := newService(t)
	s.Keys = path("keys.toml")
	url, log, stop := serving(t, s)
	few := []string{url, "--items", "10", "--features", "2", "--size", "3", "--connections", "4", "--decisions", "50"}

	_, errs := loaded(t, 1, few...)
	if !strings.Contains(errs, "unauthorized") || !strings.Contains(errs, "--key-file") {
		t.Error(errs)
	}
	_, errs = loaded(t, 1, append(few, "--key-file", path("blind"))...)
	expect.Contains(t, errs, "forbidden")
	few = append(few, "--key-file", path("all"))
	_, errs = loaded(t, 1, append(few, "--policy", "ucb-mln")...)
	if !strings.Contains(errs, `did you mean "ucb-mnl"?`) || strings.Contains(errs, "hint:") {
		t.Error(errs)
	}
	out, errs := loaded(t, 0, append(few, "--rate", "max", "--ack-log", path("reported"))...)
	for _, want := range []string{
		`^JSON, 10 items × 2 features, 4 connections, closed loop, as fast as possible: each caller waits for its answer before the next request\n`,
		`\n[\d.]+ decisions a second in [\d.]+ s\n`, `\ndecisions +50( +[\d.]+){5}\n`, `\noutcomes +\d+( +[\d.]+){5}\n`,
		`\npurchases: [\d.]+% of outcomes\n`, `\ngenerator: \d+ µs a decision; delay of sending p99`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	expect.Contains(t, errs, `created placement "load" with the policy onl-mnl`)
	out, errs2 := loaded(t, 0, append(few, "--rate", "500", "--arrivals", "constant", "--json", "--ack-log",
		path("reported"))...)
	var r load.Result
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.Decisions.Count != 50 || r.Target != 500 ||
		strings.Contains(errs2, "created placement") {
		t.Errorf("%+v, %v, %s", r, err, errs2)
	}
	reported, err := os.ReadFile(path("reported"))
	if _, errs := loaded(t, 0, append(few, "--policy", "ucb-mnl")...); !strings.Contains(errs,
		`placement "load" has the policy onl-mnl`) || strings.Contains(errs2, "has the policy") {
		t.Errorf("%s, and before %s", errs, errs2)
	}
	if n := strings.Count(string(reported), `"shown"`); err != nil || n != 100 {
		t.Errorf("%d decisions were appended, %v", n, err)
	}
	_, errs3 := loaded(t, 1, append(few, "--features", "3")...)
	if !strings.Contains(errs3, "the placement is for other requests") || !strings.Contains(errs3, "--placement") {
		t.Error(errs3)
	}
	expect.Error(t, stop(), nil)
	for _, token := range tokens {
		if strings.Contains(out+errs+errs2+errs3+log.text.String(), token) {
			t.Error("a token was printed or logged")
		}
	}
}
