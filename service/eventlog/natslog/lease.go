package natslog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"vitrine/internal/wait"
	"vitrine/service/eventlog"
)

// lease names the process that should write the log: its leader. The holder renews the lease, and another process takes
// over the log only if the holder stops renewing. The lease keeps two processes from taking turns. It does not protect
// data: the sequence in each message does.
//
// It is a key in a bucket next to the stream. A process considers the lease free once it has observed no renewal for
// the lease's duration. It never compares two machines' clocks, and does not count time in which it cannot read the
// bucket.
type lease struct {
	bucket   jetstream.KeyValue
	value    []byte
	revision uint64
	renewed  atomic.Pointer[instant] // send time of the last successful renewal
}

const leaseKey = "writer"

// renewal is the interval of renewals, and silence the time after which an unrenewed lease is free.
var renewal, silence = 300 * time.Millisecond, time.Second

// Holder is the content of a lease: the process that holds it.
type Holder struct {
	Process string    `json:"process"`
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Since   time.Time `json:"since"`
	Address string    `json:"address,omitempty"`  // where it serves, "" if unknown
	Lasts   int64     `json:"lasts_ms,omitempty"` // milliseconds that the lease holds after a renewal
	Waits   int64     `json:"waits_ms,omitempty"` // milliseconds until earlier holders cannot trust the lease any more
}

func (h Holder) String() string {
	text := fmt.Sprintf("process %d on %s", h.PID, h.Host)
	if h.Address != "" {
		text += " at " + h.Address
	}
	return text + ", since " + h.Since.Format(time.DateTime)
}

func (h Holder) encode() []byte {
	text, err := json.Marshal(h)
	if err != nil {
		panic(err) // text and numbers
	}
	return text
}

// silence returns how long a lease holds without a renewal.
func (h *Holder) silence() time.Duration {
	return time.Duration(h.Lasts) * time.Millisecond
}

// openLease opens the lease's bucket. If it is missing, openLease creates it or, unless mayMake is set, returns
// ErrLease.
func (s *Store) openLease(ctx context.Context, mayMake bool) error {
	name := s.options.Stream + "-lease"
	var bucket jetstream.KeyValue
	var err error
	if mayMake {
		config := jetstream.KeyValueConfig{Bucket: name, Replicas: s.replicas}
		bucket, err = askFor(ctx, s, s.js.CreateOrUpdateKeyValue, config)
	} else {
		bucket, err = askFor(ctx, s, s.js.KeyValue, name)
	}
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return fmt.Errorf("%w: the bucket %q of %s is missing, so another process may write the log unseen: stop "+
			"all, and start one with --take-over, which makes it again",
			eventlog.ErrLease, name, s.where())
	}
	if err != nil {
		return fmt.Errorf("natslog: the lease of %s: %w", s.where(), err)
	}
	s.lease = &lease{bucket: bucket}
	return nil
}

// take waits until the lease is free, and takes it. If another process renews it, take keeps waiting if waits is set,
// and otherwise returns ErrAlive.
func (l *lease) take(ctx context.Context, s *Store, waits bool) error {
	mine := s.self()
	var seen quiet
	begin := time.Now() // start of the attempts
	for answer := shortAttempt; ; {
		sent := s.now().steady
		revision, held, err := l.look(ctx, s)
		if err != nil {
			return fmt.Errorf("natslog: the lease of %s: %w", s.where(), err)
		}
		s.took(sent)
		s.holder.Store(&held)
		renewed := seen.observe(revision, time.Now())
		if renewed {
			begin = time.Now()
		}
		isMine := held.Process == s.options.Process
		switch isFree := revision == 0 || isMine || seen.lasted > held.silence(); {
		case renewed && !waits && !s.options.TakeOver:
			return fmt.Errorf("%w: %s writes %s", eventlog.ErrAlive, held, s.where())
		case isFree || s.options.TakeOver:
			mine.Waits = max(mine.Waits, held.Waits) // also its own, if the answer to an earlier attempt was lost
			if !isFree {
				mine.Waits = max(mine.Waits, held.Lasts)
			}
			l.value = mine.encode()
			err := l.put(ctx, s, revision, answer)
			if err == nil {
				s.holder.Store(&mine)
				return l.await(ctx, s, mine)
			}
			if !isWrongRevision(err) && (!isUnanswered(err) || time.Since(begin) > s.options.Patience) {
				return fmt.Errorf("natslog: the lease of %s: %w", s.where(), refused(err))
			}
			if isUnanswered(err) { // yet it can be read: a server that is cut off answers from its own data
				s.turn(begin)
			}
			answer = longer(answer)
		}
		if err := wait.For(ctx, pause); err != nil {
			return err
		}
	}
}

