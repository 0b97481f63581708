// Package rapidseed gives the property tests of a package that imports it the same seed in every run: they fail always or
// never. The flags -rapid.seed and -rapid.checks override its values; -rapid.seed=0 draws a seed.
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
