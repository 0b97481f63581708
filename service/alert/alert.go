// Package alert tells a webhook when a problem of the service begins and when it ends.
//
// Messages follow Standard Webhooks (https://www.standardwebhooks.com): they are signed, and tried until the receiver
// takes them. A [Sender] compares open problems with the problems that the receiver knows, so it queues nothing twice,
// a problem that comes and goes rings once, and a restart continues where the last process ended.
package alert

import (
	"bytes"
	"cmp"
	"context"
	cryptorand "crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"vitrine/internal/replace"
	"vitrine/internal/wait"
)

// Problem is something that an operator should know.
type Problem struct {
	Placement string // "" for a problem of the service
	Level     string // "bad" or "warning"
	Key       string // tells the problem from others of the placement while its text changes
	Text      string
	Logged    bool // whoever found it logs it
}

// NumBad returns how many problems are bad.
func NumBad(problems []Problem) (n int) {
	for _, p := range problems {
		if p.Level == "bad" {
			n++
		}
	}
	return n
}

// Options configure a sender.
type Options struct {
	URL    string
	Secret string       // a file with a secret "whsec_…" a line; each signs
	Level  string       // "warning" also sends warnings; "" and "bad" send only bad problems
	File   string       // remembers between processes what the receiver was told; its directory is the service's own
	Logger *slog.Logger // nil discards

	Now func() time.Time // nil is time.Now
}

// Bounds on a sender's memory and rate.
const (
	begins    = 10 * time.Second // a problem rings after lasting this long,
	ends      = time.Minute      // and ends after being gone this long
	maxKept   = 1000             // problems; more are counted and logged only
	timeout   = 10 * time.Second // of an attempt
	minPause  = time.Second      // before the next attempt after a failure; it doubles
	maxPause  = 5 * time.Minute
	maxText   = 1000 // bytes of a problem
	lookEvery = time.Second
	room      = 8 << 10 // bytes: the file's length is a multiple, so that a full disk takes a longer text
)

// Sender sends messages to a webhook. It is safe for concurrent use. A nil Sender sends nothing.
type Sender struct {
	options Options
	client  *http.Client
	home    string // where the process ran that began the file: a container has another name at each start

	mu       sync.Mutex
	entries  map[string]*entry
	refused  map[string]int // by source: problems without room at the last observation
	stats    Stats
	failures int       // since the last success
	next     time.Time // of the next attempt, after a failure
	saved    bool      // whether the file matches the receiver's knowledge
}

// Stats are the counters of a sender.
type Stats struct {
	Delivered uint64 // messages that the receiver took
	Failed    uint64 // attempts
	Dropped   uint64 // problems beyond the number that is kept
	LastDrop  time.Time
	Waiting   int    // messages that are due
	Failure   string // of the last attempt; "" if it succeeded
	Since     time.Time
}

// entry is an open problem, or an ended one that the receiver does not know of.
type entry struct {
	Source    string    `json:"source"`
	Placement string    `json:"placement,omitempty"`
	Level     string    `json:"level"`
	Key       string    `json:"key"`
	Text      string    `json:"text"`
	Since     time.Time `json:"since"`

	told     bool      // of its beginning
	gone     time.Time // since when it does not stand; zero while it does
	others   bool      // another process tells the receiver
	attempts int
}

// file is a sender's saved state.
type file struct {
	Receiver string   `json:"receiver"` // a hash of its URL
	Home     string   `json:"home"`
	Told     []*entry `json:"told"`
}