// await keeps the lease until no process from which it was taken trusts it any more.
func (l *lease) await(ctx context.Context, s *Store, mine Holder) error {
	if !s.options.Standby || mine.Waits == 0 {
		return nil
	}
	stop := l.hold(s)
	err := wait.For(ctx, time.Duration(mine.Waits)*time.Millisecond)
	stop()
	mine.Waits = 0
	l.value = mine.encode()
	return err
}

// self returns what the lease says of this process.
func (s *Store) self() Holder {
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown host"
	}
	return Holder{Process: s.options.Process, Host: host, PID: os.Getpid(), Since: time.Now().UTC(),
		Address: s.options.Address, Lasts: s.options.Lease.Milliseconds()}
}

// quiet measures the time since a lease was last renewed.
type quiet struct {
	revision uint64
	at       time.Time     // last look
	lasted   time.Duration // time between looks that saw the same revision
}

// observe records what a look saw, and reports whether the lease was renewed since the previous one. A time in which
// the bucket could not be read does not count, because the holder could not renew the lease either.
func (q *quiet) observe(revision uint64, now time.Time) (renewed bool) {
	if renewed = q.revision != 0 && revision != 0 && revision != q.revision; renewed || q.revision == 0 {
		q.lasted = 0
	} else {
		q.lasted += min(now.Sub(q.at), renewal)
	}
	q.revision, q.at = revision, now
	return renewed
}

// Leader returns the process that holds the lease, as last seen. It returns the zero Holder for a log in a directory,
// and while the lease is free.
func (s *Store) Leader() Holder {
	if h := s.holder.Load(); h != nil {
		return *h
	}
	return Holder{}
}

// look returns the lease's revision and holder, or revision 0 if the lease is free.
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
		return 0, Holder{}, fmt.Errorf("%w: its bucket %q was removed: the leader makes it again, or a process "+
			"that is started with --take-over", eventlog.ErrLease, l.bucket.Bucket())
	}
	if err != nil {
		return 0, Holder{}, err
	}
	if err := json.Unmarshal(entry.Value(), &held); err != nil {
		return 0, Holder{}, fmt.Errorf("%w: it is not one: %w: delete the key %q of the bucket %q",
			eventlog.ErrLease, err, leaseKey, l.bucket.Bucket())
	}
	return entry.Revision(), held, nil
}

// put writes the lease after a revision (0 for a new lease) and waits for the answer. It does not retry: the first
// message would cause a copy to be rejected.
func (l *lease) put(ctx context.Context, s *Store, after uint64, limit time.Duration) error {
	sent := s.now()
	revision, err := l.set(ctx, leaseKey, l.value, after, limit)
	if err != nil {
		return err
	}
	l.revision = revision
	l.renewed.Store(&sent)
	s.took(sent.steady)
	return nil
}

// set writes a key of the bucket after a revision, 0 for a new key, and returns the next revision.
func (l *lease) set(ctx context.Context, key string, value []byte, after uint64, limit time.Duration) (uint64, error) {
	return within(ctx, limit, func(ctx context.Context) (uint64, error) {
		if after == 0 {
			return l.bucket.Create(ctx, key, value)
		}
		return l.bucket.Update(ctx, key, value, after)
	})
}

// Confirm returns an error if this store may no longer be the log's writer. As long as its lease lasts, no other
// process can have acknowledged entries. After that, for example in a process that was frozen, Confirm asks the log
// itself.
func (s *Store) Confirm(ctx context.Context) error {
	if since := s.lease.renewed.Load(); since != nil && s.Leads() {
		if s.now().since(*since) < s.options.Lease {
			return nil
		}
	}
	return s.confirm(ctx)
}

