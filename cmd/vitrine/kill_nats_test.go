package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"vitrine/internal/freeport"
	"vitrine/internal/long"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/natslog"
	"vitrine/service/eventlog/natslog/natstest"
)

// natsServer runs a NATS server as a separate process, with the configuration that a log needs: nats-server
// ADDRESS DIR. In a cluster the servers' addresses for each other follow, its own first.
func natsServer() {
	err := func() error {
		o := server.Options{StoreDir: os.Args[2], NoSystemAccount: len(os.Args) == 3}
		if err := splitAddress(os.Args[1], &o.Host, &o.Port); err != nil {
			return err
		}
		if routes := os.Args[3:]; len(routes) > 0 {
			o.ServerName, o.Cluster.Name = routes[0], "c"
			if err := splitAddress(routes[0], &o.Cluster.Host, &o.Cluster.Port); err != nil {
				return err
			}
			for _, address := range routes {
				o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: address})
			}
		}
		s, err := natstest.Start(o)
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, s.ClientURL())
		s.WaitForShutdown()
		return nil
	}()
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func splitAddress(address string, host *string, port *int) error {
	name, number, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	*host = name
	*port, err = strconv.Atoi(number)
	return err
}

// external is a NATS server that is killed and started again at one address.
type external struct {
	*testing.T
	address, dir string
	routes       []string // of its cluster, its own one first
	at           *place   // nil is this machine
	*process
}

func startNATS(t *testing.T) *external {
	t.Helper()
	e := &external{T: t, address: fmt.Sprint("127.0.0.1:", freeport.Local(t)), dir: t.TempDir()}
	e.start()
	return e
}

func (e *external) start() {
	e.Helper()
	e.process = launch(e.T, e.at.command("nats-server", append([]string{e.address, e.dir}, e.routes...)...), func(line []byte) string {
		if text := string(line); strings.HasPrefix(text, "nats://") {
			return text
		}
		return ""
	})
	e.listening(e.T)
}

func (e *external) url() string { return "nats://" + e.address }

// The NATS server that has the log is killed under the service, sometimes together with the service. The
// service waits for the server and goes on; nothing is lost.
func TestKillNATS(t *testing.T) {
	long.Test(t)
	t.Parallel()
	nats := startNATS(t)
	file, data := serviceFile(t, fmt.Sprintf("log = %q\n[snapshots]\nevery = \"50ms\"\n", nats.url()))
	ctx, cancel := context.WithTimeout(t.Context(), patience+time.Duration(*natsKills)*time.Minute)
	defer cancel()
	rng := rand.New(rand.NewPCG(*killSeed, 1))
	ledger := newLedger(t)
	p := serve(t, file)
	url := p.listening(t)
	ledger.url.Store(&url)
	ledger.open(ctx)
	wait := ledger.shop(ctx, 8, *killSeed)
	var away time.Duration
	both := 0
	for n := range *natsKills {
		time.Sleep(within(rng, 150*time.Millisecond))
		begin := time.Now()
		nats.kill()
		together := n%4 == 3
		if together {
			p.kill()
			both++
		}
		time.Sleep(within(rng, 200*time.Millisecond))
		nats.start()
		if together {
			p = serve(t, file)
			url := p.listening(t)
			ledger.url.Store(&url)
		}
		ledger.flows(ctx)
		away += time.Since(begin)
		if t.Failed() {
			t.Fatalf("after %d kills, -kill-seed %d:\n%s", n+1, *killSeed, p.said())
		}
	}
	ledger.leaving.Store(true)
	wait()
	ledger.holds(ctx, ledger.all())
	ledger.settled(ctx, "brief")
	p.stop(t)
	sound(t, nats.url(), filepath.Join(data, "state.snapshot"))
	decisions, _ := readLog(t, natslog.Options{URL: nats.url()})
	ledger.isIn(decisions)
	if t.Failed() {
		return
	}
	t.Logf("verdict: -kill-seed %d: %d kills of the log's server, %d of them with the service: %d decisions and %d outcomes acknowledged, none lost, changed or doubled, %d retries, %v a kill until it works again",
		*killSeed, *natsKills, both, len(ledger.rounds), ledger.reported, ledger.retries.Load(), away/time.Duration(*natsKills))
}

// busy is a service in this process with shoppers.
type busy struct {
	*ledger
	log   *watchedLog
	stop  context.CancelFunc // stops it, and sends shoppers who wait away
	ended chan error         // gets what the service ends with
	leave func()             // waits until the shoppers have gone
}

// served starts a service, and returns once it has work.
func served(t *testing.T, s *service) *busy {
	t.Helper()
	v := &busy{ledger: newLedger(t)}
	v.begin(s)
	return v
}

// begin starts a service, also again, and sends shoppers.
func (v *busy) begin(s *service) {
	v.Helper()
	s.Listen = "127.0.0.1:0"
	s.Limits.Answer.Duration = 100 * time.Millisecond
	v.log, v.ended = &watchedLog{more: make(chan struct{}, 1)}, make(chan error, 1)
	ctx, stop := context.WithTimeout(v.Context(), patience)
	v.stop = stop
	v.Cleanup(stop)
	go func() { v.ended <- s.run(ctx, slog.New(slog.NewJSONHandler(v.log, nil))) }()
	url := "http://" + v.await("listening")["address"].(string)
	v.url.Store(&url)
	v.leaving.Store(false)
	v.open(ctx)
	wait := v.shop(ctx, 4, 1+uint64(len(v.all())))
	v.leave = func() { v.leaving.Store(true); wait() }
	v.flows(ctx)
}

