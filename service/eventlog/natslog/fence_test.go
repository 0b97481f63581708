package natslog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
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

func connect(t testing.TB, o natslog.Options) *natslog.Store {
	t.Helper()
	if o.Patience == 0 {
		o.Patience = patience
	}
	s := fatal.Or(natslog.Open(t.Context(), o))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// The last process to open the log writes it. The previous writer is rejected for good, and leaves no trace.
func TestZombieIsFenced(t *testing.T) {
	o := natslog.Options{URL: natstest.URL(t), TakeOver: true}
	zombie := connect(t, o)
	fill(t, zombie, 1, 3)
	heir := connect(t, o)
	refused := func(s eventlog.Log) {
		t.Helper()
		expect.Fails(s.Append(t.Context(), []byte("zombie")))(fatal.T(t), eventlog.ErrFenced)
	}
	refused(zombie)
	fill(t, heir, 4, 4)
	refused(zombie)
	// A successor that has not written yet already fences.
	third := connect(t, o)
	refused(heir)
	refused(zombie)
	fill(t, third, 5, 6)
	logtest.Want(t, third, 1, numbered(1, 6)...)
}

// A zombie removes no entries: it does not know which ones its successor needs.
func TestZombieDoesNotTruncate(t *testing.T) {
	o := natslog.Options{URL: natstest.URL(t), TakeOver: true}
	zombie := connect(t, o)
	fill(t, zombie, 1, 5)
	heir := connect(t, o)
	for range 2 {
		expect.Error(fatal.T(t), zombie.TruncateBefore(t.Context(), 4), eventlog.ErrFenced)
	}
	logtest.Want(t, heir, 1, numbered(1, 5)...)
	fatal.If(t, heir.TruncateBefore(t.Context(), 4))
	logtest.Want(t, heir, 4, numbered(4, 5)...)
	fill(t, heir, 6, 6)
}

// A stream created with other settings may lose acknowledged entries.
func TestUnfitStream(t *testing.T) {
	t.Parallel()
	o := natslog.Options{URL: natstest.URL(t)}
	c := fatal.Or(nats.Connect(o.URL))(t)
	defer c.Close()
	js := fatal.Or(jetstream.New(c))(t)
	for i, test := range []struct {
		change func(*jetstream.StreamConfig)
		want   string
	}{
		{func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }, "storage is Memory"},
		{func(c *jetstream.StreamConfig) { c.Retention = jetstream.InterestPolicy }, "retention is Interest"},
		{func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }, "max_age"},
		{func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 10 }, "max_msgs_per_subject"},
		{func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 20 }, "discard is old"},
		{func(c *jetstream.StreamConfig) { c.NoAck = true }, "no_ack"},
		{func(c *jetstream.StreamConfig) { c.PersistMode = jetstream.AsyncPersistMode }, "persist_mode"},
		{func(c *jetstream.StreamConfig) { c.AllowDirect = true }, "allow_direct"},
		{func(c *jetstream.StreamConfig) { c.MaxMsgSize = 1000 }, "max_msg_size is 1000"},
		{func(c *jetstream.StreamConfig) { c.MaxBytes, c.Discard = 1<<20, jetstream.DiscardNew }, ""},
		{func(c *jetstream.StreamConfig) { c.MaxBytes, c.Discard = 50, jetstream.DiscardNew },
			eventlog.ErrReopen.Error()}, // full
	} {
		o.Stream = fmt.Sprint("s", i)
		config := jetstream.StreamConfig{Name: o.Stream, Subjects: []string{o.Stream + ".log"},
			Storage: jetstream.FileStorage}
		test.change(&config)
		fatal.Or(js.CreateStream(t.Context(), config))(t)
		s, err := natslog.Open(t.Context(), o)
		switch {
		case err == nil:
			s.Close()
			expect.Equal(t, test.want, "", "a stream is taken whose")
		case test.want == "" || !strings.Contains(err.Error(), test.want):
			t.Errorf("%v, want %q", err, test.want)
		}
	}
}

