//go:build unix

package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"vitrine/internal/freeport"
	"vitrine/service/eventlog/natslog"
)

var (
	clusterStrikes = flag.Int("cluster-strikes", 0, "how often TestKillCluster kills or freezes servers and services")
	leaderKills    = flag.Int("leader-kills", 0, "how often TestKillLeader kills the service that writes the log")
	leaderLimit    = flag.Duration("leader-limit", 0, "how long a take-over after that may take; 0 is no limit")
	serviceStrikes = flag.Int("service-strikes", 0, "how often TestKillServices kills, freezes or stops services and servers")
	takeOvers      = flag.Int("take-overs", 0, "how often TestKillByTakeOver takes the log over")
)

// freeze stops the process until it is thawed or killed.
func (p *process) freeze(t *testing.T) {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
}

func (p *process) thaw(t *testing.T) {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

// stage is a cluster of three servers of NATS, and a service that has its log there. A second configuration
// has the same log and another data directory.
type stage struct {
	*testing.T
	servers [3]*external
	files   [2]string
	data    [2]string
	active  int // whose service writes the log
	service *process
	ledger  *ledger
	rng     *rand.Rand
}

func newStage(t *testing.T) *stage {
	s := &stage{T: t, ledger: newLedger(t), rng: rand.New(rand.NewPCG(*killSeed, 2))}
	url := s.startServers()
	for i := range s.files {
		s.files[i], s.data[i] = serviceFile(t, fmt.Sprintf("[log]\nurl = %q\nreplicas = 3\n[snapshots]\nevery = \"100ms\"\n", url))
	}
	s.begin(s.serve(0), 0)
	return s
}

// startServers starts the servers, and returns their addresses.
func (s *stage) startServers() string {
	t := s.T
	ports := make([]string, len(s.servers))
	for i := range ports {
		ports[i] = fmt.Sprint(freeport.Local(t))
	}
	var urls []string
	for i := range s.servers {
		s.servers[i] = &external{T: t, port: fmt.Sprint(freeport.Local(t)), dir: t.TempDir(), routes: append(ports[i:3:3], ports[:i]...)}
		urls = append(urls, s.servers[i].url())
		s.servers[i].start()
	}
	return strings.Join(urls, ",")
}

// serve starts one of the two services.
func (s *stage) serve(which int, flags ...string) *process {
	s.Helper()
	return serve(s.T, s.files[which], flags...)
}

// begin waits until a service serves, and sends the shoppers to it.
func (s *stage) begin(p *process, which int) {
	s.Helper()
	url := p.listening(s.T)
	s.service, s.active = p, which
	s.ledger.url.Store(&url)
}

// some returns n of the servers.
func (s *stage) some(n int) (chosen []*external) {
	for _, i := range s.rng.Perm(len(s.servers))[:n] {
		chosen = append(chosen, s.servers[i])
	}
	return chosen
}

// killServers kills servers, and starts them after a while.
func (s *stage) killServers(n int, away time.Duration) {
	s.Helper()
	chosen := s.some(n)
	for _, server := range chosen {
		server.kill()
	}
	time.Sleep(away)
	for _, server := range chosen {
		server.start()
	}
}

func (s *stage) freezeServers(n int, away time.Duration) {
	s.Helper()
	chosen := s.some(n)
	for _, server := range chosen {
		server.freeze(s.T)
	}
	time.Sleep(away)
	for _, server := range chosen {
		server.thaw(s.T)
	}
}

// fenced waits until a service that another one has taken the log from follows it, and ends it.
func (s *stage) fenced(p *process) {
	s.Helper()
	for deadline := time.Now().Add(patience); !strings.Contains(p.said(), following); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.Fatalf("the service that lost the log does not follow it:\n%s", p.said())
		}
	}
	p.stop(s.T)
}

// takeOver has the other service take the log over, and the first one follow it and end.
func (s *stage) takeOver() {
	s.Helper()
	before := s.service
	s.begin(s.serve(1-s.active, "--take-over"), 1-s.active)
	s.fenced(before)
}

// strike is one failure of the service or its servers.
type strike struct {
	name string
	do   func(s *stage, n int)
}

var strikes = []strike{
	{"a server killed", func(s *stage, _ int) { s.killServers(1, within(s.rng, time.Second)) }},
	{"a server frozen", func(s *stage, _ int) { s.freezeServers(1, within(s.rng, 3*time.Second)) }},
	{"two servers killed", func(s *stage, _ int) { s.killServers(2, time.Second+within(s.rng, 3*time.Second)) }},
	{"two servers frozen", func(s *stage, _ int) { s.freezeServers(2, time.Second+within(s.rng, 3*time.Second)) }},
	{"all servers killed", func(s *stage, _ int) { s.killServers(3, within(s.rng, time.Second)) }},
	{"the service killed", func(s *stage, _ int) {
		s.service.kill()
		s.begin(s.serve(s.active), s.active)
	}},
	{"the service and a server killed", func(s *stage, _ int) {
		s.service.kill()
		s.killServers(1, within(s.rng, time.Second))
		s.begin(s.serve(s.active), s.active)
	}},
	// It keeps its connections and its unfinished work, and continues it while another service has the log.
	{"the service frozen until another one has its lease", func(s *stage, n int) {
		frozen := s.service
		frozen.freeze(s.T)
		s.begin(s.serve(1-s.active), 1-s.active)
		s.ledger.shop(s.Context(), 1, *killSeed+uint64(n)+1) // the others wait for the frozen one
		s.ledger.flows(s.Context())
		frozen.thaw(s.T)
		s.fenced(frozen)
	}},
	{"a second service started, and ended", func(s *stage, _ int) {
		second := s.serve(1 - s.active)
		second.listening(s.T)
		if said := second.said(); !strings.Contains(said, following) || !strings.Contains(said, fmt.Sprint("process ", s.service.Process.Pid)) {
			s.Errorf("a second service does not follow the first:\n%s", said)
		}
		second.stop(s.T)
	}},
	{"taken over", func(s *stage, _ int) { s.takeOver() }},
	{"taken over while a server is away", func(s *stage, _ int) {
		server := s.some(1)[0]
		server.kill()
		s.takeOver()
		server.start()
	}},
}

