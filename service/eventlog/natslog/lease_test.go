package natslog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/logtest"
	"vitrine/service/eventlog/natslog"
	"vitrine/service/eventlog/natslog/natstest"
)

// lost waits until a store knows that it lost the log.
func lost(t *testing.T, s *natslog.Store) error {
	t.Helper()
	select {
	case <-s.Lost():
		return s.Loss()
	case <-time.After(patience):
		t.Fatal("it does not learn that it has lost the log")
		return nil
	}
}

// Opening a log fails while its writer is alive, and the error names the writer. The log is free once the writer closes
// it.
func TestWriterIsAlive(t *testing.T) {
	t.Parallel()
	o := natslog.Options{URL: natstest.URL(t)}
	s := connect(t, o)
	for range 2 {
		_, err := natslog.Open(t.Context(), o)
		if !errors.Is(err, eventlog.ErrAlive) || !strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) {
			t.Fatalf("%v, want ErrAlive that names this process", err)
		}
	}
	fill(t, s, 1, 2)
	expect.Error(t, s.Loss(), nil, "who was asked for has lost the log")
	s.Close()
	fill(t, connect(t, o), 3, 4)
}

// A killed writer stops renewing, so the log is free after a while. A store in the same process does not wait.
func TestWriterWasKilled(t *testing.T) {
	t.Parallel()
	url := natstest.URL(t)
	s := connect(t, natslog.Options{URL: url, Process: "a"})
	fill(t, s, 1, 2)
	natslog.Abandon(s)
	s = connect(t, natslog.Options{URL: url, Process: "a"})
	fill(t, s, 3, 4)
	natslog.Abandon(s)
	s = connect(t, natslog.Options{URL: url, Process: "b"})
	fill(t, s, 5, 6)
	logtest.Want(t, s, 1, numbered(1, 6)...)
}

// A writer that loses its log finds out by itself, without an append.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	o := natslog.Options{URL: natstest.URL(t)}
	idle := connect(t, o)
	fill(t, idle, 1, 2)
	o.TakeOver = true
	heir := connect(t, o)
	expect.Error(t, lost(t, idle), eventlog.ErrFenced)
	expect.Fails(idle.Append(t.Context(), entry(9)))(t, eventlog.ErrFenced)
	idle.Close() // must not release another process's lease
	expect.Fails(natslog.Open(t.Context(), natslog.Options{URL: o.URL}))(t, eventlog.ErrAlive)
	fill(t, heir, 3, 4)
	logtest.Want(t, heir, 1, numbered(1, 4)...)
}

// The lease's bucket is removed under a writer. The log is unaffected.
func TestLeaseIsRemoved(t *testing.T) {
	t.Parallel()
	o := natslog.Options{URL: natstest.URL(t)}
	s := connect(t, o)
	js := natstest.JetStream(t, o.URL)
	fatal.If(t, js.DeleteKeyValue("vitrine-lease"))
	time.Sleep(300 * time.Millisecond) // some renewals
	fill(t, s, 1, 2)
	expect.Error(t, s.Loss(), nil)
}

// A URL's password appears in no error and in no line of the log.
func TestSecretsOfURLs(t *testing.T) {
	t.Parallel()
	const secret = "pa%24%24word" // $ is quoted in a URL
	srv := natstest.Serve(t, server.Options{Username: "u", Password: "pa$$word"})
	host := srv.Addr().String()
	said := &written{}
	open := func(url string, patience time.Duration) (*natslog.Store, error) {
		return natslog.Open(t.Context(), natslog.Options{URL: url, Patience: patience,
			Logger: slog.New(slog.NewTextHandler(said, nil))})
	}
	for _, url := range []string{
		"nats://u:" + secret + "@" + host + "1", "nats://u:" + secret + "@127.0.0.1:1", "nats://" + secret + "@" + host,
		"nats://u:" + secret + "%@" + host,
		"nats://u:" + secret + "@:x", "nats://u:" + secret + "@" + host + ",nats://v:" + secret + "@" + host,
		"nats://v:" + secret + "@" + host,
	} {
		s, err := open(url, 300*time.Millisecond)
		if err == nil {
			s.Close()
			t.Fatalf("%s is opened", url)
		}
		fmt.Fprintln(said, err)
	}
	s, err := open("nats://u:"+secret+"@"+host+","+host, 10*time.Second)
	fatal.If(t, err)
	defer s.Close()
	fill(t, s, 1, 2)
	natstest.Stop(srv)
	_, err = s.Append(t.Context(), entry(3))
	fmt.Fprintln(said, err)
	for _, err := range s.Entries(t.Context(), 1) {
		fmt.Fprintln(said, err)
	}
	if text := said.String(); strings.Contains(text, "word") || !strings.Contains(text, "disconnected") ||
		!strings.Contains(text, host) {
		t.Errorf("a password, or no word of the server:\n%s", text)
	}
}