// Open returns a sender. It reads the secret and the file, which need not exist.
func Open(o Options) (*Sender, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := CheckURL(o.URL); err != nil {
		return nil, err
	}
	if err := CheckLevel(o.Level); err != nil {
		return nil, err
	}
	if _, err := readSecrets(o.Secret); err != nil {
		return nil, fmt.Errorf("alerts.secret: %w", err)
	}
	s := &Sender{
		options: o, entries: map[string]*entry{}, refused: map[string]int{}, saved: true,
		client: &http.Client{
			Timeout:       timeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	s.home = s.here()
	s.restore()
	return s, nil
}

// CheckLevel returns an error for an unknown level.
func CheckLevel(level string) error {
	if level != "" && level != "bad" && level != "warning" {
		return fmt.Errorf("alerts.level = %q: must be \"bad\" or \"warning\"", level)
	}
	return nil
}

// CheckURL reports an address that no message can be sent to.
func CheckURL(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return errors.New("alerts.url: must be an address such as \"https://alerts.example/hook\"") // it may contain a secret
	}
	return nil
}

func (s *Sender) restore() {
	text, err := os.ReadFile(s.options.File)
	if errors.Is(err, fs.ErrNotExist) {
		s.save() // while there is room
		return
	}
	var f file
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err != nil {
		s.options.Logger.Warn("the file of delivered alerts cannot be read: every problem that still stands is "+
			"sent again", "file", s.options.File, "cause", err.Error())
		return
	}
	if f.Receiver != s.receiver() {
		return
	}
	if len(f.Told) > 0 {
		s.home = f.Home
	}
	for _, e := range f.Told {
		e.told = true
		s.entries[e.id()] = e
	}
}

// receiver names the receiver without its URL, which may hold a secret.
func (s *Sender) receiver() string { return short(s.options.URL) }

func short(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// id names the problem, the same each time that it stands and in each process.
func (e *entry) id() string { return short(e.Source, e.Placement, e.Key) }

// Source names a source of problems that belongs to this process alone, among all that send to the receiver. A later
// process with the same file has the same sources, as long as the receiver knows of a problem.
func (s *Sender) Source(what string) string {
	if s == nil {
		return what
	}
	return what + " " + s.home
}

// Here begins the text of a problem that concerns one process.
func (s *Sender) Here() string {
	if s == nil {
		return ""
	}
	return s.here() + ": "
}

// here is where the process runs: its host and its directory. Several services may run on a host.
func (s *Sender) here() string {
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown host"
	}
	dir := filepath.Dir(s.options.File)
	if whole, err := filepath.Abs(dir); err == nil {
		dir = whole
	}
	return "on " + host + " in " + dir
}

// Observe reports a source's open problems. It sends no message itself and never waits for the receiver.
func (s *Sender) Observe(source string, problems []Problem) { s.observe(source, problems, false) }

// Follow is Observe while another process tells the receiver of the source's problems. If this process takes over, it
// reports those that stand, unless it did before, and the end of those that ended lately.
func (s *Sender) Follow(source string, problems []Problem) { s.observe(source, problems, true) }

func (s *Sender) observe(source string, problems []Problem, follows bool) {
	if s == nil {
		return
	}
	now := s.options.Now().UTC()
	s.mu.Lock()
	defer s.mu.Unlock()
	standing, refused := s.note(source, problems, now)
	if s.settle(source, standing, now, follows) {
		s.save()
	}
	if follows {
		return
	}
	s.stats.Dropped += uint64(max(0, refused-s.refused[source]))
	if s.refused[source] = refused; refused > 0 {
		s.stats.LastDrop = now
	}
}

// note keeps the problems that stand, and returns their ids and how many have no room.
func (s *Sender) note(source string, problems []Problem, now time.Time) (standing map[string]bool, refused int) {
	standing = map[string]bool{}
	for _, p := range problems {
		if p.Level != "bad" && (p.Level != "warning" || s.options.Level != "warning") {
			continue
		}
		fresh := &entry{Source: source, Placement: p.Placement, Level: p.Level, Key: p.Key, Text: cut(p.Text),
			Since: now}
		id := fresh.id()
		standing[id] = true
		switch e := s.entries[id]; {
		case e == nil && len(s.entries) >= maxKept:
			refused++
		case e == nil, e.others && !e.gone.IsZero() && now.Sub(e.gone) >= ends: // the other process told its end
			s.entries[id] = fresh
		default:
			e.gone, e.Text, e.Level = time.Time{}, fresh.Text, fresh.Level
		}
	}
	return standing, refused
}

// settle notes which of a source's problems ended, and forgets those whose end needs no message. It reports whether the
// receiver knew of one of these.
func (s *Sender) settle(source string, standing map[string]bool, now time.Time, follows bool) (forgot bool) {
	for id, e := range s.entries {
		if e.Source != source {
			continue
		}
		switch {
		case standing[id]:
		case !e.told && now.Sub(e.Since) < begins, // too short to ring
			follows && !e.gone.IsZero() && now.Sub(e.gone) >= 2*ends: // the other process told its end
			delete(s.entries, id)
			forgot = forgot || e.told
		case e.gone.IsZero():
			e.gone = now
		}
		if e.others && !follows && !e.gone.IsZero() {
			e.told = true // by the other process, which may not have told its end
		}
		e.others = follows
	}
	return forgot
}

// cut shortens a text without keeping the rest of it in memory.
func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}

