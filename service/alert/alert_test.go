package alert

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// desk is a sender, its clock, and the receiver that it sends to.
type desk struct {
	*testing.T
	*Sender
	Options
	now time.Time
	log strings.Builder

	mu     sync.Mutex
	status int // of the receiver's answers
	got    []string
	ids    []string
}

func newDesk(t *testing.T) *desk {
	d := &desk{T: t, now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), status: 204}
	receiver := httptest.NewServer(d)
	t.Cleanup(receiver.Close)
	dir := t.TempDir()
	d.Options = Options{
		URL: receiver.URL + "/hook/of-a-secret", Secret: filepath.Join(dir, "secret"),
		File: filepath.Join(dir, "alerts.json"),
		Now:  func() time.Time { return d.now }, Logger: slog.New(slog.NewTextHandler(&d.log, nil)),
	}
	fatal.If(t, os.WriteFile(d.Secret, []byte(secret+"\n"), 0o600))
	d.restart()
	return d
}

// ServeHTTP verifies the signature by the words of the standard, without the code of the sender.
func (d *desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		d.Error(err)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		d.Error(err)
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte(r.Header.Get("webhook-id") + "." + r.Header.Get("webhook-timestamp") + "."))
	h.Write(body)
	want := "v1," + base64.StdEncoding.EncodeToString(h.Sum(nil))
	if got := r.Header.Get("webhook-signature"); got != want {
		d.Errorf("the signature is %s, want %s", got, want)
	}
	if got, want := r.Header.Get("webhook-timestamp"), fmt.Sprint(d.now.Unix()); got != want {
		d.Errorf("the timestamp is %s, want %s", got, want)
	}
	var m Message
	if err := json.Unmarshal(body, &m); err != nil {
		d.Error(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.status/100 == 2 {
		d.got = append(d.got, strings.Join(strings.Fields(m.Type+" "+m.Data.Placement+" "+m.Data.Text), " "))
	}
	d.ids = append(d.ids, r.Header.Get("webhook-id"))
	if d.status/100 == 3 {
		w.Header().Set("Location", "/elsewhere")
	}
	w.WriteHeader(d.status)
}

// restart begins with the file's contents.
func (d *desk) restart() {
	d.Helper()
	var err error
	if d.Sender, err = Open(d.Options); err != nil {
		d.Fatal(err)
	}
}

// after lets time pass, with the same problems, and sends what is due.
func (d *desk) after(t time.Duration, problems ...Problem) {
	d.now = d.now.Add(t)
	d.Observe("log", problems)
	d.tick(d.Context())
}

// heard checks what the receiver was told since the last call.
func (d *desk) heard(want ...string) {
	d.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if fmt.Sprint(d.got) != fmt.Sprint(want) {
		d.Errorf("the receiver was told %q, want %q", d.got, want)
	}
	d.got = nil
}

var (
	fire    = Problem{Placement: "home", Level: "bad", Key: "fire", Text: "it burns"}
	smoke   = Problem{Placement: "home", Level: "warning", Key: "smoke", Text: "it smells"}
	noWater = Problem{Level: "bad", Key: "water", Text: "no water"}
)

// A problem of a process ends for the receiver also if the next process has another place: a new name of the host, or of
// the directory.
func TestProcessMoves(t *testing.T) {
	d := newDesk(t)
	watch := func(problems ...Problem) {
		for range 3 {
			d.Observe(d.Source("log"), problems)
			d.now = d.now.Add(time.Minute)
		}
		for d.sendNext(d.Context()) {
		}
	}
	watch(noWater)
	d.heard("problem.began no water")
	moved := filepath.Join(t.TempDir(), "alerts.json")
	fatal.If(t, os.Rename(d.File, moved))
	d.File = moved
	d.restart()
	watch(noWater)
	d.heard()
	watch()
	d.heard("problem.ended no water")
	expect.Contains(t, d.Here(), filepath.Dir(moved), "it runs")
}

// The vector is the one of the standard's documentation.
func TestSignature(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	fatal.If(t, os.WriteFile(path, []byte(secret), 0o600))
	secrets, err := readSecrets(path)
	fatal.If(t, err)
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	expect.Equal(t, sign(secrets, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`)), want)
	fatal.If(t, os.WriteFile(path, []byte(secret+"\nwhsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n"), 0o600))
	if secrets, err = readSecrets(path); err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(sign(secrets, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330",
		[]byte(`{"test": 2432232314}`))); len(got) != 2 || got[0] != want || got[1] == want {
		t.Errorf("two secrets sign %s", got)
	}
	for _, bad := range []string{"", "\n", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_c2hvcnQ=", "whsec_%%%"} {
		fatal.If(t, os.WriteFile(path, []byte(bad), 0o600))
		if _, err := readSecrets(path); err == nil || strings.Contains(err.Error(), "MfKQ") {
			t.Errorf("the secret %q: %v", bad, err)
		}
	}
}

// A problem rings after a while, and once more after being gone for a while; one that comes and goes rings no more.
func TestTransitions(t *testing.T) {
	d := newDesk(t)
	d.after(0, fire, smoke)
	d.after(begins-1, fire, smoke)
	d.heard()
	d.after(1, fire, smoke)
	d.heard("problem.began home it burns")
	changed := fire
	changed.Text = "it burns brightly"
	d.after(time.Hour, changed)
	d.heard()
	for range 100 {
		d.after(ends-begins, noWater)
		d.after(begins-1, changed)
	}
	d.heard()
	d.after(1)
	d.after(ends - 1)
	d.heard()
	d.after(1)
	d.heard("problem.ended home it burns brightly")
	d.after(ends)
	d.after(ends, fire)
	d.after(begins, fire)
	d.heard("problem.began home it burns")
	if s := d.Stats(); s.Delivered != 3 || s.Failed != 0 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
	d.Level = "warning"
	d.restart()
	d.after(0, fire, smoke)
	d.after(begins, fire, smoke)
	d.heard("problem.began home it smells")
}

// A receiver that is away gets each message later, once, in the order of the problems, with the same id each time;
// attempts become rare.
func TestRetries(t *testing.T) {
	d := newDesk(t)
	d.status = 500
	d.after(0, fire)
	d.after(begins, fire)
	begun, attempts := d.now, 0
	for d.now.Sub(begun) < 2*time.Hour {
		d.after(time.Second, fire)
	}
	attempts = len(d.ids)
	if attempts < 24 || attempts > 70 { // 1, 2, 4 … 256 s, then 150 to 300 s
		t.Errorf("%d attempts in two hours", attempts)
	}
	for _, id := range d.ids {
		if id != d.ids[0] || id == "" {
			t.Fatalf("the message has the ids %q", d.ids)
		}
	}
	s := d.Stats()
	if s.Failed != uint64(attempts) || s.Waiting != 1 || s.Delivered != 0 ||
		!strings.Contains(s.Failure, "answered 500") || !s.Since.Equal(begun) {
		t.Errorf("%+v", s)
	}
	if !strings.Contains(d.log.String(), "an alert was not delivered") ||
		strings.Contains(d.log.String(), "of-a-secret") {
		t.Errorf("the log: %s", d.log.String())
	}
	d.after(0, fire, noWater) // a new problem does not wait for the attempts of another
	d.after(begins, fire, noWater)
	if len(d.ids) != attempts+1 || d.ids[attempts] == d.ids[0] {
		t.Errorf("%d attempts after the new problem", len(d.ids)-attempts)
	}
	d.status = 204
	d.after(maxPause) // and both have ended
	d.heard("problem.began no water", "problem.began home it burns")
	d.after(ends)
	d.heard("problem.ended home it burns", "problem.ended no water")
	if s := d.Stats(); s.Waiting != 0 || s.Failure != "" || s.Delivered != 4 {
		t.Errorf("%+v", s)
	}
}

// The receiver's knowledge survives a restart; unsent messages are sent then.
func TestRestart(t *testing.T) {
	d := newDesk(t)
	d.after(0, fire)
	d.after(begins, fire)
	d.heard("problem.began home it burns")
	if info, err := os.Stat(d.File); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	d.restart()
	for range 10 {
		d.after(begins, fire)
	}
	d.heard()
	d.status = 503
	d.after(0, fire, noWater)
	d.after(begins, fire, noWater)
	d.restart()
	d.status = 204
	d.after(0, noWater)
	d.after(ends, noWater)
	d.heard("problem.ended home it burns", "problem.began no water")
	d.restart()
	d.after(ends, noWater)
	d.heard()

	fatal.If(t, os.WriteFile(d.File, []byte("{"), 0o600))
	d.restart() // with a damaged file it rings again rather than not at all
	d.after(0, noWater)
	d.after(begins, noWater)
	d.heard("problem.began no water")
	other := d.URL
	d.URL += "/other"
	d.restart() // another receiver knows nothing
	d.after(0, noWater)
	d.after(begins, noWater)
	d.heard("problem.began no water")
	d.URL = other
}

// A process without a source is silent about it, because another process may look after it.
func TestSources(t *testing.T) {
	d := newDesk(t)
	d.after(0, fire, noWater)
	d.after(begins, fire, noWater)
	d.heard("problem.began no water", "problem.began home it burns")
	d.Observe("other", []Problem{fire})
	d.after(begins, fire, noWater)
	d.heard("problem.began home it burns")
	d.Observe("other", nil)
	d.after(0, smoke)
	d.Follow("other", nil)
	d.Follow("log", []Problem{fire})
	d.now = d.now.Add(time.Hour)
	for d.sendNext(t.Context()) {
	}
	d.heard()
	d.after(0, fire) // it looks after the source again, and knows what it told
	d.after(ends, fire)
	d.heard("problem.ended no water")
}

// A process that takes a source over reports the problems that stand, and the ends that the process before may not have
// reported.
func TestTakesOver(t *testing.T) {
	follow := func(d *desk, span time.Duration, problems ...Problem) {
		for end := d.now.Add(span); d.now.Before(end); {
			d.now = d.now.Add(time.Second)
			d.Follow("log", problems)
			for d.sendNext(t.Context()) {
			}
		}
	}
	lead := func(d *desk, span time.Duration, problems ...Problem) {
		for end := d.now.Add(span); d.now.Before(end); {
			d.after(time.Second, problems...)
		}
	}
	const long = 5 * time.Minute

	d := newDesk(t) // it followed all the time
	follow(d, long, fire)
	d.heard()
	lead(d, time.Second, fire)
	d.heard("problem.began home it burns")

	d = newDesk(t) // the other process died before it told the end
	follow(d, long, fire)
	follow(d, ends/2)
	lead(d, ends/2-time.Second)
	d.heard()
	lead(d, 3*time.Second)
	d.heard("problem.ended home it burns")
	lead(d, long, fire)
	d.heard("problem.began home it burns")

	d = newDesk(t) // a problem that ended long ago is the other's
	follow(d, long, fire)
	follow(d, long)
	lead(d, long)
	d.heard()

	for _, gone := range []time.Duration{ends + begins, long} { // while another process led, one ended and began again
		d = newDesk(t)
		lead(d, long, fire)
		d.heard("problem.began home it burns")
		follow(d, long, fire)
		follow(d, gone)
		if gone == long {
			d.restart()
		}
		follow(d, begins, fire)
		lead(d, long, fire)
		d.heard("problem.began home it burns")
		if d.ids[0] == d.ids[1] {
			t.Error("the problem rings with the id of a message that the receiver knows")
		}
	}

	d = newDesk(t) // one that never ended rings once
	lead(d, long, fire)
	follow(d, long, fire)
	follow(d, ends/2)
	lead(d, long, fire)
	d.heard("problem.began home it burns")
}

// Services on one host that send to one receiver do not end each other's problems; a restart keeps the names.
func TestTwoServicesOnAHost(t *testing.T) {
	d := newDesk(t)
	o := d.Options
	o.File = filepath.Join(t.TempDir(), "alerts.json")
	other, again := fatal.Or(Open(o))(t), fatal.Or(Open(d.Options))(t)
	if d.Source("log") == other.Source("log") || d.Here() == other.Here() || d.Source("log") != again.Source("log") {
		t.Errorf("%q and %q, and after a restart %q", d.Source("log"), other.Source("log"), again.Source("log"))
	}
}

// A redirect is a failure, because the message would go elsewhere; so is a receiver that does not answer.
func TestReceiverOfNoUse(t *testing.T) {
	d := newDesk(t)
	for _, status := range []int{301, 302, 307, 308} {
		d.status = status
		expect.Part(d.Try(t.Context()))(t, "redirects are not followed", status)
	}
	expect.Equal(t, len(d.ids), 4, "requests for 4 messages")
	hangs := make(chan bool)
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hangs }))
	defer silent.Close()
	defer close(hangs)
	d.URL = silent.URL
	d.restart()
	d.client.Timeout = 50 * time.Millisecond
	d.after(0, fire)
	d.after(begins, fire)
	if s := d.Stats(); s.Failed != 1 || s.Waiting != 1 {
		t.Errorf("of a receiver that hangs: %+v", s)
	}
	expect.Refused(d.Try(t.Context()))(t, "a receiver that hangs has taken a message")
	d.URL = "http://127.0.0.1:1/of-a-secret"
	d.restart()
	if err := d.Try(t.Context()); err == nil || strings.Contains(err.Error(), "of-a-secret") {
		t.Errorf("nobody listens: %v", err)
	}
}

// The memory is bounded, and dropped problems are counted.
func TestBoundedMemory(t *testing.T) {
	d := newDesk(t)
	var many []Problem
	for i := range maxKept + 7 {
		many = append(many, Problem{Placement: fmt.Sprint(i), Level: "bad", Key: "fire",
			Text: strings.Repeat("x", 2*maxText)})
	}
	d.Follow("log", many) // reports of another process are not dropped here
	if s := d.Stats(); s.Dropped != 0 || !s.LastDrop.IsZero() {
		t.Errorf("%+v", s)
	}
	for range 3 { // each counts once
		d.Observe("log", many)
	}
	bytes := 0
	for _, e := range d.entries {
		bytes += len(e.Text)
	}
	if s := d.Stats(); len(d.entries) != maxKept || s.Dropped != 7 || !s.LastDrop.Equal(d.now) || bytes > maxKept*(maxText+3) {
		t.Errorf("%d problems of %d bytes are kept, %+v", len(d.entries), bytes, s)
	}
}

// The last words of a service that ends are sent once.
func TestFlush(t *testing.T) {
	d := newDesk(t)
	d.Flush(t.Context(), "log", noWater)
	d.heard("problem.began no water")
	d.restart()
	d.Flush(t.Context(), "log", noWater)
	d.heard()
	d.after(0)
	d.after(ends)
	d.heard("problem.ended no water")
	var none *Sender
	none.Observe("log", nil)
	none.Follow("log", nil)
	none.Flush(t.Context(), "log", noWater)
}

// If no file can be made, the receiver's knowledge is saved once there is room. A service that starts and ends again and
// again before that repeats one message, by which the receiver knows it.
func TestUnsaved(t *testing.T) {
	d := newDesk(t)
	dir := filepath.Join(filepath.Dir(d.File), "later")
	d.File = filepath.Join(dir, "alerts.json")
	for range 3 {
		d.restart()
		d.Flush(t.Context(), "log", noWater)
		d.now = d.now.Add(time.Minute)
	}
	if len(d.ids) != 3 || d.ids[0] != d.ids[2] {
		t.Errorf("the messages are %q", d.ids)
	}
	d.now = d.now.Add(time.Hour)
	d.restart()
	d.Flush(t.Context(), "log", noWater)
	if d.ids[3] == d.ids[0] {
		t.Errorf("an hour later the messages are %q", d.ids)
	}
	d.got = nil
	fatal.If(t, os.Mkdir(dir, 0o700))
	d.tick(t.Context())
	fatal.Or(os.Stat(d.File))(t)
	d.restart()
	d.after(0)
	d.after(ends)
	d.heard("problem.ended no water")
}

// A full disk refuses another file, but takes a new text in the old file.
func TestFullDisk(t *testing.T) {
	d := newDesk(t)
	dir := filepath.Dir(d.File)
	long := filepath.Join(dir, strings.Repeat("a", 250)) // a temporary file's longer name is refused, as by a full disk
	fatal.If(t, os.Rename(d.File, long))
	d.File = long
	for range 2 {
		d.restart()
		d.Flush(t.Context(), "log", noWater)
		d.heard("problem.began no water")
		d.restart()
		d.after(0)
		d.after(ends)
		d.heard("problem.ended no water")
	}
	if d.ids[0] == d.ids[2] {
		t.Errorf("the messages are %q", d.ids)
	}
	before := fatal.Or(os.ReadFile(long))(t)
	for i := range 30 { // more than fits
		d.Flush(t.Context(), "log", Problem{Level: "bad", Key: fmt.Sprint(i), Text: strings.Repeat("x", maxText)})
	}
	if after := fatal.Or(os.ReadFile(long))(t); len(after) != len(before) || json.Unmarshal(after, new(file)) != nil {
		t.Errorf("the file is %q", after)
	}
}

func TestRun(t *testing.T) {
	d := newDesk(t)
	d.Observe("log", []Problem{fire})
	d.now = d.now.Add(begins)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan bool)
	go func() { d.Sender.Run(ctx); close(ended) }()
	for {
		d.mu.Lock()
		n := len(d.got)
		d.mu.Unlock()
		if n > 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	stop()
	<-ended
	d.heard("problem.began home it burns")
}

func TestConfiguration(t *testing.T) {
	d := newDesk(t)
	for _, bad := range []func(o *Options){
		func(o *Options) { o.URL = "ftp://alerts.example" },
		func(o *Options) { o.URL = "alerts.example/hook" },
		func(o *Options) { o.Level = "note" },
		func(o *Options) { o.Secret += "x" },
	} {
		o := d.Options
		bad(&o)
		expect.Refused(Open(o))(t, o)
	}
}
