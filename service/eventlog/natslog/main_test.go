package natslog_test

import (
	"flag"
	"os"
	"testing"
	"time"

	"vitrine/service/eventlog/natslog"
)

// lease is how long a lease holds: a writer on a machine with other work is not taken for dead.
const lease = 3 * time.Second

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil { // most tests wait
		panic(err)
	}
	natslog.SetAttempt(200 * time.Millisecond)
	natslog.SetLease(50*time.Millisecond, lease)
	os.Exit(m.Run())
}
