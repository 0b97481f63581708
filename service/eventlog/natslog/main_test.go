package natslog_test

import (
	"os"
	"testing"
	"time"

	"vitrine/service/eventlog/natslog"
)

func TestMain(m *testing.M) {
	natslog.SetAttempt(200 * time.Millisecond)
	natslog.SetLease(50*time.Millisecond, 3*time.Second) // a writer on a machine with other work is not taken for dead
	os.Exit(m.Run())
}