// While the servers are reached, each of their errors is logged.
func TestErrorsOfAHealthyConnection(t *testing.T) {
	said := &written{}
	s := connect(t, natslog.Options{URL: natstest.URL(t), Logger: slog.New(slog.NewTextHandler(said, nil))})
	for range 2 {
		natslog.Asynchronous(s, errors.New("slow consumer"))
	}
	expect.Equal(t, strings.Count(said.String(), "slow consumer"), 2, "n warnings")
}

// A mark keeps the changes that an operator made to the stream since it was opened.
func TestMarkKeepsTheStream(t *testing.T) {
	url := natstest.URL(t)
	s := connect(t, natslog.Options{URL: url})
	js := natstest.JetStream(t, url)
	info := fatal.Or(js.StreamInfo("vitrine"))(t)
	info.Config.Description = "ours"
	fatal.Or(js.UpdateStream(&info.Config))(t)
	for _, unfinished := range []bool{true, false} {
		fatal.If(t, s.MarkCopy(t.Context(), unfinished))
		info := fatal.Or(js.StreamInfo("vitrine"))(t)
		expect.Equal(t, info.Config.Description, "ours", "the description")
		expect.Equal(t, info.Config.Metadata["vitrine-copy"] != "", unfinished, "it is marked")
	}
}

// written is a buffer shared by several goroutines.
type written struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// A server version that cannot sync each write is rejected.
func TestOldServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	fatal.If(t, err)
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				fmt.Fprint(c,
					`INFO {"server_id":"x","version":"2.9.25","proto":1,"headers":true,"max_payload":1048576}`+"\r\n")
				buf := make([]byte, 1<<16)
				for {
					n, err := c.Read(buf)
					if err != nil {
						return
					}
					if bytes.Contains(buf[:n], []byte("PING")) {
						fmt.Fprint(c, "PONG\r\n")
					}
				}
			}()
		}
	}()
	_, err = natslog.Open(t.Context(), natslog.Options{URL: "nats://" + l.Addr().String()})
	if err == nil || !strings.Contains(err.Error(), "2.9.25") || !strings.Contains(err.Error(), "2.10") {
		t.Errorf("%v, want a refusal of version 2.9.25", err)
	}
}

// On a cluster of three, a log and its lease get three replicas by default.
func TestReplicas(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	s := connect(t, natslog.Options{URL: c.url()})
	fill(t, s, 1, 2)
	js := natstest.JetStream(t, c.url())
	for _, stream := range []string{"vitrine", "KV_vitrine-lease"} {
		info, err := js.StreamInfo(stream)
		if err != nil || info.Config.Replicas != 3 {
			t.Errorf("%s: %+v, %v; want three replicas", stream, info, err)
		}
	}
	// A log created with fewer is served, with a warning.
	var said written
	one := natslog.Options{URL: c.url(), Stream: "one", Replicas: 1}
	connect(t, one).Close()
	one.Replicas, one.Logger = 0, slog.New(slog.NewTextHandler(&said, nil))
	fill(t, connect(t, one), 1, 2)
	expect.Contains(t, said.String(), "fewer replicas", "no warning of one replica on a cluster")
}

