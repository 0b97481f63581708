package main

import (
	"math"
	"os"
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// All constants are set, and the fit of appends passes through both measurements.
func TestCosts(t *testing.T) {
	c := fatal.Or(readCosts("."))(t)
	a, b := c.append()
	for i, n := range c.Callers {
		if got := n / (a + b*n); math.Abs(got-c.Entries[i]) > 1e-6*c.Entries[i] {
			t.Errorf("%v callers append %v entries a second, want %v", n, got, c.Entries[i])
		}
	}
	if !(a > 0 && b > 0) {
		t.Errorf("a = %v, b = %v", a, b)
	}
	expect.Part(readCosts(t.TempDir()))(t, "measured.toml")
}

// The planned processes satisfy the inequality, and one fewer per service does not.
func TestSize(t *testing.T) {
	c := &costs{Serve: 100, Follow: 4, Learn: 5, Bytes: 500, Callers: []float64{64, 256},
		Entries: []float64{23600, 86400}, Lead: 35, Lag: 0.1}
	for _, rate := range []float64{1e4, 1e5, 1e6} {
		z := c.size(rate)
		if float64(z.services)*c.maxRate() < rate || float64(z.services-1)*c.maxRate() >= rate {
			t.Errorf("%v: %d services of %v", rate, z.services, c.maxRate())
		}
		part := rate / float64(z.services)
		enough := func(n float64) bool { return n*8*0.7 >= part*(100+35)*1e-6+n*part*(4+0.9*5)*1e-6 }
		each := float64(z.processes) / float64(z.services)
		if !enough(each) || each > 3 && enough(each-1) {
			t.Errorf("%v: %v processes a service", rate, each)
		}
	}
	last := 0.0
	for _, l := range c.limits() {
		if !(l.rate >= last) {
			t.Errorf("%s, at %v, is after %v", l.what, l.rate, last)
		}
		last = l.rate
	}
}

// docs/scale.md shows the plan's tables.
func TestPage(t *testing.T) {
	c := fatal.Or(readCosts("."))(t)
	var text strings.Builder
	plan(&text, c)
	page := fatal.Or(os.ReadFile("../../docs/scale.md"))(t)
	tables := strings.Split(strings.TrimSpace(text.String()), "\n\n")[1:]
	expect.Equal(t, len(tables), 2, "the plan has n tables")
	for _, table := range tables {
		expect.Contains(t, string(page), table, "docs/scale.md does not show this table: go run ./bench/scale plan")
	}
}
