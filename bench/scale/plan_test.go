package main

import (
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

func toy() *costs {
	return &costs{Serve: 100, Follow: 4, Learn: 5, Bytes: 500, Callers: []float64{64, 256}, Entries: []float64{23600, 86400}, Lead: 35, Lag: 0.1}
}

// The constants are there, and the fit of appends passes through both measurements.
func TestCosts(t *testing.T) {
	c, err := readCosts(".")
	if err != nil {
		t.Fatal(err)
	}
	a, b := c.append()
	for i, n := range c.Callers {
		if got := n / (a + b*n); math.Abs(got-c.Entries[i]) > 1e-6*c.Entries[i] {
			t.Errorf("%v callers append %v entries a second, want %v", n, got, c.Entries[i])
		}
	}
	if !(a > 0 && b > 0) {
		t.Errorf("a = %v, b = %v", a, b)
	}
	if _, err := readCosts(t.TempDir()); err == nil || !strings.Contains(err.Error(), "measured.toml") {
		t.Error(err)
	}
}

// As many processes are enough as the inequality says, and one fewer is not. A service can be too large for any number.
func TestSize(t *testing.T) {
	c := toy()
	for _, s := range shapes {
		for _, rate := range []float64{1e4, 1e5, 1e6} {
			z := c.size(rate, s)
			if float64(z.shards)*c.maxRate() < rate || float64(z.shards-1)*c.maxRate() >= rate {
				t.Errorf("%s, %v: %d shards of %v", s.name, rate, z.shards, c.maxRate())
			}
			share := 1.0
			if !s.all {
				share = 1 / float64(z.shards)
			}
			enough := func(n int) bool {
				p := float64(n)
				return p*8*0.7 >= rate*(100+35)*1e-6+p*share*rate*(4+s.sampled*0.9*5)*1e-6
			}
			switch {
			case z.processes == 0:
				if enough(1 << 30) {
					t.Errorf("%s, %v: some number is enough", s.name, rate)
				}
			case !enough(z.processes), z.processes > 3 && z.processes > 2*z.shards && enough(z.processes-1):
				t.Errorf("%s, %v: %d processes", s.name, rate, z.processes)
			}
		}
	}
	if c.size(1e6, shapes[0]).processes != 0 || c.size(1e6, shapes[2]).processes == 0 {
		t.Error("a million decisions a second are too many for processes that follow all shards, not for those of a shard")
	}
	last := 0.0
	for _, l := range c.limits() {
		if !(l.rate >= last) {
			t.Errorf("%s, at %v, is after %v", l.what, l.rate, last)
		}
		last = l.rate
	}
}

// A shard that is almost idle answers after its parts' own times, and one whose leader is overloaded grows without end.
func TestShard(t *testing.T) {
	c := toy()
	a, b := c.append()
	r := c.shard(rand.New(rand.NewPCG(1, 1)), 5, 2, 0.5, 1, 200)
	alone := 100e-6/0.5 + 35e-6/1.9 + a + b
	if got := quantile(r.answers, 0.5); math.Abs(got-alone) > 1e-9 {
		t.Errorf("an answer takes %v, want %v", got, alone)
	}
	if got, want := quantile(r.lags, 0.5), 4e-6/1.9+5e-6+0.1e-3; math.Abs(got-want) > 1e-9 {
		t.Errorf("the lag is %v, want %v", got, want)
	}
	if rounds := float64(len(r.lags)) / float64(len(r.answers)); math.Abs(rounds-reported) > 0.1 {
		t.Errorf("%v rounds a decision", rounds)
	}
	if sampled := c.shard(rand.New(rand.NewPCG(1, 1)), 500, 2, 0, 0.1, 10); math.Abs(float64(len(sampled.lags))/float64(len(sampled.answers))-0.09) > 0.02 {
		t.Errorf("%d of %d rounds are learned", len(sampled.lags), len(sampled.answers))
	}
	over := c.shard(rand.New(rand.NewPCG(1, 1)), 1.5/(c.Lead*1e-6), 8, 0, 1, 1)
	if got := quantile(over.answers, 1); math.Abs(got-0.5) > 0.1 { // 1.5 seconds' work in one second
		t.Errorf("the last answer comes after %v, want half a second", got)
	}
}

// docs/scale.md has the tables of the plan.
func TestPage(t *testing.T) {
	c, err := readCosts(".")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	plan(&text, c, planned)
	page, err := os.ReadFile("../../docs/scale.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range strings.Split(strings.TrimSpace(text.String()), "\n\n")[1:] {
		if !strings.Contains(string(page), table) {
			t.Errorf("docs/scale.md does not have this table: go run ./bench/scale plan\n%s", table)
		}
	}
}