// A process that takes over a log succeeds, however fast the previous writer appends: 20 times in 20.
func TestTakeOverUnderLoad(t *testing.T) {
	t.Parallel()
	o := natslog.Options{URL: natstest.URL(t), TakeOver: true}
	var mu sync.Mutex
	acknowledged := map[uint64]string{}
	var group sync.WaitGroup
	load := func(name string, s *natslog.Store) {
		for caller := range 8 {
			group.Go(func() {
				for n := 0; ; n++ {
					e := fmt.Sprintf("%s/%d/%d", name, caller, n)
					last, err := s.Append(t.Context(), []byte(e))
					if err != nil {
						expect.Error(t, err, eventlog.ErrFenced, name)
						return
					}
					mu.Lock()
					if before, ok := acknowledged[last]; ok {
						t.Errorf("entry %d is %s and %s", last, before, e)
					}
					acknowledged[last] = e
					mu.Unlock()
				}
			})
		}
	}
	for n := range 21 {
		s := connect(t, o)
		load(fmt.Sprint(n), s)
		for range 3 { // until the load has built up
			fatal.Or(s.Append(t.Context(), []byte("own")))(t, "who has taken the log over")
		}
	}
	s := connect(t, o)
	group.Wait()
	have := fatal.Or(logtest.Read(s, 1))(t)
	for last, e := range acknowledged {
		if last > uint64(len(have)) || string(have[last-1]) != e {
			t.Fatalf("entry %d was acknowledged as %s, and is not there", last, e)
		}
	}
}

// Writers that died after a claim, before writing a frame, leave claims at the beginning, in a row and at the end of a
// log. Such claims are harmless.
func TestClaimsWithoutFrames(t *testing.T) {
	t.Parallel()
	o := natslog.Options{URL: natstest.URL(t), TakeOver: true}
	connect(t, natslog.Options{URL: o.URL, Stream: "another"}).Close()
	js := natstest.JetStream(t, o.URL)
	claim := func(n int) {
		t.Helper()
		for range n {
			fatal.Or(js.Publish("vitrine.log", []byte("VLOGCLAIM")))(t)
		}
	}
	fatal.Or(js.AddStream(&nats.StreamConfig{Name: "vitrine", Subjects: []string{"vitrine.log"},
		Storage: nats.FileStorage, Discard: nats.DiscardNew}))(t)
	claim(3)
	s := connect(t, o)
	logtest.Want(t, s, 1)
	for i := range 5 {
		fill(t, s, 4*i+1, 4*i+4)
		claim(3)
		expect.Fails(s.Append(t.Context(), entry(0)))(fatal.T(t), eventlog.ErrFenced)
		s = connect(t, o)
	}
	for from := 1; from <= 20; from++ {
		logtest.Want(t, s, uint64(from), numbered(from, 20)...)
	}
	since, err := eventlog.FirstSince(t.Context(), s, func(e []byte) (bool, error) {
		return bytes.Compare(e, entry(10)) >= 0, nil
	})
	if err != nil || since > 10 || since < 9 {
		t.Errorf("entries from 10 on are new: FirstSince says %d, %v", since, err)
	}
	x := fatal.Or(s.Extent(t.Context()))(t)
	if x.Epoch < 2 {
		t.Errorf("the epoch of a log that was opened again is %d", x.Epoch)
	}
	if within, err := s.FirstWithin(t.Context(), x.Bytes/2); err != nil || within < 8 || within > 14 {
		t.Errorf("half of the bytes begin at entry %d, %v", within, err)
	}
	fatal.If(t, s.TruncateBefore(t.Context(), 9))
	logtest.Want(t, s, 9, numbered(9, 20)...)
	s.Close()
	s = connect(t, o)
	fill(t, s, 21, 22)
	logtest.Want(t, s, 9, numbered(9, 22)...)
}

// A lease holds for as long as its holder declared, regardless of the standby's own setting: a leader that renews once
// a second keeps the log next to a standby with 40 ms leases.
func TestLeaseOfAnotherLength(t *testing.T) {
	undo := natslog.SetLease(time.Second, 10*time.Second)
	t.Cleanup(func() { undo() })
	o := natslog.Options{URL: natstest.URL(t), Standby: true, Process: "leader"}
	leader := connect(t, o)
	fill(t, leader, 1, 2)
	standby := connect(t, natslog.Options{URL: o.URL, Standby: true})
	t.Cleanup(natslog.SetLease(20*time.Millisecond, 40*time.Millisecond))
	ctx, cancel := context.WithTimeout(t.Context(), 800*time.Millisecond)
	defer cancel()
	if err := standby.Lead(ctx); !errors.Is(err, context.DeadlineExceeded) || standby.Leader().Process != o.Process {
		t.Errorf("%v, and the lease is of %+v", err, standby.Leader())
	}
	fill(t, leader, 3, 4)
}

