package config_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"vitrine/config"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/paper/experiments"
)

// The panels and policies that bench/peers/race.sh plays exist.
func TestRaceOfThePeersNamesWhatExists(t *testing.T) {
	script := fatal.Or(os.ReadFile("../bench/peers/race.sh"))(t)
	words := func(pattern, separator string) []string {
		m := regexp.MustCompile(pattern).FindSubmatch(script)
		if m == nil {
			t.Fatalf("bench/peers/race.sh has no %s", pattern)
		}
		return strings.Split(string(m[1]), separator)
	}
	panels := words(`(?m)^panels=\(([^)]*)\)`, " ")
	played := words(`--baselines tuned \\\n\s*--policies (\S+)`, ",")
	checked := words(`--policies (\S+) --out "\$dir/worlds"`, ",")
	for _, panel := range panels {
		text, err := experiments.Read(panel)
		if err != nil {
			t.Errorf("bench/peers/race.sh: %v", err)
			continue
		}
		f := fatal.Or(config.Load(panel+".toml", text))(t)
		for _, policies := range [][]string{played, checked} {
			expect.Error(t, f.Check(config.Selection{Policies: policies, Baselines: "tuned"}), nil,
				"bench/peers/race.sh")
		}
	}
	if !slices.Contains(played, "bma-mnl") {
		t.Errorf("bench/peers/race.sh does not play bma-mnl, with which it compares")
	}
}
