package natslog_test

import (
	"math/rand/v2"
	"testing"

	"vitrine/service/eventlog/logtest"
)

func TestCrash(t *testing.T) {
	logtest.Crash(t, crashes, rand.New(rand.NewPCG(40, 1)), open)
}

func TestCrashTruncating(t *testing.T) {
	logtest.CrashTruncating(t, crashes, rand.New(rand.NewPCG(45, 1)), open)
}
