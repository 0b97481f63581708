//go:build unix

package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"vitrine/internal/fatal"
	"vitrine/internal/freeport"
	"vitrine/internal/long"
	"vitrine/service/eventlog"
	"vitrine/service/host"
)

var (
	leaderKills = flag.Int("leader-kills", 2, "how often TestKillLeader kills the service that writes the log")
	leaderLimit = flag.Duration("leader-limit", 0, "how long a take-over after that may take; 0 is no limit")
)

// strike kills the process, or freezes it until it is thawed or killed.
func (p *process) strike(freeze bool) {
	p.t.Helper()
	if freeze {
		p.Signal(syscall.SIGSTOP)
	} else {
		p.Kill()
	}
}

func (p *process) thaw() { p.t.Helper(); p.Signal(syscall.SIGCONT) }

// cluster is three services with their log on three servers of NATS. One service writes it, and the others follow.
// Shoppers ask them in turn.
type cluster struct {
	*testing.T
	url      string // of the servers
	servers  [3]*natsProcess
	members  [3]*replica
	disks    []*disk // of the servers; nil if the machine does not permit them
	ledger   *ledger
	rng      *rand.Rand
	takeOver []time.Duration // how long they took
	without  map[need]error  // strikes that this machine forbids, and why

	mu      sync.Mutex          // of the members' processes and addresses
	leaders map[uint64]*process // the services that said that they lead, by epoch
}

// replica is one of the services.
type replica struct {
	*process
	file, data, url string
	at              *place // nil is this machine
	away            bool   // killed, or frozen
}

// newCluster starts the servers and the services. With apart they are in places of their own, and the servers' disks
// can be slowed down, if the machine permits it.
func newCluster(t *testing.T, ctx context.Context, seed uint64, apart bool) *cluster {
	c := &cluster{T: t, ledger: newLedger(t), rng: rand.New(rand.NewPCG(seed, 3)),
		without: map[need]error{}, leaders: map[uint64]*process{}}
	c.ledger.client.Timeout = 3 * time.Second // a frozen service does not answer
	places := make([]*place, len(c.servers)+len(c.members))
	if apart {
		c.separate(&places)
	}
	c.startServers(places[:len(c.servers)])
	keys := ""
	if c.without[aNetwork] == nil && apart {
		keys = fmt.Sprintf("keys = %q\n", c.lock())
	}
	for i := range c.members {
		m := &replica{at: places[len(c.servers)+i]}
		m.file, m.data = serviceFile(t, fmt.Sprintf("%s[limits]\nanswer = \"2s\"\n[log]\nurl = %q\nreplicas = "+
			"3\n[snapshots]\nevery = \"1s\"\n", keys, c.url))
		c.members[i] = m
		c.startMember(m)
	}
	c.ledger.Open(ctx)
	return c
}

// separate makes places for all, and disks for the servers.
func (c *cluster) separate(places *[]*place) {
	if made, err := newPlaces(c.T, len(*places)); err == nil {
		*places = made
	} else {
		c.without[aNetwork] = err
	}
	for range c.servers {
		d, err := newSlowDisk(c.T)
		if err != nil {
			c.without[aDisk], c.disks = err, nil
			return
		}
		c.disks = append(c.disks, d)
	}
}

// lock makes a file with a key for all services, which they need beyond loopback, and gives the key to the shoppers.
func (c *cluster) lock() (path string) {
	c.Helper()
	path = filepath.Join(c.TempDir(), "keys.toml")
	said, code := program.Command(c.T, "keys", "add", path, "all", "--scopes", "decide,outcome,read,admin")
	if code != 0 {
		c.Fatal(said)
	}
	c.ledger.key, _, _ = strings.Cut(said, "\n")
	return path
}

func (c *cluster) startServers(places []*place) {
	c.Helper()
	addresses, routes := make([]string, len(places)), make([]string, len(places))
	for i, at := range places {
		if at == nil {
			addresses[i], routes[i] = fmt.Sprint("127.0.0.1:", freeport.Local(c.T)),
				fmt.Sprint("127.0.0.1:", freeport.Local(c.T))
		} else {
			addresses[i], routes[i] = at.address+":4222", at.address+":6222"
		}
	}
	var urls []string
	for i, at := range places {
		dir := c.TempDir()
		if c.disks != nil {
			dir = filepath.Join(c.disks[i].dir, "server")
		}
		c.servers[i] = &natsProcess{t: c.T, at: at, address: addresses[i], Dir: dir,
			routes: append(routes[i:3:3], routes[:i]...)}
		urls = append(urls, c.servers[i].URL())
		c.servers[i].Start()
	}
	c.url = strings.Join(urls, ",")
}

