package natslog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"vitrine/service/eventlog"
)

// ErrShards is returned for a service without shards at the log of one with shards, and the other way round. Each would keep
// placements from the other. Services with different numbers of shards go together.
var ErrShards = errors.New("services with and without shards have one log")

// disagrees returns ErrShards if the process that has the lease has shards, and this one does not, or the other way round. Earlier
// programs do not say.
func (s *Store) disagrees(held Holder) error {
	own := s.options.Shards
	if own == 0 || held.Shards == 0 || (own == 1) == (held.Shards == 1) {
		return nil
	}
	has := func(n int) string {
		if n == 1 {
			return "none"
		}
		return fmt.Sprint(n)
	}
	return fmt.Errorf("%w: %s writes %s and has %s, this one has %s: stop all, then start them with the same log.shards", ErrShards, held, s.where(), has(held.Shards), has(own))
}

// isAlone returns ErrShards if other shards than the first have placements, and this service has no shards. Servers that do not
// say so, for lack of a permission or of a leader, are believed to have no others.
func (s *Store) isAlone(ctx context.Context) error {
	p := &Places{of: s, known: map[string]int{}}
	var err error
	p.bucket, err = within(ctx, shortAttempt, func(ctx context.Context) (jetstream.KeyValue, error) { return s.js.KeyValue(ctx, p.name()) })
	if err != nil {
		return nil
	}
	added, _, err := p.added(ctx)
	if err != nil || len(added) == 0 || slices.Max(added) == 1 {
		return err
	}
	placements, err := ask(ctx, s, p.all)
	if err != nil {
		return err
	}
	shards := slices.Compact(slices.Sorted(maps.Values(placements)))
	if len(shards) == 0 || slices.Max(shards) == 1 {
		return nil
	}
	return fmt.Errorf("%w: the bucket %q of %s has placements in the shards %v, this process has none: start it with log.shards = %d", ErrShards, p.name(), s.where(), shards, slices.Max(shards))
}

// agree returns ErrShards if a process that renews the lease of the log has no shards, and this one has.
func (s *Store) agree(ctx context.Context) error {
	if err := s.openLease(ctx, false); errors.Is(err, eventlog.ErrLease) {
		return nil // there is no log yet, or its opening names the problem
	} else if err != nil {
		return err
	}
	var seen quiet
	for {
		revision, held, err := s.lease.look(ctx, s)
		if err != nil || revision == 0 || s.disagrees(held) == nil {
			return nil
		}
		if seen.observe(revision, time.Now()) {
			return s.disagrees(held)
		}
		if seen.lasted > held.silence() {
			return nil
		}
		if err := wait(ctx, pause); err != nil {
			return err
		}
	}
}
