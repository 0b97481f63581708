package natslog_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/logtest"
	"vitrine/service/eventlog/natslog"
	"vitrine/service/eventlog/natslog/natstest"
)

// network makes connections that can be broken and that lose some requests by misdirecting them.
type network struct {
	requests []byte       // prefix of the lost requests' subjects
	left     atomic.Int32 // how many to lose

	made atomic.Int32 // number of connections made

	mu   sync.Mutex
	last *wire
}

func (n *network) Dial(kind, address string) (net.Conn, error) {
	c, err := net.Dial(kind, address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.made.Add(1)
	n.last = &wire{Conn: c, of: n}
	return n.last, nil
}

// connection returns the newest connection.
func (n *network) connection() *wire {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.last
}

// wire is one of a network's connections.
type wire struct {
	net.Conn
	of       *network
	stuck    atomic.Bool // accepts one more byte, then blocks
	lost     atomic.Bool // lose all of these requests
	unled    atomic.Bool // hide the servers' information about leaders
	deadline atomic.Pointer[time.Time]
}

func (w *wire) SetWriteDeadline(t time.Time) error {
	w.deadline.Store(&t)
	return w.Conn.SetWriteDeadline(t)
}

func (w *wire) Write(b []byte) (int, error) {
	if w.stuck.Load() {
		time.Sleep(time.Until(*w.deadline.Load()))
		return 1, os.ErrDeadlineExceeded
	}
	if i := bytes.Index(b, w.of.requests); i > 0 && (w.lost.Load() || w.of.left.Add(-1) >= 0) {
		b = bytes.Clone(b)
		b[i+len(w.of.requests)-1] = 'X'
	}
	return w.Conn.Write(b)
}

func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if w.unled.Load() {
		copy(b, bytes.ReplaceAll(b[:n], []byte(`"leader":`), []byte(`"nobody":`)))
	}
	return n, err
}

// over returns options for a log with connections from a network.
func over(t *testing.T, n *network) natslog.Options {
	return natslog.Options{URL: natstest.URL(t), Standby: true, Connect: []nats.Option{nats.SetCustomDialer(n)}}
}

// A consumer's request for messages is lost, as in a cluster without a leader. The reader must neither wait forever nor
// as long as a writer waits for an answer: a take-over reads the log's end.
func TestRequestForMessagesIsLost(t *testing.T) {
	defer natslog.SetAttempt(time.Hour)()
	n := &network{requests: []byte("$JS.API.CONSUMER.MSG.NEXT")}
	s := connect(t, over(t, n))
	fill(t, s, 1, 9)
	n.left.Store(2)
	logtest.Want(t, s, 3, numbered(3, 9)...)
	if n.left.Load() >= 0 {
		t.Errorf("%d requests were not lost: the test shows nothing", n.left.Load())
	}
}

// The connection breaks, and consumers cannot be created afterwards, as on a cluster with its servers away. A follower
// waits, and stops when told to.
func TestFollowerEndsWithoutServers(t *testing.T) {
	t.Parallel()
	n := &network{requests: []byte("$JS.API.CONSUMER.CREATE")}
	s := connect(t, over(t, n))
	fill(t, s, 1, 3)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	entries, ended := followed(ctx, s, 1)
	comes(t, entries, 1, 3)
	for i := range 2 {
		n.left.Store(3)
		n.connection().Close()
		fill(t, s, 4+i, 4+i)
		comes(t, entries, 4+i, 4+i)
	}
	n.left.Store(1 << 30)
	n.connection().Close()
	fill(t, s, 6, 6)
	time.Sleep(time.Second) // until it looks for the entry
	cancel()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("the follower does not end")
	}
}

// A server stops reading without closing the connection. The store leaves it before its patience ends.
func TestServerTakesNothing(t *testing.T) {
	t.Parallel()
	n := new(network)
	o := over(t, n)
	o.Patience = 30 * time.Second // as in a service
	s := connect(t, o)
	fill(t, s, 1, 3)
	n.connection().stuck.Store(true)
	fill(t, s, 4, 4)
	logtest.Want(t, s, 1, numbered(1, 4)...)
}