// startMember starts a service, and sends shoppers to it.
func (c *cluster) startMember(m *replica, flags ...string) {
	c.Helper()
	if m.at != nil {
		flags = append(flags, "--listen", m.at.address+":8080")
	}
	p := program.startAt(c.T, m.at, append([]string{"serve", "--config", m.file}, flags...)...)
	c.mu.Lock()
	m.process = p // before it can answer
	c.mu.Unlock()
	url := p.Listening()
	c.mu.Lock()
	m.url, m.away = url, false
	c.mu.Unlock()
	c.tell()
}

// tell tells the shoppers which services there are.
func (c *cluster) tell() {
	var urls []string
	for _, m := range c.members {
		if m != nil && m.url != "" && !m.away {
			urls = append(urls, m.url)
		}
	}
	if urls != nil {
		c.ledger.At(urls...)
	}
}

// standing is a service's own report, empty if it does not answer.
type standing struct {
	Role  string
	Epoch uint64
}

func (c *cluster) standing(m *replica) (s standing) {
	c.mu.Lock()
	p, url := m.process, m.url
	c.mu.Unlock()
	client := &http.Client{Timeout: 200 * time.Millisecond}
	defer client.CloseIdleConnections()
	a, err := client.Get(url + "/readyz")
	if err != nil {
		return s
	}
	defer a.Body.Close()
	_ = json.NewDecoder(a.Body).Decode(&s) // of a problem it is empty
	if s.Role == "leader" {
		c.mu.Lock()
		defer c.mu.Unlock()
		if other := c.leaders[s.Epoch]; other != nil && other != p {
			c.Errorf("two services lead in epoch %d", s.Epoch)
		}
		c.leaders[s.Epoch] = p
	}
	return s
}

