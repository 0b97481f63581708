package main

import (
	"math/rand/v2"
	"testing"

	"vitrine/env/envtest"
)

// The season keeps the contract of environments.
func TestSeason(t *testing.T) {
	envtest.TestEnvironment(t, newSeason(rand.New(rand.NewPCG(1, 2))), items, features)
}
