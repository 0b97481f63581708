package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pelletier/go-toml/v2"
)

// costs are the plan's constants. Processor times are in microseconds on one core.
type costs struct {
	Machine string `toml:"machine" comment:"Written by go run ./bench/scale measure. Microseconds are processor time of one core."`

	Serve  float64 `toml:"serve_us" comment:"a decision with its outcomes in the process that is asked, without log and learning: HTTP, the choice of a linear onl-mnl among the 1000 items of a catalogue, the entries"`
	Follow float64 `toml:"follow_us" comment:"both entries of a round in a follower: decoding, applying"`
	Learn  float64 `toml:"learn_us" comment:"what a linear learner adds for a round"`
	Bytes  float64 `toml:"bytes" comment:"of a round in the log"`

	// From given.toml.
	Callers []float64 `toml:"callers,omitempty"`
	Entries []float64 `toml:"entries_per_second,omitempty"`
	Lead    float64   `toml:"lead_us,omitempty"`
	Lag     float64   `toml:"lag_ms,omitempty"`
}

// readCosts reads the measured and the given constants from a directory.
func readCosts(dir string) (*costs, error) {
	c := new(costs)
	for _, name := range []string{"measured.toml", "given.toml"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = toml.Unmarshal(text, c)
		}
		if err != nil {
			return nil, err
		}
	}
	for name, v := range map[string]float64{"serve_us": c.Serve, "follow_us": c.Follow, "learn_us": c.Learn,
		"bytes": c.Bytes, "lead_us": c.Lead, "lag_ms": c.Lag} {
		if !(v > 0) {
			return nil, fmt.Errorf("%s: %v: must be positive", name, v)
		}
	}
	if len(c.Callers) != 2 || len(c.Entries) != 2 {
		return nil, errors.New("callers and entries_per_second: must have two values each")
	}
	return c, nil
}

// append returns a and b, where appending n entries takes a + b n seconds. N callers that each wait for their entry
// form groups of N, so that they append
//
//	N / (a + b N)
//
// entries a second: two measurements determine both.
func (c *costs) append() (a, b float64) {
	t0, t1 := c.Callers[0]/c.Entries[0], c.Callers[1]/c.Entries[1]
	b = (t1 - t0) / (c.Callers[1] - c.Callers[0])
	return t0 - b*c.Callers[0], b
}