// A server that accepts only small messages would reject the first large frame.
func TestSmallMessages(t *testing.T) {
	t.Parallel()
	srv := natstest.Serve(t, server.Options{MaxPayload: 1 << 18})
	expect.Part(natslog.Open(t.Context(), natslog.Options{URL: srv.ClientURL()}))(t, "max_payload")
}

// Many processes open a log at the same moment. At most one writes at any time, and every acknowledged entry is in the
// log.
func TestManyOpenAtOnce(t *testing.T) {
	t.Parallel()
	o := natslog.Options{URL: natstest.URL(t), TakeOver: true}
	connect(t, o).Close()
	var mu sync.Mutex
	acknowledged, unknown := map[uint64]string{}, map[string]bool{}
	var group sync.WaitGroup
	for w := range 8 {
		group.Go(func() {
			s, err := natslog.Open(t.Context(), o)
			if err != nil {
				expect.Error(t, err, eventlog.ErrFenced)
				return
			}
			defer s.Close()
			for i := range 20 {
				e := fmt.Sprintf("%d/%d", w, i)
				last, err := s.Append(t.Context(), []byte(e))
				mu.Lock()
				if err != nil {
					unknown[e] = errors.Is(err, eventlog.ErrUnknown)
					mu.Unlock()
					expect.Error(t, err, eventlog.ErrFenced)
					return
				}
				if before, ok := acknowledged[last]; ok {
					t.Errorf("entry %d is %s and %s", last, before, e)
				}
				acknowledged[last] = e
				mu.Unlock()
			}
		})
	}
	group.Wait()
	s := connect(t, o)
	have := fatal.Or(logtest.Read(s, 1))(t)
	for i, e := range have {
		if want, ok := acknowledged[uint64(i+1)]; ok && string(e) != want || !ok && !unknown[string(e)] {
			t.Errorf("entry %d is %q, acknowledged was %q", i+1, e, want)
		}
		delete(acknowledged, uint64(i+1))
	}
	if len(acknowledged) > 0 {
		t.Errorf("acknowledged and not in the log: %v", acknowledged)
	}
}

// An entry is stored, its acknowledgement is lost, and another process takes over the log before the writer can ask.
// The writer must not claim that the entry is not in the log.
func TestStoredThenFenced(t *testing.T) {
	t.Parallel()
	url, f := natstest.URL(t), new(faults)
	s := connect(t, natslog.Options{URL: url,
		Connect: []nats.Option{nats.SetCustomDialer(f), nats.ReconnectWait(time.Millisecond)}})
	fill(t, s, 1, 2)
	stream := natstest.JetStream(t, url)
	stored := stateOf(t, stream).LastSeq + 1
	f.away = make(chan struct{})
	f.lose.Store(true)
	result := make(chan error, 1)
	go func() {
		_, err := s.Append(t.Context(), entry(3))
		result <- err
	}()
	for deadline := time.Now().Add(patience); stateOf(t, stream).LastSeq < stored; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the entry is not stored")
		}
	}
	next := connect(t, natslog.Options{URL: url, TakeOver: true})
	close(f.away)
	if err := <-result; !errors.Is(err, eventlog.ErrFenced) || !errors.Is(err, eventlog.ErrUnknown) {
		t.Errorf("%v, want ErrFenced and ErrUnknown", err)
	}
	logtest.Want(t, next, 1, numbered(1, 3)...)
}

// link is a connection that can lose or delay answers.
type link struct {
	net.Conn
	faults *faults
}

type faults struct {
	lose      atomic.Bool   // lose the next answer, and the connection with it
	loseClaim atomic.Bool   // like lose, for the answer to a claim
	loseAfter atomic.Int64  // like lose, after so many answers
	delay     atomic.Int64  // nanoseconds before every answer
	away      chan struct{} // unless nil, connections wait until it is closed
}

func (l link) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	time.Sleep(time.Duration(l.faults.delay.Load()))
	if l.faults.lose.CompareAndSwap(true, false) || l.faults.loseAfter.Add(-1) == 0 {
		l.Conn.Close()
		return 0, net.ErrClosed
	}
	return n, err
}

func (l link) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("VLOGCLAIM")) && l.faults.loseClaim.CompareAndSwap(true, false) {
		l.faults.lose.Store(true)
	}
	return l.Conn.Write(b)
}

