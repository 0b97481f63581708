package config_test

import (
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/option"
	"vitrine/internal/stream"
)

// states is the environment variable that makes TestStatesOfThisPath print.
const states = "VITRINE_STATES"

// TestStatesAreOneOnAllPaths checks that every policy in the catalog offers the same assortments with the same
// propensities, and reaches the same state to the last bit, on every code path, after rounds with rows long enough for
// all vector code.
func TestStatesAreOneOnAllPaths(t *testing.T) {
	self := fatal.Or(os.Executable())(t)
	here := fatal.Or(vitrine.KernelPath())(t)
	want := statesHere(t)
	for _, path := range []string{"generic", "avx2", "avx512"} {
		t.Run(path, func(t *testing.T) {
			if path == here {
				t.Skip("the others are compared with this one")
			}
			c := exec.Command(self, "-test.run=^TestStatesOfThisPath$", "-test.v")
			c.Env = append(os.Environ(), "VITRINE_KERNEL="+path, states+"=print")
			out, err := c.CombinedOutput()
			if strings.Contains(string(out), "this machine has no") {
				t.Skip(strings.TrimSpace(string(out)))
			}
			fatal.If(t, err, out)
			got := slices.DeleteFunc(strings.Split(string(out), "\n"), func(line string) bool {
				return !strings.HasPrefix(line, "state ")
			})
			if len(got) != len(want) {
				t.Fatalf("%d states, want %d:\n%s", len(got), len(want), out)
			}
			for i, w := range want {
				expect.Equal(t, got[i], w, here, w, path)
			}
		})
	}
}

// TestStatesOfThisPath prints the states on this process's path, for the test above; and, by hand, for programs built
// in another way:
//
//	VITRINE_STATES=print GOAMD64=v3 go test ./config -run TestStatesOfThisPath -v
func TestStatesOfThisPath(t *testing.T) {
	if os.Getenv(states) == "" {
		t.Skip(states + "=print prints them")
	}
	fatal.Or(vitrine.KernelPath())(t)
	for _, line := range statesHere(t) {
		fmt.Println(line)
	}
}

// statesHere returns a line per policy, with checksums of its offers and its state.
func statesHere(t *testing.T) []string {
	const width, items, rounds = 14, 20, 40
	var lines []string
	for _, entry := range learners() {
		table := "[[policy]]\nname = \"" + entry.Name + "\"\n" + short[entry.Name]
		if slices.ContainsFunc(entry.Options, func(o option.Option) bool { return o.Key == "utility" && o.Required }) {
			table += "utility = { kind = \"mlp\", hidden = [3] }\n"
		}
		e := loadWide(t, width, plainWorld+table)
		l, err := e.Policies[0].New(e.World(stream.New(1, 0, stream.World)), stream.New(1, 0, stream.Learner))
		fatal.If(t, err)
		offers := sha256.New()
		for round := range rounds {
			rng := stream.New(1, round, stream.Policy)
			x := &vitrine.Context{Features: mat.NewDense(items, width, nil), Revenue: make([]float64, items)}
			for i := range x.Revenue {
				x.Revenue[i] = rng.Float64()
				for j := range width {
					x.Features.Set(i, j, 2*rng.Float64()-1)
				}
			}
			offer := l.Policy().Offer(x, rng)
			_ = binary.Write(offers, binary.LittleEndian, math.Float64bits(offer.Propensity))
			for _, i := range offer.Assortment {
				_ = binary.Write(offers, binary.LittleEndian, uint64(i))
			}
			choice := vitrine.Choice(stream.New(1, round, stream.Customers).IntN(len(offer.Assortment) + 1))
			fatal.If(t, l.Observe(vitrine.Round{Context: x, Offer: offer, Choice: choice}), entry.Name, "round", round)
		}
		var state []byte
		if s, ok := l.(encoding.BinaryMarshaler); ok {
			if state, err = s.MarshalBinary(); err != nil {
				t.Fatalf("%s: %v", entry.Name, err)
			}
		}
		lines = append(lines, fmt.Sprintf("state %-16s %x offers %x",
			entry.Name, sha256.Sum256(state), offers.Sum(nil)[:8]))
	}
	return lines
}
