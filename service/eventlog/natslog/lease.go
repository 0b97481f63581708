package natslog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"vitrine/service/eventlog"
)

// lease names the process that should write the log: its leader. The holder renews it, and
// another process takes the log only when the holder does not. The lease prevents two processes from taking turns. It
// does not protect data: the sequence in each message does.
//
// It is a key in a bucket beside the stream. A lease is free if a process observes no renewal for the time that the
// lease lasts; no two clocks are compared, and a time in which the bucket cannot be read does not count.
type lease struct {
	bucket   jetstream.KeyValue
	value    []byte
	revision uint64
	renewed  atomic.Pointer[instant] // when the last renewal that succeeded was sent
}

const leaseKey = "writer"

// renewal is the interval of renewals, and silence the time after which a lease that is not renewed is free.
var renewal, silence = 300 * time.Millisecond, time.Second

// Holder is the content of a lease: the process that has it.
type Holder struct {
	Process string    `json:"process"`
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Since   time.Time `json:"since"`
	Address string    `json:"address,omitempty"`  // at which it serves, "" if it does not say
	Lasts   int64     `json:"lasts_ms,omitempty"` // milliseconds for which the lease holds after a renewal
}

func (h Holder) String() string {
	text := fmt.Sprintf("process %d on %s", h.PID, h.Host)
	if h.Address != "" {
		text += " at " + h.Address
	}
	return text + ", since " + h.Since.Format(time.DateTime)
}

// silence is how long a lease holds without a renewal.
func (h *Holder) silence() time.Duration {
	return time.Duration(h.Lasts) * time.Millisecond
}

// openLease opens the bucket of the lease. It is made if mayMake, and otherwise ErrLease if it is missing.
func (s *Store) openLease(ctx context.Context, mayMake bool) error {
	name := s.options.Stream + "-lease"
	bucket, err := ask(ctx, s, func(ctx context.Context) (jetstream.KeyValue, error) {
		if mayMake {
			return s.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: name, Replicas: s.replicas})
		}
		return s.js.KeyValue(ctx, name)
	})
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return fmt.Errorf("%w: the bucket %q of %s is missing, so another process may write the log unseen: stop all, and start one with --take-over, which makes it again",
			eventlog.ErrLease, name, s.where())
	}
	if err != nil {
		return fmt.Errorf("natslog: the lease of %s: %w", s.where(), err)
	}
	s.lease = &lease{bucket: bucket}
	return nil
}

// take waits until the lease is free, and takes it. A lease that is renewed is ErrAlive, unless it waits for that to end.
func (l *lease) take(ctx context.Context, s *Store, waits bool) error {
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown host"
	}
	mine := Holder{Process: s.options.Process, Host: host, PID: os.Getpid(), Since: time.Now().UTC(), Address: s.options.Address, Lasts: s.options.Lease.Milliseconds()}
	value, err := json.Marshal(mine)
	if err != nil {
		return err
	}
	var seen quiet
	begin := time.Now() // of the attempts to take it
	for answer := shortAttempt; ; {
		revision, held, err := l.look(ctx, s)
		if err != nil {
			return fmt.Errorf("natslog: the lease of %s: %w", s.where(), err)
		}
		s.holder.Store(&held)
		renewed := seen.observe(revision, time.Now())
		if renewed {
			begin = time.Now()
		}
		switch {
		case renewed && !waits && !s.options.TakeOver:
			return fmt.Errorf("%w: %s writes %s", eventlog.ErrAlive, held, s.where())
		case revision == 0 || held.Process == s.options.Process || s.options.TakeOver || seen.lasted > held.silence():
			l.value = value
			err := l.put(ctx, s, revision, answer)
			if err == nil {
				s.holder.Store(&mine)
				if s.options.Standby && revision != 0 && held.Process != s.options.Process && seen.lasted <= held.silence() {
					return wait(ctx, held.silence()) // the holder of before knows by then, or does not trust its lease
				}
				return nil
			}
			if !isWrongRevision(err) && (!isUnanswered(err) || time.Since(begin) > s.options.Patience) {
				return fmt.Errorf("natslog: the lease of %s: %w", s.where(), err)
			}
			if isUnanswered(err) { // but it can be read: a server that is cut off answers with what it has
				s.turn(begin)
			}
			answer = longer(answer)
		}
		if err := wait(ctx, pause); err != nil {
			return err
		}
	}
}

// quiet measures how long a lease has not been renewed.
type quiet struct {
	revision uint64
	at       time.Time     // of the last look
	lasted   time.Duration // the time between looks that saw the same revision
}

// observe notes what a look has seen, and reports whether the lease was renewed since the last one. If the bucket could
// not be read for a while, its holder could not renew it.
func (q *quiet) observe(revision uint64, now time.Time) (renewed bool) {
	if renewed = q.revision != 0 && revision != 0 && revision != q.revision; renewed || q.revision == 0 {
		q.lasted = 0
	} else {
		q.lasted += min(now.Sub(q.at), renewal)
	}
	q.revision, q.at = revision, now
	return renewed
}

