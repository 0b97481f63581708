package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/natslog"
)

// busy is a service in this process with shoppers.
type busy struct {
	*ledger
	log   *watchedLog
	stop  context.CancelFunc // stops it, and sends shoppers who wait away
	ended chan error         // gets what the service ends with
}

// served starts a service, and returns once it is busy.
func served(t *testing.T, s *service) *busy {
	t.Helper()
	v := &busy{ledger: newLedger(t)}
	s.Limits.Answer.Duration = 100 * time.Millisecond
	v.log, v.ended = &watchedLog{more: make(chan struct{}, 1)}, make(chan error, 1)
	ctx, stop := context.WithTimeout(v.Context(), patience)
	v.stop = stop
	v.Cleanup(stop)
	go func() { v.ended <- s.run(ctx, slog.New(slog.NewJSONHandler(v.log, nil))) }()
	v.At("http://" + v.await("listening")["address"].(string))
	v.Open(ctx)
	v.Shop(ctx, 4, 1)
	v.Flows(ctx)
	return v
}

// end sends the shoppers away, stops the service, and compares the answers to the shoppers with the service and with its
// log.
func (v *busy) end(log string) {
	v.Helper()
	v.Leave()
	v.Holds(v.Context())
	v.stop()
	fatal.If(v, <-v.ended)
	v.IsIn(log)
}

// servedFrom is a service with its log on a NATS server.
func servedFrom(t *testing.T, nats *natsProcess) *busy {
	t.Helper()
	s := newService(t)
	s.Log.URL, s.options.Patience = nats.URL(), 5*time.Second
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
	nats.Kill()
	v.await(reopening)
	if v.Refused() == 0 {
		t.Error("nobody was told 503")
	}
	nats.Start()
	v.Flows(t.Context())
	v.end(nats.URL())
}

// The server of NATS starts after the service, which waits for it.
func TestServerComesLater(t *testing.T) {
	t.Parallel()
	nats := startNATS(t)
	nats.Kill()
	back := make(chan struct{})
	go func() {
		defer close(back)
		time.Sleep(300 * time.Millisecond)
		nats.Start()
	}()
	v := servedFrom(t, nats)
	<-back
	v.end(nats.URL())
}

// The server comes back without acknowledged entries: the service says so, and ends.
func TestLogComesBackEmpty(t *testing.T) {
	t.Parallel()
	nats := startNATS(t)
	v := servedFrom(t, nats)
	nats.Kill()
	v.await(reopening)
	fatal.If(t, os.RemoveAll(nats.Dir))
	nats.Start()
	v.ends(func(err error) bool {
		var damage *eventlog.DamageError
		return errors.As(err, &damage) && damage.Sequence == 1 && strings.Contains(err.Error(), "were acknowledged")
	})
}

// Another process takes the log over: the service follows it, and refuses writes, naming the writer. It writes the log
// again when the other one is gone.
func TestLogIsTakenOver(t *testing.T) {
	t.Parallel()
	nats := startNATS(t)
	v := servedFrom(t, nats)
	heir := fatal.Or(natslog.Open(t.Context(), natslog.Options{URL: nats.URL(), TakeOver: true, Process: "heir"}))(t)
	defer heir.Close()
	v.await(following)
	v.awaits("listening", 2)
	heir.Close()
	v.await(leading)
	v.Flows(t.Context())
	if _, reopened := v.log.line("stopped"); reopened {
		t.Error("the service has ended")
	}
	v.end(nats.URL())
}

// Log lines of a service when it begins to follow the log, and to write it.
const (
	following = "following the log, which another process writes"
	leading   = "this process writes the log now"
)

// A second service at the log of a running one follows it, and writes it when the first one is gone, or at once when it
// is asked to. The first one then follows.
func TestSecondService(t *testing.T) {
	t.Parallel()
	nats := startNATS(t)
	first := servedFrom(t, nats)
	first.Leave()
	file, data := serviceFile(t, fmt.Sprintf("[log]\nurl = %q\n", nats.URL()))
	if said, code := command(t, "serve", "--data", data, "--take-over"); code != 2 {
		t.Errorf("--take-over of a directory: exit status %d\n%s", code, said)
	}
	second := program.Serve(t, file)
	url := second.Listening()
	for deadline := time.Now().Add(patience); !strings.Contains(second.Said(),
		following); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it does not follow:\n%s", second.Said())
		}
	}
	expect.Contains(t, second.Said(), fmt.Sprint("process ", os.Getpid()),
		"it does not name the process that writes the log")
	mine, yours := first.Stats(t.Context(), "home"), learning{}
	first.At(url)
	for deadline := time.Now().Add(patience); yours.tally != mine.tally &&
		time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		yours = first.Stats(t.Context(), "home")
	}
	if yours.tally != mine.tally || mine.Decisions == 0 {
		t.Errorf("the second service has %+v, the first %+v", yours, mine)
	}
	second.Stop()
	second = program.Serve(t, file, "--take-over")
	second.Listening()
	first.await(following)
	second.Stop()
	first.await(leading)
	first.stop()
	expect.Error(t, <-first.ended, nil, "the first service ended with")
	first.IsIn(nats.URL())
}

// ends waits until the service ends by itself, with the expected error.
func (v *busy) ends(want func(error) bool) {
	v.Helper()
	if err := <-v.ended; !want(err) {
		v.Errorf("the service ended with %v", err)
	}
	v.stop()
	v.Leave()
}
