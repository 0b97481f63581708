package natslog_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"vitrine/service/eventlog/natslog"
)

// An answer at length comes whole, in parts that fit into messages, and one that breaks off says so. Its process knows when nobody reads
// it any more, and the reader when the process ends.
func TestAnswersAtLength(t *testing.T) {
	t.Cleanup(natslog.SetAnswer(50*time.Millisecond, 10*time.Second, 10*time.Second))
	url := external(t)
	p, err := natslog.OpenPlaces(t.Context(), natslog.Options{URL: url}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.AskAtLength(t.Context(), 1, nil); !errors.Is(err, natslog.ErrNobody) {
		t.Errorf("%v, want ErrNobody", err)
	}
	s := connect(t, natslog.Options{URL: url})
	long := bytes.Repeat([]byte("0123456789"), 300_000) // three messages
	ended := make(chan error, 1)
	stop, err := s.Serve(nil, func(ctx context.Context, request []byte, to io.Writer) error {
		switch string(request) {
		case "long":
			_, err := to.Write(long)
			return err
		case "broken":
			_, _ = to.Write([]byte("some"))
			return errors.New("the rest is missing")
		}
		_, err := to.Write([]byte("first"))
		<-ctx.Done() // and then nothing, which is how it learns that nobody waits for more
		ended <- err
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(ctx context.Context, request string) io.ReadCloser {
		t.Helper()
		a, err := p.AskAtLength(ctx, 1, []byte(request))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Close() })
		return a
	}
	if text, err := io.ReadAll(ask(t.Context(), "long")); !bytes.Equal(text, long) || err != nil {
		t.Errorf("%d of %d bytes, %v", len(text), len(long), err)
	}
	if text, err := io.ReadAll(ask(t.Context(), "broken")); string(text) != "some" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%q, %v, want that it breaks off", text, err)
	}
	first := make([]byte, 5)
	quiet := ask(t.Context(), "quiet")
	if _, err := io.ReadFull(quiet, first); err != nil {
		t.Fatal(err)
	}
	quiet.Close()
	<-ended
	ctx, cancel := context.WithCancel(t.Context())
	quiet = ask(ctx, "quiet")
	time.AfterFunc(200*time.Millisecond, cancel) // after some beats
	if text, err := io.ReadAll(quiet); string(text) != "first" || !errors.Is(err, context.Canceled) {
		t.Errorf("%q, %v, want that the context has ended", text, err)
	}
	quiet.Close()
	<-ended
	quiet = ask(t.Context(), "quiet")
	var stopping sync.WaitGroup
	stopping.Go(stop)
	if text, err := io.ReadAll(quiet); string(text) != "first" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%q, %v, want that it breaks off with its process", text, err)
	}
	<-ended
	stopping.Wait()
}

// A process whose machine is gone in the middle of an answer is waited for a while. One of an earlier program answers in one message.
func TestAnswersAtLengthOfOthers(t *testing.T) {
	t.Cleanup(natslog.SetAnswer(time.Hour, 10*time.Second, 100*time.Millisecond))
	url := external(t)
	p, err := natslog.OpenPlaces(t.Context(), natslog.Options{URL: url}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	conn, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answers := map[string]nats.MsgHandler{
		"vitrine.process": func(m *nats.Msg) { _ = m.Respond([]byte("its.own")) },
		"its.own": func(m *nats.Msg) {
			answer := nats.NewMsg(m.Reply)
			if answer.Data = m.Data; string(m.Data) == "dies" {
				answer.Header.Set("Vitrine-Answer", "part")
			}
			_ = m.RespondMsg(answer)
		},
	}
	for subject, handle := range answers {
		if _, err := conn.Subscribe(subject, handle); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	for request, want := range map[string]error{"whole": nil, "dies": io.ErrUnexpectedEOF} {
		a, err := p.AskAtLength(t.Context(), 1, []byte(request))
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(a); string(text) != request || !errors.Is(err, want) {
			t.Errorf("%q, %v, want %q and %v", text, err, request, want)
		}
		a.Close()
	}
}
