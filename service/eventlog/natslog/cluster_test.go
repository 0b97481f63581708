package natslog_test

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"vitrine/internal/fatal"
	"vitrine/internal/freeport"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/logtest"
	"vitrine/service/eventlog/natslog"
	"vitrine/service/eventlog/natslog/natstest"
)

// patience is how long a test waits for an event that must happen, even on a busy machine.
const patience = 5 * time.Minute

// cluster is three servers. Each can be stopped and restarted at its address.
type cluster struct {
	testing.TB
	options [3]server.Options
	servers [3]*server.Server
}

func newCluster(t testing.TB) *cluster {
	t.Helper()
	if strconv.IntSize == 32 {
		t.Skip("servers in a cluster panic on 32-bit machines: their statistics load 64-bit words that are not aligned")
	}
	c := &cluster{TB: t}
	var routes []*url.URL
	for i := range c.options {
		cluster := freeport.Local(t)
		routes = append(routes, &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", cluster)})
		c.options[i] = server.Options{
			ServerName: fmt.Sprint("n", i), Port: freeport.Local(t), StoreDir: t.TempDir(), NoLog: true,
			Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: cluster},
		}
	}
	for i := range c.options {
		c.options[i].Routes = routes
		c.start(i)
	}
	t.Cleanup(func() {
		if t.Failed() {
			c.standing()
		}
		c.stop(0, 1, 2)
	})
	c.elected()
	return c
}

func (c *cluster) start(servers ...int) {
	c.Helper()
	for _, i := range servers {
		s, err := natstest.Start(*c.options[i].Clone())
		if err != nil {
			c.Fatalf("server %d on ports %d and %d: %v", i, c.options[i].Port, c.options[i].Cluster.Port, err)
		}
		c.servers[i] = s
	}
}

// stop stops servers together, so that they cannot hand over their roles.
func (c *cluster) stop(servers ...int) {
	var group sync.WaitGroup
	for _, i := range servers {
		group.Go(func() { natstest.Stop(c.servers[i]) })
	}
	group.Wait()
}

// standing logs the servers' views of each other.
func (c *cluster) standing() {
	c.Helper()
	for i, s := range c.servers {
		c.Logf("server %d on ports %d and %d: runs %v, listens %v, %d routes, leads the cluster %v of %d, and the "+
			"stream %v", i, c.options[i].Port, c.options[i].Cluster.Port,
			s.Running(), s.ReadyForConnections(time.Second), s.NumRoutes(), s.JetStreamIsLeader(),
			len(s.JetStreamClusterPeers()), s.JetStreamIsStreamLeader("$G", "vitrine"))
	}
}

// elected waits until the cluster has a leader.
func (c *cluster) elected() {
	c.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		for _, s := range c.servers {
			if s.JetStreamIsLeader() && len(s.JetStreamClusterPeers()) == len(c.servers) {
				return
			}
		}
	}
	c.Fatal("the cluster has no leader")
}

// leader returns the server that leads the stream.
func (c *cluster) leader() int {
	c.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		for i, s := range c.servers {
			if s.Running() && s.JetStreamIsStreamLeader("$G", "vitrine") {
				return i
			}
		}
	}
	c.Fatal("the stream has no leader")
	return 0
}

func (c *cluster) url() string {
	var urls []string
	for _, o := range c.options {
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", o.Port))
	}
	return strings.Join(urls, ",")
}

// The quorum is away for several attempts. A copy of the message is rejected because the first one is still on its way.
// The writer waits, rather than concluding that somebody else wrote it.
func TestQuorumIsAway(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	o := natslog.Options{URL: c.url(), Replicas: 3}
	s := connect(t, o)
	fill(t, s, 1, 3)
	leader := c.leader()
	others := []int{(leader + 1) % 3, (leader + 2) % 3}
	c.stop(others...)
	done := make(chan error, 1)
	go func() {
		_, err := s.Append(t.Context(), entry(4))
		done <- err
	}()
	time.Sleep(2 * time.Second) // ten attempts
	c.start(others...)
	fatal.If(t, <-done)
	fill(t, s, 5, 6)
	logtest.Want(t, s, 1, numbered(1, 6)...)
}

// A log is opened during an election: requests from before are never answered.
func TestOpenDuringElection(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	o := natslog.Options{URL: c.url(), Replicas: 3}
	s := connect(t, o)
	fill(t, s, 1, 3)
	s.Close()
	others := []int{0, 1, 2}
	leader := c.leader()
	c.stop(append(others[:leader], others[leader+1:]...)...)
	go func() {
		time.Sleep(2 * time.Second)
		c.start((leader+1)%3, (leader+2)%3)
	}()
	s = connect(t, o)
	fill(t, s, 4, 4)
	logtest.Want(t, s, 1, numbered(1, 4)...)
}

// A log knows that one of its replicas is away, and that it is back.
func TestReplicaIsMissing(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	s := connect(t, natslog.Options{URL: c.url(), Replicas: 3})
	fill(t, s, 1, 3)
	has := func(missing int) func() bool {
		return func() bool { x, err := s.Extent(t.Context()); return err == nil && x.Missing == missing }
	}
	until(t, "all replicas are there", has(0))
	other := (c.leader() + 1) % 3
	c.stop(other)
	until(t, "one replica is missing", has(1))
	c.start(other)
	until(t, "all replicas are there again", has(0))
}

// A replica that is a few messages behind during writes is not missing.
func TestReplicasDuringWrites(t *testing.T) {
	second := time.Second
	for _, c := range []struct {
		peer jetstream.PeerInfo
		want int64
	}{
		{jetstream.PeerInfo{Current: true, Active: second}, 0},
		{jetstream.PeerInfo{Current: true, Active: second, Offline: true}, 1},
		{jetstream.PeerInfo{Active: second, Lag: 3}, 0},
		{jetstream.PeerInfo{Active: second, Lag: 3, Offline: true}, 1},
		{jetstream.PeerInfo{Active: second, Lag: 1000}, 1},
		{jetstream.PeerInfo{Active: 5 * second, Lag: 3}, 1},
		{jetstream.PeerInfo{Lag: 3}, 1}, // never seen
	} {
		info := &jetstream.StreamInfo{Config: jetstream.StreamConfig{Replicas: 2},
			Cluster: &jetstream.ClusterInfo{Replicas: []*jetstream.PeerInfo{&c.peer}}}
		if got := natslog.Missing(info); got != c.want {
			t.Errorf("%+v: %d are missing, want %d", c.peer, got, c.want)
		}
	}
}

// An operator learns which storage is full.
func TestStorageIsFull(t *testing.T) {
	for code, want := range map[jetstream.ErrorCode]string{10023: "max_file_store is full: nats: API error",
		10110: eventlog.ErrReopen.Error() + ": nats: API error"} {
		err := natslog.Refused(fmt.Errorf("nats: %w", &jetstream.APIError{Code: 503, ErrorCode: code}))
		if !errors.Is(err, eventlog.ErrReopen) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
