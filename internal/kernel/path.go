package kernel

import (
	"fmt"
	"os"
)

// path identifies an implementation of the kernels.
type path int

const (
	generic path = iota // Go
	avx2                // AVX2, FMA and BMI2
	avx512              // AVX2 and AVX-512 F, DQ and VL
)

func (p path) String() string { return [...]string{"generic", "avx2", "avx512"}[p] }

// variable is the environment variable that selects a path.
const variable = "VITRINE_KERNEL"

// active is the path of this process. refused says why it differs from the path that the variable asks for.
var active, refused = choose(os.Getenv(variable), best())

// Path returns the name of this process's path. If the environment asks for a different path, the error says why the
// process uses the machine's best path instead.
func Path() (name string, err error) { return active.String(), refused }

// choose returns the path of the given name, or best if name is "". If the machine does not support it, choose returns
// best and an error.
func choose(name string, best path) (path, error) {
	if name == "" {
		return best, nil
	}
	for p, needs := range []string{generic: "", avx2: "AVX2 with FMA and BMI2", avx512: "AVX-512 F, DQ and VL"} {
		switch p := path(p); {
		case name != p.String():
		case p > best:
			return best, fmt.Errorf("%s=%v: this machine has no %s: unset it", variable, p, needs)
		default:
			return p, nil
		}
	}
	return best, fmt.Errorf("%s=%s: want generic, avx2 or avx512, or unset it for the best that the machine has",
		variable, name)
}
