package host

import (
	"context"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vitrine/internal/fatal"
	"vitrine/service/engine"
	"vitrine/service/eventlog/natslog"
	"vitrine/service/eventlog/natslog/natstest"
	"vitrine/service/setup"
)

// deaf never reads the log to its end.
type deaf struct{}

func (deaf) Synced() (uint64, time.Time) { return 0, time.Time{} }

func (deaf) Follow(ctx context.Context, _ uint64) iter.Seq2[[][]byte, error] {
	return func(yield func([][]byte, error) bool) {
		<-ctx.Done()
		yield(nil, ctx.Err())
	}
}

// A follower that reaches the servers may be slow for a while, and stays out of the load balancer.
func TestFollowerIsFarBehind(t *testing.T) {
	url := natstest.URL(t)
	leader := fatal.Or(natslog.Open(t.Context(), natslog.Options{URL: url}))(t)
	defer leader.Close()
	var ahead atomic.Int64
	store := fatal.Or(natslog.Open(t.Context(), natslog.Options{URL: url, Standby: true,
		Now: func() (steady, day time.Time) {
			now := time.Now().Add(time.Duration(ahead.Load()))
			return now, now
		}}))(t)
	defer store.Close()
	e := fatal.Or(engine.Open(t.Context(), engine.Options{Store: store, Build: setup.NewLearner, Follow: deaf{}}))(t)
	defer e.Close()
	if lag, sawEnd := e.Lag(); sawEnd || lag > time.Hour {
		t.Errorf("it is %v behind, and saw the end of the log: %v", lag, sawEnd)
	}
	now := time.Now()
	wants := func(l *session, lag time.Duration, level, text string) {
		t.Helper()
		if gotLevel, got := l.away(lag, now); gotLevel != level || !strings.Contains(got, text) {
			t.Errorf("%q: %s", gotLevel, got)
		}
	}
	for _, s := range []*natslog.Store{store, leader} { // one that became the leader follows until it has read the log
		l := &session{shared: s, engine: e}
		wants(l, time.Second, "", "")
		wants(l, time.Minute, "warning", "behind the log for 1m0s, although one of the log's servers answers: the servers may lack a majority")
		wants(l, time.Second, "", "")
		wants(l, 2*time.Second, "", "")
		now = now.Add(maxBehind)
		wants(l, 2*time.Second, "warning", "behind the log for 1m0s")
		now = now.Add(time.Second)
		wants(l, 2*time.Second, "bad", "behind the log for 1m1s")
	}
	ahead.Store(int64(time.Minute))
	wants(&session{shared: store, engine: e}, time.Minute, "bad",
		"follows the log, and has not reached its servers for 1m")
}
