package main

import (
	"bytes"
	"flag"
	"testing"

	"vitrine/service/host/hosttest"
)

var (
	program = (*hosttest.Program)(flag.String("vitrine", "vitrine", "the program that the tests start as the "+
		"service; by default the test itself"))
	killSeed = flag.Uint64("kill-seed", 1, "of the moments at which tests strike")
)

const patience = hosttest.Patience

func often(times int) hosttest.Often { return hosttest.Often{Times: times, Seed: *killSeed} }

// held reports a test's finding, for bench/attack/attack.sh.
func held(t *testing.T, said string) {
	if !t.Failed() {
		t.Log("verdict: " + said)
	}
}

// command gives vitrine arguments, and returns what it prints and its exit status.
func command(t *testing.T, args ...string) (output string, code int) {
	t.Helper()
	var both bytes.Buffer
	code = run(t.Context(), args, &both, &both)
	return both.String(), code
}
