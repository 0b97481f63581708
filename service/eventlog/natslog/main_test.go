package natslog_test

import (
	"os"
	"testing"
	"time"

	"vitrine/service/eventlog/natslog"
)

func TestMain(m *testing.M) {
	natslog.SetAttempt(200 * time.Millisecond)
	natslog.SetLease(50*time.Millisecond, 500*time.Millisecond)
	os.Exit(m.Run())
}
