package main

import (
	"flag"
	"testing"

	"vitrine/internal/long"
	"vitrine/service/host/hosttest"
)

var powerCuts = flag.Int("power-cuts", 3, "how often TestPowerLoss cuts the power of the disk")

func TestPowerLoss(t *testing.T) {
	long.Test(t)
	held(t, hosttest.PowerLoss(t, *program, often(*powerCuts)))
}
