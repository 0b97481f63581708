package natslog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"vitrine/service/eventlog"
)

// Snapshots of the state are kept in an object store next to the log, for processes without one on disk. There are two.
// The next snapshot replaces the older one, so that a snapshot survives while it is read. An object's metadata contain
// its position: the entry, and the log's identity and running hash there.
var snapshotNames = []string{"a", "b"}

const metaPosition = "position"

// ErrNoSnapshot is returned if there is no snapshot next to the log.
var ErrNoSnapshot = errors.New("natslog: there is no snapshot beside the log")

// SnapshotBucket names the object store of the snapshots.
func (s *Store) SnapshotBucket() string { return s.options.Stream + "-snapshots" }

// PutSnapshot stores a snapshot of the state at a position in the log, replacing the older one. A later one, which a log
// that was restored from a backup leaves behind, is removed.
func (s *Store) PutSnapshot(ctx context.Context, at eventlog.Position, data io.Reader) error {
	store, err := askFor(ctx, s, s.js.CreateOrUpdateObjectStore,
		jetstream.ObjectStoreConfig{Bucket: s.SnapshotBucket(), Replicas: s.replicas})
	if err == nil {
		err = s.putSnapshot(ctx, store, at, data)
	}
	if err != nil {
		return fmt.Errorf("natslog: the snapshots of %s: %w", s.where(), err)
	}
	return nil
}

func (s *Store) putSnapshot(ctx context.Context, store jetstream.ObjectStore, at eventlog.Position,
	data io.Reader) error {
	list, err := s.snapshots(ctx, store)
	if err != nil {
		return err
	}
	name := snapshotNames[0]
	if len(list) > 0 && list[0].info.Name == name {
		name = snapshotNames[1]
	}
	position := fmt.Sprintf("%d %v %x", at.Sequence, at.Log, at.Hash)
	_, err = store.Put(ctx, jetstream.ObjectMeta{Name: name, Metadata: map[string]string{metaPosition: position}},
		&writersOnly{data, func() error { return s.Confirm(ctx) }})
	if err != nil {
		return err
	}
	if len(list) > 0 && list[0].info.Name != name && list[0].at.Sequence > at.Sequence { // this log is a restored copy
		if err := store.Delete(ctx, list[0].info.Name); err != nil {
			return err
		}
	}
	return s.tidySnapshots(ctx, store)
}

// writersOnly is a snapshot that fails once the store no longer writes the log, so that an earlier writer cannot
// replace its successor's snapshot.
type writersOnly struct {
	io.Reader
	confirm func() error
}

func (w *writersOnly) Read(b []byte) (n int, err error) {
	if n, err = w.Reader.Read(b); err == io.EOF {
		err = cmp.Or(w.confirm(), err)
	}
	return n, err
}

// abandoned is the age at which the last part of an unfinished snapshot proves that its process gave up: it had less
// time.
var abandoned = 5 * time.Minute

// tidySnapshots removes parts of unfinished snapshots. Another process may still be writing one.
func (s *Store) tidySnapshots(ctx context.Context, store jetstream.ObjectStore) error {
	list, err := s.snapshots(ctx, store)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, o := range list {
		known[o.info.NUID] = true
	}
	stream, err := s.js.Stream(ctx, "OBJ_"+s.SnapshotBucket())
	if err != nil {
		return err
	}
	chunks := "$O." + s.SnapshotBucket() + ".C."
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(chunks+">"))
	if err != nil {
		return err
	}
	for subject := range info.State.Subjects {
		if known[strings.TrimPrefix(subject, chunks)] {
			continue
		}
		part, err := stream.GetLastMsgForSubject(ctx, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) { // its own process removed it
			continue
		}
		if err != nil {
			return err
		}
		if info.TimeStamp.Sub(part.Time) > abandoned { // both times are the servers'
			if err := stream.Purge(ctx, jetstream.WithPurgeSubject(subject)); err != nil {
				return err
			}
		}
	}
	return nil
}

// stored is a snapshot next to the log.
type stored struct {
	info *jetstream.ObjectInfo
	at   eventlog.Position
}

// snapshots returns the snapshots in an object store, newest first, with those that have unusable metadata at the end.
func (s *Store) snapshots(ctx context.Context, store jetstream.ObjectStore) (list []stored, err error) {
	for _, name := range snapshotNames {
		info, err := ask(ctx, s, func(ctx context.Context) (*jetstream.ObjectInfo, error) {
			return store.GetInfo(ctx, name)
		})
		if errors.Is(err, jetstream.ErrObjectNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		at, err := positionOf(info)
		if err != nil {
			s.options.Logger.WarnContext(ctx, "a snapshot beside the log is not used", "bucket", s.SnapshotBucket(),
				"object", name, "cause", err.Error())
		}
		list = append(list, stored{info, at})
	}
	slices.SortStableFunc(list, func(a, b stored) int { return cmp.Compare(b.at.Sequence, a.at.Sequence) })
	return list, nil
}

// LastSnapshot returns the position of the newest snapshot next to the log, and a function that writes the snapshot to
// w and returns an error if it is damaged. Without a snapshot the error is [ErrNoSnapshot].
func (s *Store) LastSnapshot(ctx context.Context) (at eventlog.Position, read func(ctx context.Context,
	w io.Writer) error, err error) {
	store, err := askFor(ctx, s, s.js.ObjectStore, s.SnapshotBucket())
	if errors.Is(err, jetstream.ErrBucketNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return at, nil, ErrNoSnapshot
	}
	var list []stored
	if err == nil {
		list, err = s.snapshots(ctx, store)
	}
	if err != nil {
		return at, nil, fmt.Errorf("natslog: the snapshots of %s: %w", s.where(), err)
	}
	if len(list) == 0 {
		return at, nil, ErrNoSnapshot
	}
	if list[0].at.Sequence == 0 {
		return at, nil, fmt.Errorf("natslog: no snapshot of %s has a position that this program can read", s.where())
	}
	return list[0].at, func(ctx context.Context, w io.Writer) error {
		object, err := store.Get(ctx, list[0].info.Name)
		if err != nil {
			return err
		}
		defer object.Close()
		_, err = io.Copy(w, object)
		return errors.Join(err, object.Error())
	}, nil
}

// positionOf returns a snapshot's position in its log, or the zero position with an error.
func positionOf(o *jetstream.ObjectInfo) (at eventlog.Position, err error) {
	var log, hash []byte
	_, err = fmt.Sscanf(o.Metadata[metaPosition], "%d %x %x", &at.Sequence, &log, &hash)
	if err != nil || at.Sequence == 0 || len(log) != len(at.Log) || len(hash) != len(at.Hash) {
		return eventlog.Position{}, fmt.Errorf("its metadata %q are %q: must be an entry, the log's identity and a running "+
			"hash", metaPosition, o.Metadata[metaPosition])
	}
	at.Log, at.Hash = eventlog.Identity(log), [16]byte(hash)
	return at, nil
}