// A process that takes longer than a lease to claim the log keeps the lease: another waiting process does not get the
// log.
func TestSlowClaim(t *testing.T) {
	t.Parallel()
	n := &network{requests: []byte("vitrine.log")}
	o := over(t, n)
	leader := connect(t, o)
	fill(t, leader, 1, 3)
	standbys := []*natslog.Store{connect(t, o), connect(t, o)}
	natslog.Abandon(leader)
	const lost = 1 << 30
	n.left.Store(lost)
	ended := make(chan error, 2)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, s := range standbys {
		go func() { ended <- s.Lead(ctx) }()
	}
	for n.left.Load() == lost { // until one of them holds the lease
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(lease + lease/2)
	n.left.Store(0)
	fatal.If(t, <-ended)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) || standbys[0].Leads() == standbys[1].Leads() {
		t.Errorf("the other one: %v; %v and %v lead", err, standbys[0].Leads(), standbys[1].Leads())
	}
}

// A process whose lease ran out before it claimed the log, because it slept for example, does not lead: the present
// holder may trust the lease.
func TestClaimAfterTheLease(t *testing.T) {
	t.Parallel()
	n := &network{requests: []byte("vitrine.log")}
	o := over(t, n)
	leader := connect(t, natslog.Options{URL: o.URL, Standby: true})
	fill(t, leader, 1, 3)
	s := connect(t, o)
	const lost = 1 << 30
	n.left.Store(lost)
	natslog.Abandon(leader)
	ended := make(chan error, 1)
	go func() { ended <- s.Lead(t.Context()) }()
	for n.left.Load() == lost { // until it claims
		time.Sleep(10 * time.Millisecond)
	}
	bucket := fatal.Or(natstest.JetStream(t, o.URL).KeyValue("vitrine-lease"))(t)
	fatal.Or(bucket.PutString("writer", `{"process":"another","lasts_ms":60000}`))(t)
	time.Sleep(lease + lease/4)
	n.left.Store(0)
	if err := <-ended; !errors.Is(err, eventlog.ErrFenced) || s.Leads() {
		t.Errorf("%v, and it leads: %v; want ErrFenced", err, s.Leads())
	}
}

// onlyLease is a bucket with the lease of a live process. It stores a new holder, and loses the first answer.
type onlyLease struct {
	jetstream.KeyValue
	jetstream.KeyValueEntry
	value    []byte
	revision uint64
	taken    time.Time
}

func (l *onlyLease) Get(context.Context, string) (jetstream.KeyValueEntry, error) { return l, nil }
func (l *onlyLease) Value() []byte                                                { return l.value }
func (l *onlyLease) Revision() uint64                                             { return l.revision }
func (l *onlyLease) Bucket() string                                               { return "lease" }

func (l *onlyLease) Update(ctx context.Context, _ string, value []byte, _ uint64) (uint64, error) {
	l.value, l.revision = value, l.revision+1
	if l.taken.IsZero() {
		l.taken = time.Now()
		<-ctx.Done()
		return 0, ctx.Err()
	}
	return l.revision, nil
}

// A process that takes a lease over writes only when the holder before cannot trust its lease any more, also if the
// answer was lost and the lease is its own at the next look.
func TestTakenLeaseRunsOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &onlyLease{value: []byte(`{"process":"other","lasts_ms":5000}`), revision: 7}
		fatal.If(t, natslog.TakeOver(t.Context(), l, "this"))
		if waited := time.Since(l.taken); waited < 5*time.Second || waited > 7*time.Second {
			t.Errorf("the log is taken %v after the lease, want its 5s and little more", waited)
		}
	})
}
