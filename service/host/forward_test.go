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

// A request that a leader took and never answers, because another process leads, the connection or the caller's time ends,
// may have acted. It is not sent twice, and the answer does not make the caller send it twice.
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
	if _, err := f.forward(ctx, nil); !errors.Is(err, context.Canceled) || errors.Is(err, engine.ErrUnanswered) {
		t.Error(err)
	}
	var caller *expiring
	for _, happens := range []func(){
		func() { close(caller.done) },
		func() { answers(open(natslog.Options{TakeOver: true})) },
		func() { f.shared.Close() },
	} {
		caller = &expiring{Context: t.Context(), done: make(chan struct{})}
		failed := make(chan error)
		go func() {
			_, err := f.forward(caller, []byte("slow"))
			failed <- err
		}()
		<-came
		happens()
		if err := <-failed; !errors.Is(err, engine.ErrUnanswered) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want ErrUnanswered", err)
		}
	}
	expect.Equal(t, len(came), 0, "the request came again")
}

// expiring is a context with a deadline that is over once done is closed.
type expiring struct {
	context.Context
	done chan struct{}
}

func (e *expiring) Done() <-chan struct{} { return e.done }

func (e *expiring) Err() error {
	select {
	case <-e.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}
