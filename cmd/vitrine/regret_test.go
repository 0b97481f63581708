package main

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"vitrine/config"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/paper/experiments"
)

// Short runs of five panels give the recorded bytes, on all vector paths. The panels cover every policy, and a world
// that moves. bench/checksums.sh compares all panels at their full length.
func TestRegretIsAsRecorded(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the last digits of exp and log differ on other machines")
	}
	table := fatal.Or(os.ReadFile("../../paper/experiments/testdata/short.sha256"))(t)
	dir := t.TempDir()
	args := []string{"run", "--seeds", "1", "--baselines", "both", "--out", dir}
	want := map[string]string{}
	for line := range strings.Lines(string(table)) {
		sum, file, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok {
			continue // the comment
		}
		name := filepath.Dir(file)
		panel := fatal.Or(experiments.Read(name))(t)
		short := regexp.MustCompile(`(?m)^rounds = \d+`).ReplaceAll(panel, []byte("rounds = 120"))
		path := filepath.Join(dir, name+".toml")
		fatal.If(t, os.WriteFile(path, short, 0o600))
		args = append(args, path)
		want[name] = sum
	}
	expect.Equal(fatal.T(t), len(want), 5, "the table has n panels")
	run1(t, args...)
	for name, sum := range want {
		regret := fatal.Or(os.ReadFile(filepath.Join(dir, name, "regret.csv")))(t)
		if have := sha256.Sum256(regret); hex.EncodeToString(have[:]) != sum {
			t.Errorf("%s: regret.csv differs from the one recorded: %x", name, have)
		}
	}
}

// A new panel needs a line in the table of bench/checksums.sh.
func TestEverySyntheticPanelHasAChecksum(t *testing.T) {
	table := fatal.Or(os.ReadFile("../../paper/experiments/testdata/regret.sha256"))(t)
	for _, name := range experiments.Names() {
		text := fatal.Or(experiments.Read(name))(t)
		panel := fatal.Or(config.Load(name+".toml", text))(t)
		if panel.Pool == "" && !strings.Contains(string(table), "  "+name+"/regret.csv\n") {
			t.Errorf("%s has no line in regret.sha256: bench/checksums.sh says how to add one", name)
		}
	}
}