func (f *faults) Dial(network, address string) (net.Conn, error) {
	if f.away != nil {
		<-f.away
	}
	c, err := net.Dial(network, address)
	return link{c, f}, err
}

// An acknowledgement is lost with the connection. The message is sent again, rejected, recognised as the existing one,
// and confirmed. The log contains it once.
func TestLostAcknowledgement(t *testing.T) {
	t.Parallel()
	f := new(faults)
	s := connect(t, natslog.Options{URL: natstest.URL(t),
		Connect: []nats.Option{nats.SetCustomDialer(f), nats.ReconnectWait(time.Millisecond)}})
	for i := 1; i <= 6; i++ {
		f.lose.Store(i%3 == 0)
		fill(t, s, i, i)
	}
	logtest.Want(t, s, 1, numbered(1, 6)...)
}

// An answer during opening is lost, to the opening message or to one before it. Each writer still recognises its own
// messages.
func TestLostAnswersOfOpening(t *testing.T) {
	t.Parallel()
	url, f := natstest.URL(t), new(faults)
	for k := range int64(12) {
		f.loseAfter.Store(k + 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		s, err := natslog.Open(ctx, natslog.Options{URL: url,
			Connect: []nats.Option{nats.SetCustomDialer(f), nats.ReconnectWait(time.Millisecond)}})
		cancel()
		if errors.Is(err, eventlog.ErrFenced) {
			t.Errorf("without answer %d: %v", k, err)
		}
		if err == nil {
			s.Close()
		}
	}
}

// Another writer has written the same frame, byte for byte, that this one is about to write, which happens if two open
// a log at the same moment. This writer must not take the frame for its own: the other one writes the log.
func TestSameFrameOfAnother(t *testing.T) {
	t.Parallel()
	o := natslog.Options{URL: natstest.URL(t)}
	s := connect(t, o)
	fill(t, s, 1, 2)
	js := natstest.JetStream(t, o.URL)
	last := fatal.Or(js.GetMsg("vitrine", stateOf(t, js).LastSeq))(t)
	f := fatal.Or(eventlog.DecodeFrame(last.Data))(t)
	end := f.End()
	next := eventlog.Frame{Epoch: f.Epoch, First: end.Sequence + 1, Log: end.Log, Before: end.Hash}
	m := nats.NewMsg("vitrine.log")
	m.Header.Set("Vitrine-Writer", "another")
	m.Data = next.Encode(nil)
	fatal.Or(js.PublishMsg(m))(t)
	natslog.Age(s, time.Hour, time.Hour)
	expect.Error(t, s.Confirm(t.Context()), eventlog.ErrFenced)
}

// The answer to a claim is lost. The claim is sent again but appears in the log only once: a late second claim would
// fence its own writer.
func TestClaimIsSentAgain(t *testing.T) {
	t.Parallel()
	url, f := natstest.URL(t), new(faults)
	connect(t, natslog.Options{URL: url}).Close()
	for range 3 {
		f.loseClaim.Store(true)
		s := connect(t, natslog.Options{URL: url, TakeOver: true,
			Connect: []nats.Option{nats.SetCustomDialer(f), nats.ReconnectWait(time.Millisecond)}})
		if f.loseClaim.Load() {
			t.Fatal("the claim was not sent")
		}
		s.Close()
	}
	js, claims := natstest.JetStream(t, url), map[string]int{}
	for at := uint64(1); at <= stateOf(t, js).LastSeq; at++ {
		m := fatal.Or(js.GetMsg("vitrine", at))(t)
		if writer := m.Header.Get("Vitrine-Writer"); string(m.Data) == "VLOGCLAIM" {
			if claims[writer]++; claims[writer] > 1 {
				t.Errorf("message %d is claim %d of one writer", at, claims[writer])
			}
		}
	}
	expect.Equal(t, len(claims), 4, "writers have claimed the log")
}

// While answers are slow, callers wait for each other. A caller that gives up is told that the outcome is unknown.
func TestSlowDisk(t *testing.T) {
	t.Parallel()
	url, f := natstest.URL(t), new(faults)
	s := connect(t, natslog.Options{URL: url, Connect: []nats.Option{nats.SetCustomDialer(f)}})
	f.delay.Store(int64(30 * time.Millisecond))
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 3 {
				if _, err := s.Append(t.Context(), []byte("entry")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	f.delay.Store(0)
	if have, err := logtest.Read(s, 1); err != nil || len(have) != 3*8 {
		t.Errorf("%d entries of %d, %v", len(have), 3*8, err)
	}
	f.delay.Store(int64(2 * time.Second))
	stream := natstest.JetStream(t, url)
	before := stateOf(t, stream).LastSeq
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for deadline := time.Now().Add(patience); stateOf(t, stream).LastSeq == before &&
			time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		}
	}()
	_, err := s.Append(ctx, []byte("late"))
	f.delay.Store(0)
	if !errors.Is(err, eventlog.ErrUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("given up while under way: %v, want ErrUnknown", err)
	}
}

// stateOf returns the stream's state according to the server.
func stateOf(t *testing.T, server nats.JetStreamContext) nats.StreamState {
	t.Helper()
	return fatal.Or(server.StreamInfo("vitrine"))(t).State
}

// The server is gone: appends fail within the store's patience and ask for the log to be reopened.
func TestServerGone(t *testing.T) {
	t.Parallel()
	srv := natstest.Serve(t, server.Options{})
	s := connect(t, natslog.Options{URL: srv.ClientURL(), Patience: 5 * time.Second})
	fill(t, s, 1, 2)
	natstest.Stop(srv)
	for range 2 {
		expect.Fails(s.Append(t.Context(), []byte("lost")))(t, eventlog.ErrReopen)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	for _, err := range s.Entries(ctx, 1) {
		if err == nil || errors.As(err, new(*eventlog.DamageError)) {
			t.Errorf("reading without a server: %v, want an error that is not of damage", err)
		}
	}
}

// Readers leave no consumers on the server, even if they stop early.
func TestReadersLeaveNothing(t *testing.T) {
	// A busy machine would make a consumer twice, and the server keep one for minutes.
	t.Cleanup(natslog.SetPatientAttempts())
	o := natslog.Options{URL: natstest.URL(t)}
	s := connect(t, o)
	fill(t, s, 1, 5)
	for range 5 {
		for range s.Entries(t.Context(), 1) {
			break
		}
		logtest.Want(t, s, 1, numbered(1, 5)...)
	}
	// readers do not wait for the deletion
	stream := natstest.JetStream(t, o.URL)
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		left := stateOf(t, stream).Consumers
		if left == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d consumers are left", left)
		}
	}
}

