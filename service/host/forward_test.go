package host

import (
	"context"
	"errors"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/engine"
	"vitrine/service/eventlog/natslog"
	"vitrine/service/eventlog/natslog/natstest"
)

// A request that a leader took and never answers, because another process leads or the connection ends, has no leader: it
// did not fail. It is not sent twice.
func TestForwardIsNotAnswered(t *testing.T) {
	url := natstest.URL(t)
	open := func(o natslog.Options) *natslog.Store {
		o.URL, o.Standby = url, true
		s := fatal.Or(natslog.Open(t.Context(), o))(t)
		t.Cleanup(func() { s.Close() })
		return s
	}
	came, ends := make(chan bool, 10), make(chan bool)
	answers := func(s *natslog.Store) {
		stop := fatal.Or(s.Answer(toForward, func(request []byte) []byte {
			if string(request) == "quick" {
				return []byte("done")
			}
			came <- true
			<-ends
			return nil
		}))(t)
		t.Cleanup(stop)
	}
	leader, f := open(natslog.Options{}), &session{shared: open(natslog.Options{})}
	defer close(ends)
	answers(leader)
	follow, stop := context.WithCancel(t.Context())
	followed := make(chan bool)
	defer func() { stop(); <-followed }()
	go func() {
		defer close(followed)
		for _, err := range f.shared.Follow(follow, 1) {
			if err != nil {
				return
			}
		}
	}()
	if a, err := f.forward(t.Context(), []byte("quick")); string(a) != "done" || err != nil {
		t.Fatalf("%q, %v", a, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.forward(ctx, nil); !errors.Is(err, context.Canceled) || errors.Is(err, engine.ErrNoLeader) {
		t.Error(err)
	}
	for _, happens := range []func(){
		func() { answers(open(natslog.Options{TakeOver: true})) },
		func() { f.shared.Close() },
	} {
		failed := make(chan error)
		go func() {
			_, err := f.forward(t.Context(), []byte("slow"))
			failed <- err
		}()
		<-came
		happens()
		if err := <-failed; !errors.Is(err, engine.ErrNoLeader) {
			t.Errorf("%v, want ErrNoLeader", err)
		}
	}
	expect.Equal(t, len(came), 0, "the request came again")
}
