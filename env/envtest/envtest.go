// Package envtest is the contract of [env.Environment] as a battery of tests,
// which every simulated world must pass.
package envtest

import (
	"testing"

	"vitrine/env"
)

// clause is a part of the contract. Its check returns what is wrong.
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

// TestEnvironment tests that e keeps the contract of [env.Environment], with n
// items of d features:
//
//   - contexts have that shape, finite features and lawful revenues;
//   - they come from rng and nothing else: the same state gives the same
//     context, and draws in a row give different ones;
//   - they are the caller's: neither changes when the other is drawn or
//     written over;
//   - utilities are finite, repeatable, whatever was in their destination, and
//     leave the context as it was;
//   - an item's utility is the same alone and in a batch, bit for bit,
//     and a context may have no items;
//   - a wrong length or number of features panics;
//   - Utilities allocates nothing in steady state;
//   - concurrent calls return what a single one does;
//   - the environment of a round, where e moves, is a function of the round and
//     keeps the contract.
//
// It may not run beside parallel tests, because it counts allocations.
func TestEnvironment(t *testing.T, e env.Environment, n, d int) {
	t.Helper()
	for _, c := range contract {
		t.Run(c.name, func(t *testing.T) {
			if err := c.check(world{e, n, d}); err != nil {
				t.Error(err)
			}
		})
	}
}