// Stats returns the counters.
func (s *Sender) Stats() Stats {
	if s == nil {
		return Stats{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.stats
	now := s.options.Now()
	for _, e := range s.entries {
		if e.isDue(now) {
			all.Waiting++
		}
	}
	return all
}

// isDue reports whether the receiver is to be told of the beginning or the end of a problem.
func (e *entry) isDue(now time.Time) bool {
	switch {
	case e.others:
		return false
	case !e.told:
		return now.Sub(e.Since) >= begins
	}
	return !e.gone.IsZero() && now.Sub(e.gone) >= ends
}

// Run sends what is due until ctx ends.
func (s *Sender) Run(ctx context.Context) {
	s.tick(ctx)
	for range wait.Every(ctx, lookEvery) {
		s.tick(ctx)
	}
}

// tick sends due messages, and retries a failed save: the disk may take it now.
func (s *Sender) tick(ctx context.Context) {
	for s.sendNext(ctx) {
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.saved {
		s.save()
	}
}

// Flush sends a problem with which the service ends, unless the receiver was told of it before. It makes one attempt. If
// the file cannot be written, a process that starts again and again repeats the message's id for an hour.
func (s *Sender) Flush(ctx context.Context, source string, p Problem) {
	if s == nil {
		return
	}
	s.Observe(source, []Problem{p})
	s.mu.Lock()
	now := s.options.Now().UTC()
	e := s.entries[(&entry{Source: source, Placement: p.Placement, Key: p.Key}).id()]
	if e == nil || e.told {
		s.mu.Unlock()
		return
	}
	m := messageOf(e)
	if s.save(); !s.saved {
		m.ID = idOf(m, now.Truncate(time.Hour))
	}
	s.mu.Unlock()
	s.done(e, m, s.deliver(ctx, m))
}

// sendNext sends the message that is due first, and reports whether the receiver took it. Refused messages come after
// all others and wait for the next attempt, so they hold no other message back.
func (s *Sender) sendNext(ctx context.Context) bool {
	e, m := s.due()
	if e == nil {
		return false
	}
	err := s.deliver(ctx, m)
	if ctx.Err() != nil {
		return false
	}
	s.done(e, m, err)
	return err == nil
}

func (s *Sender) due() (*entry, *Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.options.Now()
	var first *entry
	for _, e := range s.entries {
		if now.Before(s.next) && e.attempts > 0 {
			continue
		}
		if e.isDue(now) && (first == nil || cmp.Or(e.attempts-first.attempts, e.Since.Compare(first.Since),
			cmp.Compare(e.id(), first.id())) < 0) {
			first = e
		}
	}
	if first == nil {
		return nil, nil
	}
	return first, messageOf(first)
}

// done notes what became of an attempt.
func (s *Sender) done(e *entry, m *Message, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.options.Now()
	if err != nil {
		e.attempts++
		s.failures++
		s.stats.Failed++
		if s.stats.Failure == "" {
			s.stats.Since = now
		}
		s.stats.Failure = err.Error()
		pause := min(minPause<<min(s.failures-1, 20), maxPause)
		pause = pause/2 + rand.N(pause/2+1)
		s.next = now.Add(pause)
		s.options.Logger.Warn("an alert was not delivered", "message", m.ID, "attempts", e.attempts, "again",
			pause.Round(time.Millisecond).String(), "cause", err.Error())
		return
	}
	s.stats.Delivered++
	s.stats.Failure, s.failures, s.next, e.attempts = "", 0, time.Time{}, 0
	s.options.Logger.Info("alert", "message", m.ID, "type", m.Type, "placement", e.Placement, "text", e.Text)
	if m.Type == Ended {
		if !e.gone.IsZero() {
			delete(s.entries, e.id())
		} else { // it stands again since the message was made
			e.told, e.Since = false, now.UTC()
		}
	} else {
		e.told = true
	}
	s.save()
}

// save writes what the receiver was told. The caller holds mu.
func (s *Sender) save() {
	f := file{Receiver: s.receiver(), Home: s.home, Told: []*entry{}}
	for _, e := range s.entries {
		if e.told {
			f.Told = append(f.Told, e)
		}
	}
	slices.SortFunc(f.Told, func(a, b *entry) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.id(), b.id()))
	})
	text, err := json.Marshal(f)
	if err == nil {
		text = append(text, bytes.Repeat([]byte(" "), room-len(text)%room)...)
		if err = replace.Private(s.options.File, text); err != nil && overwrite(s.options.File, text) == nil {
			err = nil
		}
	}
	if err != nil && s.saved {
		s.options.Logger.Warn("the file of delivered alerts cannot be written: a restart sends those alerts again",
			"cause", err.Error())
	}
	s.saved = err == nil
}

