// Package rapidseed gives the property tests of an importing package the same seed in every run, so they fail either
// always or never. The flags -rapid.seed and -rapid.checks override its values; -rapid.seed=0 draws a seed.
package rapidseed

import (
	"flag"
	"fmt"

	_ "pgregory.net/rapid" // defines the flags
)

func init() {
	if err := flag.Set("rapid.seed", "1"); err != nil {
		panic(fmt.Sprintf("rapidseed: %v", err))
	}
}