// watch asks all services again and again who leads, until ctx ends.
func (c *cluster) watch(ctx context.Context) {
	for ctx.Err() == nil {
		for _, m := range c.members {
			c.standing(m)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// leading waits for a leader among services that are not away, and returns it and the others. Services that are cut off
// from the servers do not count.
func (c *cluster) leading(cutOff ...*replica) (leader *replica, followers []*replica) {
	c.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		leader, followers = nil, nil
		epoch := uint64(0)
		for _, m := range c.members {
			if m.away || slices.Contains(cutOff, m) {
				continue
			}
			followers = append(followers, m)
			if s := c.standing(m); s.Role == "leader" && s.Epoch > epoch { // one that was fenced may not know it yet
				leader, epoch = m, s.Epoch
			}
		}
		if leader != nil {
			return leader, slices.DeleteFunc(followers, func(m *replica) bool { return m == leader })
		}
	}
	for _, m := range c.members {
		c.Logf("%s", m.Said())
	}
	c.Fatal("no service writes the log")
	return nil, nil
}

// follower returns one of the services that follow.
func (c *cluster) follower() *replica {
	c.Helper()
	_, followers := c.leading()
	return followers[c.rng.IntN(len(followers))]
}

// crash kills or freezes a service.
func (c *cluster) crash(m *replica, freeze bool) {
	c.Helper()
	m.away = true
	m.strike(freeze)
}

// comeBack starts a killed service, or thaws a frozen one.
func (c *cluster) comeBack(m *replica, frozen bool) {
	c.Helper()
	if !frozen {
		c.startMember(m)
		return
	}
	m.thaw()
	m.away = false
	c.tell()
}

// replaced waits until another service leads after one, and a round is acknowledged that began later.
func (c *cluster) replaced(ctx context.Context, begin time.Time) {
	c.Helper()
	c.leading()
	c.ledger.grows(ctx, 1)
	c.takeOver = append(c.takeOver, time.Since(begin))
}

// each sends shoppers to one service after the other, until each acknowledged some rounds.
func (c *cluster) each(ctx context.Context) {
	c.Helper()
	for _, m := range c.members {
		c.ledger.At(m.url)
		c.ledger.Flows(ctx)
	}
	c.tell()
}

// takesOver restarts a follower so that it takes the log over.
func (c *cluster) takesOver() {
	c.Helper()
	f := c.follower()
	f.away = true
	c.tell()
	f.Stop()
	c.startMember(f, "--take-over")
}

func (c *cluster) some(n int) (chosen []*natsProcess) {
	for _, i := range c.rng.Perm(len(c.servers))[:n] {
		chosen = append(chosen, c.servers[i])
	}
	return chosen
}

// intact fails if a service ended by itself.
func (c *cluster) intact() {
	c.Helper()
	for _, m := range c.members {
		select {
		case <-m.ended:
			c.Errorf("a service ended by itself, %v:\n%s", m.ProcessState, m.Said())
		default:
		}
	}
}

// accounts sends the shoppers away, ends the services, and compares their knowledge with the log and the shoppers'
// answers.
func (c *cluster) accounts(ctx context.Context) {
	c.Helper()
	c.ledger.Leave()
	c.ledger.Holds(ctx)
	learned := map[string]learning{}
	for i, m := range c.members {
		c.ledger.At(m.url)
		for name := range placements {
			l := c.ledger.settled(ctx, name)
			if i == 0 {
				learned[name] = l
			}
			for deadline := time.Now().Add(patience); l.tally != learned[name].tally ||
				l.Learned != learned[name].Learned; l = c.ledger.settled(ctx, name) {
				if time.Now().After(deadline) {
					c.Fatalf("%s: a service has %+v, another one %+v", name, l, learned[name])
				}
			}
		}
	}
	c.end()
	of, waits := c.ledger.IsIn(c.url)
	for name, l := range learned {
		l.once(c.T, name, of[name], waits[name])
	}
	c.oneWriter(ctx)
}

// end stops the services, and compares their last snapshots with a replay of the log. The leader stops last: a service
// that is stopped while it takes the log over writes no snapshot.
func (c *cluster) end() {
	c.Helper()
	var snapshots []string
	leader, followers := c.leading()
	for _, m := range append(followers, leader) {
		m.Stop()
		snapshots = append(snapshots, filepath.Join(m.data, host.SnapshotFile))
	}
	program.Sound(c.T, c.url, snapshots...)
}

// oneWriter checks who wrote the log, message by message: each epoch is one writer's, epochs do not come back, and each
// frame begins where the one before ended.
func (c *cluster) oneWriter(ctx context.Context) {
	c.Helper()
	conn := fatal.Or(nats.Connect(c.url))(c)
	defer conn.Close()
	js := fatal.Or(jetstream.New(conn))(c)
	stream := fatal.Or(js.Stream(ctx, "vitrine"))(c)
	consumer := fatal.Or(stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{}))(c)
	messages := fatal.Or(consumer.Messages())(c)
	defer messages.Stop()
	writers, last := map[string]uint64{}, eventlog.Frame{First: 1}
	for n := stream.CachedInfo().State.LastSeq; n > 0; {
		m := fatal.Or(messages.Next())(c)
		meta := fatal.Or(m.Metadata())(c)
		if n = meta.NumPending; string(m.Data()) == "VLOGCLAIM" {
			continue
		}
		f := fatal.Or(eventlog.DecodeFrame(m.Data()))(c)
		writer := m.Headers().Get("Vitrine-Writer")
		epoch, known := writers[writer]
		switch {
		case f.First != last.Next():
			c.Errorf("message %d begins with entry %d, and the one before ended with %d", meta.Sequence.Stream, f.First,
				last.Next()-1)
		case known && (epoch != f.Epoch || f.Epoch != last.Epoch), !known && f.Epoch <= last.Epoch:
			c.Errorf("message %d is of epoch %d of the writer %q, after epoch %d", meta.Sequence.Stream, f.Epoch,
				writer, last.Epoch)
		}
		writers[writer], last = f.Epoch, f
	}
	if uint64(len(writers)) != last.Epoch {
		c.Errorf("%d writers have %d epochs", len(writers), last.Epoch)
	}
	for epoch := range c.leaders {
		if epoch > last.Epoch {
			c.Errorf("a service said that it leads in epoch %d, and the log ends in %d", epoch, last.Epoch)
		}
	}
}

// TestKillLeader kills the service that writes the log, under load: another one must take its place, and nothing
// acknowledged may be lost.
func TestKillLeader(t *testing.T) {
	long.Test(t)
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patienceFor(*leaderKills))
	defer cancel()
	c := newCluster(t, ctx, *killSeed, false)
	c.ledger.Shop(ctx, 8, *killSeed<<20)
	for n := range *leaderKills {
		c.ledger.Flows(ctx)
		leader, _ := c.leading()
		begin := time.Now()
		c.crash(leader, false)
		c.replaced(ctx, begin)
		c.comeBack(leader, false)
		c.unharmed(n)
	}
	c.accounts(ctx)
	longest := slices.Max(c.takeOver)
	if *leaderLimit > 0 && longest > *leaderLimit {
		t.Errorf("a take-over took %v, more than %v", longest.Round(time.Millisecond), *leaderLimit)
	}
	held(t, fmt.Sprintf("seed %d: %d kills of the leader: %v in the middle, %v at most, until another one "+
		"leads and a decision is acknowledged; %v by three services, none lost, changed, doubled or learned twice",
		*killSeed, *leaderKills, c.middle(), longest.Round(time.Millisecond), c.ledger))
}

// middle returns the median take-over.
func (c *cluster) middle() time.Duration {
	slices.Sort(c.takeOver)
	return c.takeOver[len(c.takeOver)/2].Round(time.Millisecond)
}

// unharmed fails at strike n if something was wrong.
func (c *cluster) unharmed(n int) {
	c.Helper()
	if !c.Failed() {
		return
	}
	for _, m := range c.members {
		c.Logf("%s:\n%s", m.url, tail(m.Said()))
	}
	c.Fatalf("at strike %d, seed %d", n+1, *killSeed)
}
