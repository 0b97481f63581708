package natslog_test

import (
	"bytes"
	"net"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"vitrine/service/eventlog/logtest"
	"vitrine/service/eventlog/natslog"
)

// losing is a connection on which the next requests of consumers for messages are lost, each sent to where nobody
// answers.
type losing struct {
	net.Conn
	left *atomic.Int32
}

func (c losing) Write(b []byte) (int, error) {
	request := []byte("$JS.API.CONSUMER.MSG.NEXT")
	if i := bytes.Index(b, request); i >= 0 && c.left.Add(-1) >= 0 {
		b = bytes.Clone(b)
		b[i+len(request)-1] = 'X'
	}
	return c.Conn.Write(b)
}

// losingDialer makes connections that lose some requests.
type losingDialer struct{ left *atomic.Int32 }

func (d losingDialer) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)
	return losing{c, d.left}, err
}

// A consumer's request for messages is lost, as it is in a cluster that has no leader: the reader does not wait for
// ever.
func TestRequestForMessagesIsLost(t *testing.T) {
	t.Parallel()
	left := new(atomic.Int32)
	s := connect(t, natslog.Options{URL: external(t), Connect: []nats.Option{nats.SetCustomDialer(losingDialer{left})}})
	fill(t, s, 1, 9)
	left.Store(2)
	logtest.Want(t, s, 3, numbered(3, 9)...)
	if left.Load() >= 0 {
		t.Errorf("%d requests were not lost: the test shows nothing", left.Load())
	}
}
