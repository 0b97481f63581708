package natslog

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"vitrine/service/eventlog"
)

// Snapshots of the state are beside the log in an object store, for processes that have none on their disk. An object is a
// snapshot; its name is the entry, and its metadata have the log's identity and running hash there.

// snapshotsKept is the number of snapshots that are kept: one that is being read stays while the next one is written.
const snapshotsKept = 2

const (
	metaLog  = "log"
	metaHash = "hash"
)

// ErrNoSnapshot is returned if there is no snapshot beside the log.
var ErrNoSnapshot = errors.New("natslog: there is no snapshot beside the log")

func (s *Store) snapshotBucket() string { return s.options.Stream + "-snapshots" }

// PutSnapshot stores a snapshot of the state at a position of the log, and removes earlier ones.
func (s *Store) PutSnapshot(ctx context.Context, at eventlog.Position, data io.Reader) error {
	store, err := ask(ctx, s, func(ctx context.Context) (jetstream.ObjectStore, error) {
		return s.js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: s.snapshotBucket(), Replicas: s.replicas})
	})
	if err != nil {
		return fmt.Errorf("natslog: the snapshots of %s: %w", s.where(), err)
	}
	name := fmt.Sprintf("%020d", at.Sequence)
	_, err = store.Put(ctx, jetstream.ObjectMeta{Name: name, Metadata: map[string]string{metaLog: at.Log.String(), metaHash: hex.EncodeToString(at.Hash[:])}}, data)
	if err == nil {
		err = s.tidySnapshots(ctx, store)
	}
	if err != nil {
		return fmt.Errorf("natslog: the snapshots of %s: %w", s.where(), err)
	}
	return nil
}

// tidySnapshots removes snapshots that are no longer needed, and the parts of those that a process has not finished.
func (s *Store) tidySnapshots(ctx context.Context, store jetstream.ObjectStore) error {
	list, err := snapshotsIn(ctx, store)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for i, o := range list {
		if i < snapshotsKept {
			known[o.NUID] = true
		} else if err := store.Delete(ctx, o.Name); err != nil {
			return err
		}
	}
	stream, err := s.js.Stream(ctx, "OBJ_"+s.snapshotBucket())
	if err != nil {
		return err
	}
	chunks := "$O." + s.snapshotBucket() + ".C."
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(chunks+">"))
	if err != nil {
		return err
	}
	for subject := range info.State.Subjects {
		if !known[strings.TrimPrefix(subject, chunks)] {
			if err := stream.Purge(ctx, jetstream.WithPurgeSubject(subject)); err != nil {
				return err
			}
		}
	}
	return nil
}

// snapshotsIn returns the snapshots of a store, the newest first.
func snapshotsIn(ctx context.Context, store jetstream.ObjectStore) ([]*jetstream.ObjectInfo, error) {
	list, err := store.List(ctx)
	if errors.Is(err, jetstream.ErrNoObjectsFound) {
		return nil, nil
	}
	slices.SortFunc(list, func(a, b *jetstream.ObjectInfo) int { return cmp.Compare(b.Name, a.Name) })
	return list, err
}

// LastSnapshot returns the position of the newest snapshot beside the log, and a function that writes it to a file, with an error if
// it is damaged. The error is ErrNoSnapshot if there is none.
func (s *Store) LastSnapshot(ctx context.Context) (at eventlog.Position, read func(ctx context.Context, w io.Writer) error, err error) {
	store, err := ask(ctx, s, func(ctx context.Context) (jetstream.ObjectStore, error) {
		return s.js.ObjectStore(ctx, s.snapshotBucket())
	})
	if errors.Is(err, jetstream.ErrBucketNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return at, nil, ErrNoSnapshot
	}
	if err != nil {
		return at, nil, fmt.Errorf("natslog: the snapshots of %s: %w", s.where(), err)
	}
	list, err := snapshotsIn(ctx, store)
	if err != nil {
		return at, nil, fmt.Errorf("natslog: the snapshots of %s: %w", s.where(), err)
	}
	for _, o := range list {
		if at, err = positionOf(o); err != nil {
			return at, nil, fmt.Errorf("natslog: object %q of the bucket %q: %w", o.Name, s.snapshotBucket(), err)
		}
		return at, func(ctx context.Context, w io.Writer) error {
			object, err := store.Get(ctx, o.Name)
			if err != nil {
				return err
			}
			defer object.Close()
			_, err = io.Copy(w, object)
			return errors.Join(err, object.Error())
		}, nil
	}
	return at, nil, ErrNoSnapshot
}

// positionOf returns the position of a snapshot in its log.
func positionOf(o *jetstream.ObjectInfo) (at eventlog.Position, err error) {
	if at.Sequence, err = strconv.ParseUint(o.Name, 10, 64); err != nil {
		return at, errors.New("its name is no entry")
	}
	for key, to := range map[string][]byte{metaLog: at.Log[:], metaHash: at.Hash[:]} {
		value, err := hex.DecodeString(o.Metadata[key])
		if err != nil || copy(to, value) != len(to) {
			return at, fmt.Errorf("its metadata %q are %q: must be %d bytes in hexadecimal", key, o.Metadata[key], len(to))
		}
	}
	return at, nil
}
