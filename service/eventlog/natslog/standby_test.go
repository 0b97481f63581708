package natslog_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
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

// followed reads a log indefinitely and passes its entries on, until an error.
func followed(ctx context.Context, s *natslog.Store, from uint64) (<-chan []byte, <-chan error) {
	entries, ended := make(chan []byte, 10_000), make(chan error, 1)
	go func() {
		for some, err := range s.Follow(ctx, from) {
			if err != nil {
				ended <- err
				return
			}
			for _, e := range some {
				entries <- e
			}
		}
	}()
	return entries, ended
}

// comes waits for entries in order.
func comes(t *testing.T, entries <-chan []byte, first, last int) {
	t.Helper()
	for i := first; i <= last; i++ {
		select {
		case e := <-entries:
			if string(e) != string(entry(i)) {
				t.Fatalf("%q comes, want %q", e, entry(i))
			}
		case <-time.After(patience):
			t.Fatalf("entry %d does not come", i)
		}
	}
}

// A standby follows a log, knows its entries and its writer, and takes over when the writer is gone. It cannot append
// before that, and the previous writer cannot append afterwards.
func TestStandby(t *testing.T) {
	t.Parallel()
	o := natslog.Options{URL: natstest.URL(t), Standby: true}
	first := o
	first.Process, first.Address = "first", "shop:8080"
	leader := connect(t, first)
	fill(t, leader, 1, 3)
	o.Process = "second"
	s := connect(t, o)
	if s.Leads() || !leader.Leads() || s.Leader().Process != "first" ||
		!strings.Contains(s.Leader().String(), "shop:8080") {
		t.Fatalf("the second leads: %v, the first: %v; the leader is %v", s.Leads(), leader.Leads(), s.Leader())
	}
	expect.Fails(s.Append(t.Context(), entry(9)))(t, eventlog.ErrFollower)
	entries, _ := followed(t.Context(), s, 2)
	comes(t, entries, 2, 3)
	fill(t, leader, 4, 6)
	comes(t, entries, 4, 6)
	if e, err := s.Entry(t.Context(), 5); err != nil || string(e) != string(entry(5)) {
		t.Errorf("%q, %v", e, err)
	}
	mine, err := s.Position(t.Context(), 6)
	yours, failed := leader.Position(t.Context(), 6)
	if err != nil || failed != nil || mine != yours {
		t.Errorf("%v %v, want %v %v", mine, err, yours, failed)
	}
	logtest.Want(t, s, 1, numbered(1, 6)...)
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		sequence, at := s.Synced()
		if sequence == 6 && time.Since(at) < time.Minute {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it is in step with entry %d of %v", sequence, at)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := s.Lead(ctx); !errors.Is(err, context.DeadlineExceeded) || s.Leads() {
		t.Errorf("while the leader is there: %v", err)
	}
	fill(t, leader, 7, 7)
	leader.Close()
	fatal.If(t, s.Lead(t.Context()))
	logtest.Want(t, s, 1, numbered(1, 7)...)
	fill(t, s, 8, 9)
	comes(t, entries, 7, 9)
	if s.Leader().Process != "second" || s.Epoch() != 2 {
		t.Errorf("the leader is %v, its epoch %d", s.Leader(), s.Epoch())
	}
}

// After a writer is killed, one of its standbys replaces it, and the other follows the new writer.
func TestStandbyReplacesTheKilled(t *testing.T) {
	t.Parallel()
	o := natslog.Options{URL: natstest.URL(t), Standby: true}
	killed := connect(t, o)
	fill(t, killed, 1, 2)
	var standbys [2]*natslog.Store
	for i := range standbys {
		standbys[i] = connect(t, o)
	}
	natslog.Abandon(killed)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	leading := make(chan *natslog.Store)
	for i, s := range standbys {
		go func() {
			if err := s.Lead(ctx); err == nil {
				leading <- s
			} else {
				expect.Error(t, err, context.Canceled, i)
			}
		}()
	}
	heir := <-leading
	other := standbys[0]
	if heir == other {
		other = standbys[1]
	}
	entries, _ := followed(t.Context(), other, 1)
	fill(t, heir, 3, 4)
	comes(t, entries, 1, 4)
	if other.Leads() {
		t.Error("both lead")
	}
}