// intact fails if the service has ended though nobody ended it.
func (s *stage) intact() {
	s.Helper()
	select {
	case <-s.service.ended:
		s.Fatalf("the service ended by itself, %v:\n%s", s.service.ProcessState, s.service.said())
	default:
	}
}

// Servers of a cluster and services are killed and frozen under load, the quorum is away, the log changes
// hands: acknowledged entries are in the log once, and were learned once.
func TestKillCluster(t *testing.T) {
	if *clusterStrikes == 0 {
		t.Skip("-cluster-strikes is 0")
	}
	s := newStage(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute+time.Duration(*clusterStrikes)*time.Minute)
	defer cancel()
	s.ledger.open(ctx)
	wait := s.ledger.shop(ctx, 8, *killSeed<<20)
	count := map[string]int{}
	var order []int
	for n := range *clusterStrikes {
		if len(order) == 0 {
			order = s.rng.Perm(len(strikes))
		}
		strike := strikes[order[0]]
		order = order[1:]
		count[strike.name]++
		time.Sleep(within(s.rng, 300*time.Millisecond))
		begin := time.Now()
		strike.do(s, n)
		s.ledger.flows(ctx)
		s.intact()
		t.Logf("%d: %s, %v", n+1, strike.name, time.Since(begin).Round(time.Millisecond))
		if t.Failed() {
			t.Fatalf("at strike %d, -kill-seed %d:\n%s", n+1, *killSeed, s.service.said())
		}
	}
	s.ledger.leaving.Store(true)
	wait()
	s.holds(ctx)
	text := ""
	for _, strike := range strikes {
		text += fmt.Sprintf(" %d × %s,", count[strike.name], strike.name)
	}
	if t.Failed() {
		return
	}
	t.Logf("verdict: -kill-seed %d: %d strikes (%s): %d decisions and %d outcomes acknowledged, %d retries, the longest wait %d ms: none lost, changed, doubled or learned twice",
		*killSeed, *clusterStrikes, strings.Trim(text, " ,"), len(s.ledger.rounds), s.ledger.reported, s.ledger.retries.Load(), s.ledger.slowest.Load())
}

// holds ends the service, and compares the log with its acknowledged answers and its learning.
func (s *stage) holds(ctx context.Context) {
	s.Helper()
	s.ledger.holds(ctx, s.ledger.all())
	learned := map[string]learning{"home": s.ledger.settled(ctx, "home"), "brief": s.ledger.settled(ctx, "brief")}
	s.service.stop(s.T)
	var urls []string
	for _, server := range s.servers {
		urls = append(urls, server.url())
	}
	url := strings.Join(urls, ",")
	sound(s.T, url, filepath.Join(s.data[s.active], "state.snapshot"))
	decisions, of := readLog(s.T, natslog.Options{URL: url})
	s.ledger.isIn(decisions)
	for name, l := range learned {
		l.once(s.T, name, of[name])
	}
}

// A take-over of the log succeeds at the first attempt, however fast the previous service writes.
func TestKillByTakeOver(t *testing.T) {
	if *takeOvers == 0 {
		t.Skip("-take-overs is 0")
	}
	s := newStage(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute+time.Duration(*takeOvers)*time.Minute)
	defer cancel()
	s.ledger.open(ctx)
	wait := s.ledger.shop(ctx, 16, *killSeed<<20)
	var longest, total time.Duration
	for n := range *takeOvers {
		s.ledger.flows(ctx)
		begin := time.Now()
		s.takeOver()
		took := time.Since(begin)
		longest, total = max(longest, took), total+took
		if t.Failed() {
			t.Fatalf("at take-over %d, -kill-seed %d:\n%s", n+1, *killSeed, s.service.said())
		}
	}
	s.ledger.flows(ctx)
	s.ledger.leaving.Store(true)
	wait()
	s.holds(ctx)
	if !t.Failed() {
		t.Logf("verdict: %d of %[1]d take-overs at the first attempt, %v on average, %v at most, until the new service listens and the old one has ended; %d decisions and %d outcomes acknowledged, none lost, changed or doubled",
			*takeOvers, (total / time.Duration(*takeOvers)).Round(time.Millisecond), longest.Round(time.Millisecond), len(s.ledger.rounds), s.ledger.reported)
	}
}