// took records the send time of a write that the servers took, or of a look at the lease. A renewal may have been sent
// after a commit that ends later.
func (s *Store) took(sent time.Time) {
	for {
		last := s.wrote.Load()
		if last != nil && !sent.After(*last) || s.wrote.CompareAndSwap(last, &sent) {
			return
		}
	}
}

// Unreached returns how long ago this store sent the last request that the servers answered: a writer a write, a standby
// a look at the lease. Both do so several times a second, so a longer time means that they do not reach the servers. One
// server answers a look from its own copy, even if the servers lack a majority.
func (s *Store) Unreached() time.Duration { return s.now().steady.Sub(*s.wrote.Load()) }

// instant is a time on two clocks: the monotonic clock stands still while a machine sleeps, and the time of day may be
// set.
type instant struct{ steady, day time.Time }

func (s *Store) now() instant {
	steady, day := s.options.Now()
	return instant{steady, day}
}

// clocks returns the system's two times.
func clocks() (steady, day time.Time) {
	t := time.Now()
	return t, t.Round(0)
}

// since returns the time since another instant, by whichever clock shows more.
func (i instant) since(earlier instant) time.Duration {
	return max(i.steady.Sub(earlier.steady), i.day.Sub(earlier.day))
}

// isWrongRevision reports whether a write of the lease failed because its revision changed.
func isWrongRevision(err error) bool {
	return errors.Is(err, jetstream.ErrKeyExists) || isWrongLast(err)
}

// lacks reports whether the servers are certain that a bucket does not exist.
func (s *Store) lacks(ctx context.Context, bucket string) bool {
	_, err := s.js.KeyValue(ctx, bucket)
	return errors.Is(err, jetstream.ErrBucketNotFound)
}

// renew writes the lease again. It returns false if another process holds it. A bucket that was removed is created
// again.
func (l *lease) renew(ctx context.Context, s *Store) bool {
	err := l.put(ctx, s, l.revision, shortAttempt)
	if err == nil {
		return true
	}
	if !isWrongRevision(err) { // an unreachable server says nothing about the lease
		if s.lacks(ctx, l.bucket.Bucket()) {
			s.options.Logger.Error("the bucket of the lease was removed: it is made again, and nobody could take "+
				"the log over meanwhile", "bucket", l.bucket.Bucket())
			l.revision = 0
			// the next renewal reports failures
			_, _ = s.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: l.bucket.Bucket(), Replicas: s.replicas})
		}
		return true
	}
	// The answer to our last renewal may be lost, or the bucket removed.
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

// hold renews a taken lease until stop is called; stop waits for the renewals to end. Without it, a process that takes
// longer than the lease to claim the log would lose the lease to the next one.
func (l *lease) hold(s *Store) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var renewing sync.WaitGroup
	renewing.Go(func() {
		for wait.For(ctx, renewal) == nil {
			l.renew(ctx, s) // the log shows whether another process leads
		}
	})
	return func() {
		cancel()
		renewing.Wait()
	}
}

// keep returns an error if another process may have taken the lease. Call it after claiming the log: a process that
// slept before it claimed may have fenced another one, which trusts its lease and does not know yet.
func (l *lease) keep(ctx context.Context, s *Store) error {
	isFresh := func() bool { return s.now().since(*l.renewed.Load()) < s.options.Lease }
	for range 2 { // the first renewal may only find that an earlier one was stored
		if isFresh() {
			return nil
		}
		if !l.renew(ctx, s) {
			return fmt.Errorf("%w: it took the lease of %s before the claim", eventlog.ErrFenced, s.where())
		}
	}
	if !isFresh() {
		return fmt.Errorf("%w: the lease of %s was not renewed for %v", eventlog.ErrReopen, s.where(), s.options.Lease)
	}
	return nil
}

// release frees the lease, so that the next process need not wait.
func (l *lease) release() {
	ctx, cancel := context.WithTimeout(context.Background(), shortAttempt)
	defer cancel()
	_ = l.bucket.Delete(ctx, leaseKey, jetstream.LastRevision(l.revision)) // otherwise the lease runs out
}