// A leader that its servers do not answer notices it without a write of its caller, and notices their return.
func TestUnreached(t *testing.T) {
	t.Parallel()
	n := &network{requests: []byte("$KV.vitrine-lease")}
	s := connect(t, over(t, n))
	away := func(is bool) {
		for end := time.Now().Add(patience); s.Unreached() > 2*time.Second != is; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("unreached for %v", s.Unreached())
			}
		}
	}
	away(false)
	n.connection().lost.Store(true)
	away(true)
	fill(t, s, 1, 1) // the log's own stream answers
	away(false)
	away(true)
	n.connection().lost.Store(false)
	away(false)
}

// A server is cut off from its cluster, but not from this process. It answers no requests, so another server is asked.
func TestServerIsCutOff(t *testing.T) {
	t.Parallel()
	for requests, ask := range map[string]func(s *natslog.Store) error{
		"$JS.API.STREAM.INFO": func(s *natslog.Store) error { _, err := s.Extent(t.Context()); return err },
		"$KV.vitrine-lease":   func(s *natslog.Store) error { _, err := s.NewReplica(t.Context()); return err },
		"vitrine.log":         func(s *natslog.Store) error { _, err := s.Append(t.Context(), entry(4)); return err },
	} {
		t.Run(requests, func(t *testing.T) {
			t.Parallel()
			n := &network{requests: []byte(requests)}
			o := over(t, n)
			o.Patience = time.Minute
			// a different server, as far as the client knows
			o.URL += "," + strings.Replace(o.URL, "127.0.0.1", "localhost", 1)
			s := connect(t, o)
			fill(t, s, 1, 3)
			n.connection().lost.Store(true)
			fatal.If(t, ask(s))
			expect.Equal(t, n.made.Load(), 2, "connections were made")
		})
	}
}

// No server answers within a store's patience: the log is to be opened again, which a service does by itself.
func TestUnansweredRead(t *testing.T) {
	for what, ask := range map[string]func(*natslog.Store) error{
		"extent":   func(s *natslog.Store) error { _, err := s.Extent(t.Context()); return err },
		"position": func(s *natslog.Store) error { _, err := s.Position(t.Context(), 9); return err },
		"entries":  func(s *natslog.Store) error { _, err := logtest.Read(s, 1); return err },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			n := &network{requests: []byte("$JS.API.STREAM.INFO")}
			o := over(t, n)
			o.Patience = 5 * time.Second
			s := connect(t, o)
			fill(t, s, 1, 3)
			n.connection().lost.Store(true)
			expect.Error(t, ask(s), eventlog.ErrReopen)
		})
	}
}

// A server that is cut off knows no leader for the stream and answers from its own data. That does not count as an
// answer.
func TestServerHasNoLeader(t *testing.T) {
	t.Parallel()
	n := new(network)
	o := over(t, n)
	o.URL, o.Replicas, o.Patience = newCluster(t).url(), 3, patience
	s := connect(t, o)
	fill(t, s, 1, 3)
	n.connection().unled.Store(true)
	if x, err := s.Extent(t.Context()); err != nil || x.Last != 3 {
		t.Errorf("entries to %d, %v", x.Last, err)
	}
	expect.Equal(t, n.made.Load(), 2, "connections were made")
}

// A standby becomes the leader although its server is cut off: the server accepts no writes, but still answers who
// holds the lease.
func TestLeadFromServerThatIsCutOff(t *testing.T) {
	t.Parallel()
	n := &network{requests: []byte("$KV.vitrine-lease")}
	o := over(t, n)
	o.Patience = time.Minute
	o.URL += "," + strings.Replace(o.URL, "127.0.0.1", "localhost", 1)
	first := connect(t, natslog.Options{URL: o.URL, Standby: true})
	fill(t, first, 1, 3)
	s := connect(t, o)
	n.connection().lost.Store(true)
	fatal.If(t, first.Close())
	fatal.If(t, s.Lead(t.Context()))
	fill(t, s, 4, 4)
	expect.Equal(t, n.made.Load(), 2, "connections were made")
}