// overwrite writes a text over a file that is at least as long: even a full disk takes that.
func overwrite(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && info.Size() < int64(len(text)) {
		err = errors.New("the file is shorter")
	}
	if err == nil {
		_, err = f.Write(append(text, bytes.Repeat([]byte(" "), int(info.Size())-len(text))...))
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// Values of [Message.Type].
const (
	Began = "problem.began"
	Ended = "problem.ended"
	Test  = "test"
)

// Message is the body of a message.
type Message struct {
	// the header webhook-id: the same for each attempt, and within an hour for what processes say last that cannot save it
	ID string `json:"-"`

	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"` // when it began or ended
	Data      Data      `json:"data"`
}

// Data is the problem that a [Message] tells of.
type Data struct {
	Problem   string     `json:"problem,omitempty"` // names it: its end carries the same name, and so does its return
	Placement string     `json:"placement,omitempty"`
	Level     string     `json:"level,omitempty"`
	Text      string     `json:"text"`
	Since     *time.Time `json:"since,omitempty"`
}

func messageOf(e *entry) *Message {
	m := &Message{Type: Began, Timestamp: e.Since, Data: Data{Problem: e.id(), Placement: e.Placement, Level: e.Level,
		Text: e.Text, Since: new(e.Since)}}
	if e.told {
		m.Type, m.Timestamp = Ended, e.gone
	}
	m.ID = idOf(m, e.Since)
	return m
}

// idOf makes the id of a message about a problem that began at a time.
func idOf(m *Message, since time.Time) string {
	return "msg_" + short(m.Type, m.Data.Problem, since.Format(time.RFC3339Nano))
}

// Try sends a test message at once and returns the error. The queue stays as it is.
func (s *Sender) Try(ctx context.Context) error {
	now := s.options.Now().UTC()
	return s.deliver(ctx, &Message{
		ID: "msg_" + cryptorand.Text(), Type: Test, Timestamp: now,
		Data: Data{Text: "This is a test: Vitrine can reach you."},
	})
}
