package host

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"vitrine/internal/replace"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
)

// keeper writes snapshots, then removes entries beyond the retention, and keeps versions to roll back
// to.
type keeper struct {
	engine    *engine.Engine
	log       store
	now       func() time.Time
	sure      func() time.Time // the time by which entries are too old
	path      string
	retention *Retention
	logger    *slog.Logger
	share     func(ctx context.Context, at eventlog.Position, snapshot io.Reader) error // copies it for other machines; or nil
	upTo      uint64                                                                    // the last snapshot's last entry
	shared    uint64                                                                    // the last shared snapshot's last entry
	uncut     uint64                                                                    // bytes of a too large log that could not be cut, else 0
	fresh     int64                                                                     // when the file was last up to date, Unix nanoseconds
	written   atomic.Int64                                                              // when the file and its shared copy were last up to date
	behind    []string                                                                  // placements with learners that lagged behind the last snapshot
}

// age returns the age of the last snapshot. It is 0 while another process writes the log, and its snapshots.
func (k *keeper) age() time.Duration {
	if k.engine.Role() == engine.Follower {
		return 0
	}
	return time.Duration(k.now().UnixNano() - k.written.Load())
}

func (k *keeper) run(ctx context.Context, every, keepEvery time.Duration) {
	snapshots, versions, looks := time.NewTicker(every), time.NewTicker(keepEvery), time.NewTicker(lookEvery)
	defer looks.Stop()
	defer snapshots.Stop()
	defer versions.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-snapshots.C:
			k.cut(ctx)
			if err := k.engine.SweepShoppers(ctx); err != nil && ctx.Err() == nil {
				k.logger.Warn("the keys of forgotten shoppers were not deleted", "cause", err.Error())
			}
			if age := k.age(); age > snapshotsLate*every {
				k.logger.Warn("the last snapshot is old: the next start replays every entry since then, and no "+
					"entries are removed", "seconds", int64(age.Seconds()))
			}
		case <-looks.C:
			if k.upTo > 0 && !isFile(k.path) {
				k.logger.Error("the snapshot was removed while the service ran, and is written again", "file", k.path)
				k.upTo = 0
				k.write(ctx)
			}
			k.look(ctx)
		case <-versions.C:
			k.keep(ctx)
		}
	}
}

const (
	// learnersPatience is how long a snapshot waits for learners that lag. Then it takes their last checkpoint and the
	// rounds since.
	learnersPatience = 2 * time.Second
	// snapshotDeadline limits the time that a snapshot takes. If the last one fails, the next start
	// replays more.
	snapshotDeadline = 30 * time.Second
	// shareDeadline limits the time of a copy to or from the log's servers, and lastShareDeadline the last copy's: the
	// service is about to end.
	shareDeadline, lastShareDeadline = time.Minute, 5 * time.Second
	// lookEvery is how often the keeper looks whether the log exceeds its size, and whether the snapshot is there.
	lookEvery = time.Second
	// evictions is how often in a row it snapshots the state without the decisions that it gave up.
	evictions = 3
	// snapshotsLate is the number of missed snapshots after which there is a warning.
	snapshotsLate = 3
)

// last writes the last snapshot.
func (k *keeper) last() {
	leads := func() bool { return k.engine.Role() == engine.Leader }
	if leads() {
		k.end(context.Background())
	}
	k.write(context.Background())
	if leads() { // another service may lead by now
		k.spread(context.Background(), lastShareDeadline)
	}
}

// end records the time at the log's end after a quiet time, so that the next start does not take that for an outage.
func (k *keeper) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastShareDeadline)
	defer cancel()
	now := k.now().UnixNano()
	last, err := lastTime(ctx, k.log, max(k.engine.Sequence(), 1))
	if err == nil && last != 0 && now-last > int64(maxSkew) {
		_, _, err = k.engine.MoveClock(ctx, now, now)
	}
	if err != nil {
		k.logger.Info("the time at which the service stopped is not in the log: the next start takes a quiet time "+
			"before it for an outage", "cause", err.Error())
	}
}

