package vitrine_test

import (
	"os"
	"testing"

	"vitrine"
	"vitrine/internal/fatal"
)

// A user who asks for vector code by name can check that the process uses it.
func TestKernelPath(t *testing.T) {
	name := fatal.Or(vitrine.KernelPath())(t)
	if want := os.Getenv("VITRINE_KERNEL"); name == "" || want != "" && name != want {
		t.Errorf("the path is %q, and VITRINE_KERNEL=%s", name, want)
	}
}