// A new log creates the lease's bucket. If an existing log lacks it, starting and standing by fail with an error that
// names it, unless the log is taken over. A running leader creates it again. An invalid lease is an error too.
func TestLeaseIsMissing(t *testing.T) {
	t.Parallel()
	url := natstest.URL(t)
	o := natslog.Options{URL: url, Standby: true}
	fill(t, connect(t, o), 1, 2)
	connect(t, natslog.Options{URL: url, Stream: "other", Standby: true}).Close()
	js := natstest.JetStream(t, url)
	fatal.If(t, js.DeleteKeyValue("other-lease"))
	missing := natslog.Options{URL: url, Stream: "other", Standby: true, Patience: 10 * time.Second}
	if _, err := natslog.Open(t.Context(), missing); !errors.Is(err, eventlog.ErrLease) ||
		!strings.Contains(err.Error(), "other-lease") || !strings.Contains(err.Error(), "--take-over") {
		t.Errorf("%v, want ErrLease that names the bucket", err)
	}
	missing.TakeOver = true
	connect(t, missing).Close()
	if _, err := js.KeyValue("other-lease"); err != nil {
		t.Errorf("the bucket was not made again: %v", err)
	}
	// Another process has created the stream, but not the bucket yet.
	other := fatal.Or(js.StreamInfo("other"))(t)
	fatal.If(t, errors.Join(js.DeleteKeyValue("other-lease"), js.DeleteStream("other")))
	fatal.Or(js.AddStream(&other.Config))(t)
	missing.TakeOver = false
	if begun := connect(t, missing); !begun.Leads() {
		t.Error("the first process at an empty log does not lead")
	}

	s := connect(t, o)
	if s.Leads() {
		t.Fatal("it leads")
	}
	kv := fatal.Or(js.KeyValue("vitrine-lease"))(t)
	fatal.Or(kv.PutString("writer", "nobody"))(t)
	if err := s.Lead(t.Context()); !errors.Is(err, eventlog.ErrLease) ||
		!strings.Contains(err.Error(), `delete the key "writer" of the bucket "vitrine-lease"`) {
		t.Errorf("%v, want ErrLease that says what to do", err)
	}
	fatal.If(t, js.DeleteKeyValue("vitrine-lease"))
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if kv, err := js.KeyValue("vitrine-lease"); err == nil {
			if e, err := kv.Get("writer"); err == nil && e.Revision() > 1 {
				break
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("the leader does not make the bucket again")
		}
	}
}

// Servers in a cluster, including the stream's leader, go away under a followed log. Every entry arrives once.
func TestFollowDuringElections(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	o := natslog.Options{URL: c.url(), Standby: true}
	leader := connect(t, o)
	fill(t, leader, 1, 5)
	s := connect(t, o)
	entries, ended := followed(t.Context(), s, 1)
	comes(t, entries, 1, 5)
	for n := range 2 {
		at := c.leader()
		c.stop(at)
		fill(t, leader, 6+10*n, 15+10*n)
		comes(t, entries, 6+10*n, 15+10*n)
		c.start(at)
		c.elected()
	}
	select {
	case err := <-ended:
		t.Error(err)
	default:
	}
}

// A stream that lost entries after they were followed is damaged, and the error names the place.
func TestFollowedLogShrinks(t *testing.T) {
	t.Parallel()
	url := natstest.URL(t)
	s := connect(t, natslog.Options{URL: url, Standby: true})
	fill(t, s, 1, 9)
	f := connect(t, natslog.Options{URL: url, Standby: true, Patience: 10 * time.Second})
	entries, ended := followed(t.Context(), f, 1)
	comes(t, entries, 1, 9)
	s.Close()
	emptied(t, url)
	var damage *eventlog.DamageError
	if err := <-ended; !errors.As(err, &damage) || damage.Sequence != 10 ||
		!strings.Contains(fmt.Sprint(err), "the stream has lost it") {
		t.Errorf("%v, want a damage at entry 10", err)
	}
}

// A follower that has not started following finds an entry that came after it opened the log, as happens with a newer
// snapshot.
func TestPositionAfterTheEnd(t *testing.T) {
	t.Parallel()
	o := natslog.Options{URL: natstest.URL(t), Standby: true}
	leader := connect(t, o)
	fill(t, leader, 1, 3)
	f := connect(t, o)
	fill(t, leader, 4, 9)
	mine, err := f.Position(t.Context(), 8)
	yours, failed := leader.Position(t.Context(), 8)
	if err != nil || failed != nil || mine != yours {
		t.Errorf("%v %v, want %v %v", mine, err, yours, failed)
	}
	logtest.Want(t, f, 9, numbered(9, 9)...)
	expect.Fails(f.Position(t.Context(), 10))(t, eventlog.ErrBeyond)
}