// Leader returns the process that has the lease, as it was last seen. It returns the zero Holder for a
// log in a directory, and while no process has the lease.
func (s *Store) Leader() Holder {
	if h := s.holder.Load(); h != nil {
		return *h
	}
	return Holder{}
}

// look returns the revision of the lease and who has it; revision 0 if nobody does.
func (l *lease) look(ctx context.Context, s *Store) (revision uint64, held Holder, err error) {
	entry, err := ask(ctx, s, func(ctx context.Context) (jetstream.KeyValueEntry, error) {
		entry, err := l.bucket.Get(ctx, leaseKey)
		if err != nil && s.lacks(ctx, l.bucket.Bucket()) {
			err = jetstream.ErrBucketNotFound
		}
		return entry, err
	})
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return 0, Holder{}, nil
	}
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return 0, Holder{}, fmt.Errorf("%w: its bucket %q was removed: the leader makes it again, or a process that is started with --take-over", eventlog.ErrLease, l.bucket.Bucket())
	}
	if err != nil {
		return 0, Holder{}, err
	}
	if err := json.Unmarshal(entry.Value(), &held); err != nil {
		return 0, Holder{}, fmt.Errorf("%w: it is not one: %w: delete the key %q of the bucket %q", eventlog.ErrLease, err, leaseKey, l.bucket.Bucket())
	}
	return entry.Revision(), held, nil
}

// put writes the lease after a revision, 0 for none, and waits for the answer. It does not retry: a copy
// would be refused because of the first message.
func (l *lease) put(ctx context.Context, s *Store, after uint64, wait time.Duration) error {
	sent := s.now()
	revision, err := within(ctx, wait, func(ctx context.Context) (uint64, error) {
		if after == 0 {
			return l.bucket.Create(ctx, leaseKey, l.value)
		}
		return l.bucket.Update(ctx, leaseKey, l.value, after)
	})
	if err != nil {
		return err
	}
	l.revision = revision
	l.renewed.Store(&sent)
	return nil
}

// Confirm returns an error if this store may not be the log's writer any more. While its lease lasts nobody else has acknowledged
// anything. Afterwards, as in a process that was frozen, the log itself is asked.
func (s *Store) Confirm(ctx context.Context) error {
	if since := s.lease.renewed.Load(); since != nil && s.Leads() {
		if s.now().since(*since) < s.options.Lease {
			return nil
		}
	}
	return s.confirm(ctx)
}

// instant is a time by two clocks: the monotonic clock stands still while a machine sleeps, and the time of day may be set.
type instant struct{ steady, day time.Time }

func (s *Store) now() instant {
	steady, day := s.options.Now()
	return instant{steady, day}
}

// clocks returns both times of the system.
func clocks() (steady, day time.Time) {
	t := time.Now()
	return t, t.Round(0)
}

// since returns the time since another instant, by the clock that shows more.
func (i instant) since(earlier instant) time.Duration {
	return max(i.steady.Sub(earlier.steady), i.day.Sub(earlier.day))
}

// isWrongRevision reports whether a lease was not written because it has another revision.
func isWrongRevision(err error) bool {
	var refused *jetstream.APIError
	return errors.Is(err, jetstream.ErrKeyExists) || errors.As(err, &refused) && isWrongLast(refused)
}

// lacks reports whether the servers know that there is no bucket of a name.
func (s *Store) lacks(ctx context.Context, bucket string) bool {
	_, err := s.js.KeyValue(ctx, bucket)
	return errors.Is(err, jetstream.ErrBucketNotFound)
}

// renew writes the lease again. It reports false if another process has it. A bucket that was removed is made again.
func (l *lease) renew(ctx context.Context, s *Store) bool {
	err := l.put(ctx, s, l.revision, shortAttempt)
	if err == nil {
		return true
	}
	if !isWrongRevision(err) { // a server that is away says nothing about the lease
		if s.lacks(ctx, l.bucket.Bucket()) {
			s.options.Logger.Error("the bucket of the lease was removed: it is made again, and nobody could take the log over meanwhile", "bucket", l.bucket.Bucket())
			l.revision = 0
			_, _ = s.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: l.bucket.Bucket(), Replicas: s.replicas}) // the next renewal shows it
		}
		return true
	}
	// The answer to our last renewal may have been lost, or the bucket was removed.
	revision, held, err := l.look(ctx, s)
	switch {
	case err != nil:
		return true
	case revision != 0 && held.Process != s.options.Process:
		return false
	}
	l.revision = revision
	return true
}

// hold renews a lease that was taken until stop is called, which waits for that. A process that needs longer than a lease lasts to claim
// the log would lose it to the next one.
func (l *lease) hold(s *Store) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for wait(ctx, renewal) == nil {
			l.renew(ctx, s) // the log shows whether another process has it
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// release frees the lease, so that the next process does not wait.
func (l *lease) release() {
	ctx, cancel := context.WithTimeout(context.Background(), shortAttempt)
	defer cancel()
	_ = l.bucket.Delete(ctx, leaseKey, jetstream.LastRevision(l.revision)) // otherwise it ends by silence
}
