package natslog_test

import (
	"flag"
	"os"
	"testing"
	"time"

	"vitrine/service/eventlog/natslog"
)

// lease is how long a lease holds in tests, so that a writer on a busy machine does not seem dead.
const lease = 3 * time.Second

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil { // most tests spend their time waiting
		panic(err)
	}
	natslog.SetAttempt(200 * time.Millisecond)
	natslog.SetLease(50*time.Millisecond, lease)
	os.Exit(m.Run())
}
