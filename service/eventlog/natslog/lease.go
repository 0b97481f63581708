package natslog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"vitrine/service/eventlog"
)

// lease names the process that should write the log of an external server. The holder renews it, and a
// starting process does not take the log from a holder that does. The lease prevents two services from taking
// turns. It does not protect data: the sequence in each message does.
//
// It is a key in a bucket beside the stream. A lease is free if the starting process observes no renewal for
// the time of silence; no two clocks are compared.
type lease struct {
	bucket   jetstream.KeyValue
	value    []byte
	revision uint64
}

const leaseKey = "writer"

// renewal is the interval of renewals, and silence the time after which a lease that is not renewed is free.
var renewal, silence = time.Second, 3 * time.Second

// holder is the content of a lease: the process that has it.
type holder struct {
	Process string    `json:"process"`
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Since   time.Time `json:"since"`
}

func (h holder) String() string {
	return fmt.Sprintf("process %d on %s, since %s", h.PID, h.Host, h.Since.Format(time.DateTime))
}

// takeLease takes the log's lease, or reports ErrAlive if another process renews it.
func (s *Store) takeLease(ctx context.Context) error {
	bucket, err := ask(ctx, s, func(ctx context.Context) (jetstream.KeyValue, error) {
		return s.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: s.options.Stream + "-lease", Replicas: s.replicas})
	})
	if err != nil {
		return fmt.Errorf("natslog: the lease of %s: %w", s.where(), err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown host"
	}
	value, err := json.Marshal(holder{Process: s.options.Process, Host: host, PID: os.Getpid(), Since: time.Now().UTC()})
	if err != nil {
		return err
	}
	l := &lease{bucket: bucket, value: value}
	first, seen := uint64(0), time.Time{} // the revision of another process, and the time at which it was first seen
	for wait := shortAttempt; ; wait += wait / 2 {
		revision, held, err := l.look(ctx, s)
		switch {
		case err != nil:
			return fmt.Errorf("natslog: the lease of %s: %w", s.where(), err)
		case revision != 0 && first != 0 && revision != first && !s.options.TakeOver:
			return fmt.Errorf("%w: %s writes %s", eventlog.ErrAlive, held, s.where())
		case revision == 0 || held.Process == s.options.Process || s.options.TakeOver || first != 0 && time.Since(seen) > silence:
			if err := l.put(ctx, revision, wait); err == nil {
				s.lease = l
				return nil
			} else if !isWrongRevision(err) && (!isUnanswered(err) || wait > s.options.Patience) {
				return fmt.Errorf("natslog: the lease of %s: %w", s.where(), err)
			}
		case first == 0:
			first, seen = revision, time.Now()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// look returns the revision of the lease and who has it; revision 0 if nobody does.
func (l *lease) look(ctx context.Context, s *Store) (revision uint64, held holder, err error) {
	entry, err := ask(ctx, s, func(ctx context.Context) (jetstream.KeyValueEntry, error) { return l.bucket.Get(ctx, leaseKey) })
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return 0, holder{}, nil
	}
	if err != nil {
		return 0, holder{}, err
	}
	if err := json.Unmarshal(entry.Value(), &held); err != nil {
		return 0, holder{}, fmt.Errorf("it is not one: %w: delete the key %q of the bucket %q", err, leaseKey, l.bucket.Bucket())
	}
	return entry.Revision(), held, nil
}

// put writes the lease after a revision, 0 for none, and waits for the answer. It does not retry: a copy
// would be refused because of the first message.
func (l *lease) put(ctx context.Context, after uint64, wait time.Duration) error {
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
	return nil
}

// isWrongRevision reports whether a lease was not written because it has another revision.
func isWrongRevision(err error) bool {
	var refused *jetstream.APIError
	return errors.Is(err, jetstream.ErrKeyExists) || errors.As(err, &refused) && isWrongLast(refused)
}

// renew writes the lease again. It reports false if another process has it.
func (l *lease) renew(ctx context.Context, s *Store) bool {
	err := l.put(ctx, l.revision, shortAttempt)
	if err == nil || !isWrongRevision(err) { // a server that is away says nothing about the lease
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

// release frees the lease, so that the next process does not wait.
func (l *lease) release() {
	ctx, cancel := context.WithTimeout(context.Background(), shortAttempt)
	defer cancel()
	_ = l.bucket.Delete(ctx, leaseKey, jetstream.LastRevision(l.revision)) // otherwise it ends by silence
}