// A message published to the stream by hand stops readers.
func TestForeignMessage(t *testing.T) {
	o := natslog.Options{URL: natstest.URL(t), TakeOver: true}
	s := connect(t, o)
	fill(t, s, 1, 3)
	c, err := nats.Connect(o.URL)
	fatal.If(t, err)
	defer c.Close()
	fatal.Or(c.Request("vitrine.log", []byte("hello"), patience))(t)
	expect.Fails(s.Append(t.Context(), entry(4)))(t, eventlog.ErrFenced)
	_, err = natslog.Open(t.Context(), o)
	var damage *eventlog.DamageError
	if !errors.As(err, &damage) || damage.Sequence != 4 {
		t.Errorf("%v, want a DamageError from entry 4 on", err)
	}
}

func TestReadOnly(t *testing.T) {
	o := natslog.Options{URL: natstest.URL(t)}
	reading := o
	reading.ReadOnly = true
	expect.Part(natslog.Open(t.Context(), reading))(t, "not found", "reading a log that is not there")
	s := connect(t, o)
	fill(t, s, 1, 5)
	r := connect(t, reading)
	logtest.Want(t, r, 1, numbered(1, 5)...)
	expect.Fails(r.Append(t.Context(), entry(6)))(t, eventlog.ErrReadOnly)
	expect.Error(t, r.TruncateBefore(t.Context(), 3), eventlog.ErrReadOnly)
	fill(t, s, 6, 7) // readers do not fence the writer
}
