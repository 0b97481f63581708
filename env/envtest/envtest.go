// Package envtest tests the contract of [env.Environment]. Every simulated world must pass.
package envtest

import (
	"testing"

	"vitrine/env"
	"vitrine/internal/expect"
)

// clause is one part of the contract. Its check returns an error that describes the violation.
type clause struct {
	name  string
	check func(world) error
}

var contract = []clause{
	{"ContextsAreLawful", checkLawful},
	{"ContextsComeFromRng", checkSource},
	{"ContextsAreTheCallers", checkOwnership},
	{"UtilitiesAreFinite", checkFinite},
	{"UtilitiesAreRepeatable", checkRepeatable},
	{"BatchIsSingleItems", checkBatch},
	{"NoItemsAreLawful", checkNoItems},
	{"ContextIsKept", checkArguments},
	{"WrongShapesPanic", checkPanics},
	{"NothingIsAllocated", checkAllocations},
	{"ConcurrentCallsAgree", checkConcurrency},
	{"RoundsAreRepeatable", checkRounds},
}

// TestEnvironment tests that e keeps the contract of [env.Environment], with n items of d features:
//
//   - Contexts have that shape, finite features and valid revenues.
//   - Contexts depend only on rng: the same state gives the same context, and consecutive draws give different ones.
//   - Contexts belong to the caller: drawing or overwriting one does not change another.
//   - Utilities are finite and repeatable, ignore the old content of their destination, and leave the context
//     unchanged.
//   - An item's utility is the same on its own and in a batch, bit for bit. A context without items is accepted.
//   - A wrong length or number of features panics.
//   - Utilities does not allocate in steady state.
//   - Concurrent calls return the same results as single ones.
//   - If e moves, the environment of a round depends only on the round and keeps the contract.
//
// Do not run it alongside parallel tests, because it counts allocations.
func TestEnvironment(t *testing.T, e env.Environment, n, d int) {
	t.Helper()
	for _, c := range contract {
		t.Run(c.name, func(t *testing.T) {
			expect.Error(t, c.check(world{e, n, d}), nil)
		})
	}
}