// If the servers do not answer one of the requests, a position is unknown, and the log is not damaged.
func TestPositionIsUnanswered(t *testing.T) {
	t.Parallel()
	leader := connect(t, natslog.Options{URL: natstest.URL(t), Standby: true})
	fill(t, leader, 1, 9)
	want, unknown := fatal.Or(leader.Position(t.Context(), 4))(t), 0
	for n := range 12 {
		natslog.Unanswered(leader, n)
		switch p, err := leader.Position(t.Context(), 4); {
		case errors.Is(err, eventlog.ErrReopen):
			unknown++
		case err != nil || p != want:
			t.Errorf("without the answer to request %d: %v, %v, want %v", n, p, err, want)
		}
	}
	if unknown < 3 {
		t.Errorf("%d requests were not answered: the test shows nothing", unknown)
	}
}

// If a server has not stored a message yet that another one delivered, the follower waits.
func TestFollowedLogIsBehind(t *testing.T) {
	t.Parallel()
	url := natstest.URL(t)
	s := connect(t, natslog.Options{URL: url, Standby: true})
	fill(t, s, 1, 9)
	f := connect(t, natslog.Options{URL: url, Standby: true})
	entries, ended := followed(t.Context(), f, 1)
	comes(t, entries, 1, 9)
	s.Close()
	js := emptied(t, url)
	time.Sleep(time.Second) // the follower looks every 300 ms
	for _, m := range js.lost {
		fatal.Or(js.PublishMsg(m))(t)
	}
	fill(t, connect(t, natslog.Options{URL: url, Standby: true}), 10, 12)
	comes(t, entries, 10, 12)
	select {
	case err := <-ended:
		t.Error(err)
	default:
	}
}

// emptiedStream is a stream that lost its messages.
type emptiedStream struct {
	nats.JetStreamContext
	lost []*nats.Msg
}

func emptied(t *testing.T, url string) emptiedStream {
	t.Helper()
	js := natstest.JetStream(t, url)
	e := emptiedStream{JetStreamContext: js}
	info := fatal.Or(js.StreamInfo("vitrine"))(t)
	for n := range info.State.LastSeq {
		m := fatal.Or(js.GetMsg("vitrine", n+1))(t)
		e.lost = append(e.lost, &nats.Msg{Subject: m.Subject,
			Header: nats.Header{"Vitrine-Writer": m.Header["Vitrine-Writer"]}, Data: m.Data})
	}
	fatal.If(t, js.DeleteStream("vitrine"))
	fatal.Or(js.AddStream(&nats.StreamConfig{Name: "vitrine", Subjects: []string{"vitrine.log"},
		Storage: nats.FileStorage, Discard: nats.DiscardNew}))(t)
	return e
}

// A writer with an expired lease, as after a freeze, asks the log whether it is still the writer.
func TestConfirm(t *testing.T) {
	t.Parallel()
	o := natslog.Options{URL: natstest.URL(t), Standby: true}
	s := connect(t, o)
	fill(t, s, 1, 2)
	messages := func() uint64 { return natslog.Sent(s) }
	before := messages()
	for range 100 {
		fatal.If(t, s.Confirm(t.Context()))
	}
	if n := messages() - before; n > 50 { // some of the messages are renewals
		t.Errorf("a lease that lasts is confirmed by %d messages", n)
	}
	natslog.Age(s, time.Hour, time.Hour)
	expect.Error(t, s.Confirm(t.Context()), nil, "it still is the writer")
	o.TakeOver = true
	heir := connect(t, o)
	// a freeze, a sleeping machine, a clock that was set
	for _, age := range [][2]time.Duration{{time.Hour, time.Hour}, {0, time.Hour}, {time.Hour, 0}} {
		natslog.Age(s, age[0], age[1])
		expect.Error(t, s.Confirm(t.Context()), eventlog.ErrFenced)
	}
	fill(t, heir, 3, 4)
	f := connect(t, natslog.Options{URL: o.URL, Standby: true})
	expect.Error(t, f.Confirm(t.Context()), eventlog.ErrFollower)
}

// A follower whose stream is gone tries again and again, and says so once.
func TestFollowsNothing(t *testing.T) {
	t.Parallel()
	var said written
	url := natstest.URL(t)
	fill(t, connect(t, natslog.Options{URL: url}), 1, 2)
	follower := connect(t, natslog.Options{URL: url, Standby: true, Logger: slog.New(slog.NewTextHandler(&said, nil))})
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	remove := sync.OnceFunc(func() { fatal.If(t, natstest.JetStream(t, url).DeleteStream("vitrine")) })
	for range follower.Follow(ctx, 1) {
		remove()
	}
	expect.Equal(t, strings.Count(said.String(), "the log cannot be followed"), 1, "the log has n warnings")
}