// spread shares the last snapshot with other machines.
func (k *keeper) spread(ctx context.Context, deadline time.Duration) {
	if k.share == nil || k.upTo == 0 {
		return
	}
	if k.shared == k.upTo {
		k.written.Store(k.fresh)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	err := func() error {
		at, err := k.log.Position(ctx, k.upTo)
		if err != nil {
			return err
		}
		file, err := os.Open(k.path)
		if err != nil {
			return err
		}
		defer file.Close()
		return k.share(ctx, at, file)
	}()
	if err != nil {
		k.logger.Warn("the snapshot is not beside the log for other machines, and no entries are removed", "entry",
			k.upTo, "cause", err.Error())
		return
	}
	k.shared = k.upTo
	k.written.Store(k.fresh)
}

func (k *keeper) write(ctx context.Context) {
	if k.engine.Sequence() == k.upTo {
		k.wrote(k.now())
		return
	}
	ctx, cancel := context.WithTimeout(ctx, snapshotDeadline)
	defer cancel()
	var upTo uint64
	var behind []string
	var size counter
	begin := k.now()
	err := replace.PrivateStream(k.path, func(w io.Writer) (err error) {
		upTo, behind, err = k.engine.WriteSnapshot(ctx, io.MultiWriter(w, &size), learnersPatience)
		return cmp.Or(err, k.log.Loss()) // another process may use the directory by now
	})
	if err != nil {
		k.logger.Warn("no snapshot was written", "cause", err.Error())
		return
	}
	k.upTo = upTo
	k.wrote(begin)
	k.logger.Info("snapshot", "entry", upTo, "bytes", int64(size))
	if len(behind) > 0 && !slices.Equal(behind, k.behind) {
		k.logger.Warn("learners lag: the snapshot has their last checkpoint and the rounds since, which the next "+
			"start learns again", "placements", behind)
	}
	k.behind = behind
}

// wrote records that the file is up to date. If the snapshot is shared, its copy follows.
func (k *keeper) wrote(at time.Time) {
	k.fresh = at.UnixNano()
	if k.share == nil {
		k.written.Store(k.fresh)
	}
}

type counter int64

func (c *counter) Write(b []byte) (int, error) { *c += counter(len(b)); return len(b), nil }

// look cuts a log that exceeds its size. If the last attempt removed nothing, for instance because a learner still
// needs the oldest entries, look waits until the log is one percent larger: each attempt writes the whole state.
func (k *keeper) look(ctx context.Context) {
	bytes, err := k.retention.excess(ctx)
	if err != nil || bytes == 0 || bytes < k.uncut+k.uncut/100 {
		return
	}
	k.cut(ctx)
}

// cut writes a snapshot, shares it, and removes the entries beyond the retention.
func (k *keeper) cut(ctx context.Context) {
	k.write(ctx)
	k.spread(ctx, shareDeadline)
	k.uncut = 0
	if !k.shrink(ctx) {
		k.uncut, _ = k.retention.excess(ctx)
	}
}

// shrink removes the entries beyond the retention, and reports whether any could be removed. It also removes the
// entries of the open decisions that it gives up: the next snapshot does not need them.
func (k *keeper) shrink(ctx context.Context) (removes bool) {
	for range evictions {
		if k.upTo == 0 || !k.retention.limits() ||
			k.share != nil && k.shared != k.upTo { // a new machine needs a snapshot of the removed entries
			return removes
		}
		removed, err := k.retention.Apply(ctx, k.upTo, k.sure())
		switch {
		case err != nil:
			k.logger.Warn("retention", "cause", err.Error())
		case removed.To >= removed.From:
			k.logger.Info("removed", "entries", removed)
		}
		removes = removes || removed.To >= removed.From || removed.Evicted > 0
		if err != nil || removed.Evicted == 0 {
			return removes
		}
		k.write(ctx)
		k.spread(ctx, shareDeadline)
	}
	return removes
}

// keep keeps a version of each placement that learned since its last version.
func (k *keeper) keep(ctx context.Context) {
	for _, name := range k.engine.Placements() {
		s, err := k.engine.Stats(name)
		if err != nil || s.Guard.Alarm != nil || len(s.Versions) > 0 && s.Versions[len(s.Versions)-1] >= s.PolicyEntry {
			continue
		}
		version, err := k.engine.Keep(ctx, name, "", k.now().UnixNano())
		if err != nil {
			k.logger.Warn("no version was kept", "placement", name, "cause", err.Error())
			continue
		}
		k.logger.Info("version kept", "placement", name, "version", version)
	}
}