// servedFrom is a service whose log is on a server of NATS.
func servedFrom(t *testing.T, nats *external) *busy {
	t.Helper()
	s := newService()
	s.Data, s.Log.URL, s.options.Patience = t.TempDir(), nats.url(), 5*time.Second
	return served(t, s)
}

// await waits for a message in the log.
func (v *busy) await(message string) map[string]any {
	v.Helper()
	v.awaits(message, 1)
	line, _ := v.log.line(message)
	return line
}

// awaits waits until a message is in the log some times.
func (v *busy) awaits(message string, times int) {
	v.Helper()
	for deadline := time.Now().Add(patience); v.log.count(message) < times; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			v.Fatalf("the service does not say %q %d times:\n%s", message, times, &v.log.text)
		}
	}
}

const reopening = "the log will be opened again"

// The server of NATS is away for longer than the service waits for an answer: callers are told 503, the engine
// stops, and the service opens the log again by itself once the server is back.
func TestLogIsAway(t *testing.T) {
	t.Parallel()
	nats := startNATS(t)
	v := servedFrom(t, nats)
	nats.kill()
	v.await(reopening)
	if v.refused.Load() == 0 {
		t.Error("nobody was told 503")
	}
	nats.start()
	v.flows(t.Context())
	v.leave()
	v.holds(t.Context(), v.all())
	v.stop()
	if err := <-v.ended; err != nil {
		t.Fatal(err)
	}
	decisions, _ := readLog(t, natslog.Options{URL: nats.url()})
	v.isIn(decisions)
}

// The server of NATS starts after the service, which waits for it.
func TestServerComesLater(t *testing.T) {
	t.Parallel()
	nats := startNATS(t)
	nats.kill()
	back := make(chan struct{})
	go func() {
		defer close(back)
		time.Sleep(300 * time.Millisecond)
		nats.start()
	}()
	v := servedFrom(t, nats)
	<-back
	v.leave()
	v.stop()
	if err := <-v.ended; err != nil {
		t.Fatal(err)
	}
}

// The server comes back without acknowledged entries: the service says so, and ends.
func TestLogComesBackEmpty(t *testing.T) {
	t.Parallel()
	nats := startNATS(t)
	v := servedFrom(t, nats)
	nats.kill()
	v.await(reopening)
	if err := os.RemoveAll(nats.dir); err != nil {
		t.Fatal(err)
	}
	nats.start()
	v.ends(func(err error) bool {
		var damage *eventlog.DamageError
		return errors.As(err, &damage) && damage.Sequence == 1 && strings.Contains(err.Error(), "were acknowledged")
	})
}

// Another process takes the log over: the service follows it, and refuses what it cannot write, naming the writer. It writes
// the log again when the other one has gone.
func TestLogIsTakenOver(t *testing.T) {
	t.Parallel()
	nats := startNATS(t)
	v := servedFrom(t, nats)
	heir, err := natslog.Open(t.Context(), natslog.Options{URL: nats.url(), TakeOver: true, Process: "heir"})
	if err != nil {
		t.Fatal(err)
	}
	defer heir.Close()
	v.await(following)
	v.awaits("listening", 2)
	heir.Close()
	v.await(leading)
	v.flows(t.Context())
	if _, reopened := v.log.line("stopped"); reopened {
		t.Error("the service has ended")
	}
	v.leave()
	v.stop()
	if err := <-v.ended; err != nil {
		t.Error(err)
	}
	decisions, _ := readLog(t, natslog.Options{URL: nats.url()})
	v.isIn(decisions)
}

// What a service says when it begins to follow the log, and to write it.
const (
	following = "following the log, which another process writes"
	leading   = "this process writes the log now"
)

// A second service at the log of a running one follows it, and writes it when the first one is gone, or at once when it is
// asked to. The first one then follows.
func TestSecondService(t *testing.T) {
	t.Parallel()
	nats := startNATS(t)
	first := servedFrom(t, nats)
	first.leave()
	file, data := serviceFile(t, fmt.Sprintf("[log]\nurl = %q\n", nats.url()))
	if said, code := command(t, "serve", "--data", data, "--take-over"); code != 2 {
		t.Errorf("--take-over of a directory: exit status %d\n%s", code, said)
	}
	second := serve(t, file)
	url := second.listening(t)
	for deadline := time.Now().Add(patience); !strings.Contains(second.said(), following); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it does not follow:\n%s", second.said())
		}
	}
	if said := second.said(); !strings.Contains(said, fmt.Sprint("process ", os.Getpid())) {
		t.Errorf("it does not name the process that writes the log:\n%s", said)
	}
	mine, yours := first.stats(t.Context(), "home"), learning{}
	first.url.Store(&url)
	for deadline := time.Now().Add(patience); yours.tally != mine.tally && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		yours = first.stats(t.Context(), "home")
	}
	if yours.tally != mine.tally || mine.Decisions == 0 {
		t.Errorf("the second service has %+v, the first %+v", yours, mine)
	}
	second.stop(t)
	second = serve(t, file, "--take-over")
	second.listening(t)
	first.await(following)
	second.stop(t)
	first.await(leading)
	first.stop()
	if err := <-first.ended; err != nil {
		t.Errorf("the first service ended with %v", err)
	}
	decisions, _ := readLog(t, natslog.Options{URL: nats.url()})
	first.isIn(decisions)
}

// ends waits until the service has ended by itself, with an error that is wanted.
func (v *busy) ends(want func(error) bool) {
	v.Helper()
	if err := <-v.ended; !want(err) {
		v.Errorf("the service ended with %v", err)
	}
	v.stop()
	v.leave()
}
