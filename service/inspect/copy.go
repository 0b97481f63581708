package inspect

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"vitrine/internal/hint"
	"vitrine/internal/replace"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/filelog"
	"vitrine/service/eventlog/natslog"
	"vitrine/service/host"
	"vitrine/service/state"
)

// Copy copies a log, with the newest snapshot, to a data directory or to NATS servers, and returns the position after
// the last entry, which is the same in both logs. Both are named as in Options.Log. A copy that was interrupted is
// continued.
func Copy(ctx context.Context, options Options, to string) (at eventlog.Position, err error) {
	for target := uint64(0); ; {
		if at, target, err = copyUpTo(ctx, options, to, target); target == 0 || err != nil {
			return at, err
		}
	}
}

// copyUpTo copies the entries that a log contains when it is opened, and the snapshot. If a service has written a later
// snapshot, copyUpTo returns its last entry, which the next round must reach. A round that misses its target leaves the
// snapshot out.
func copyUpTo(ctx context.Context, options Options, to string,
	target uint64) (_ eventlog.Position, next uint64, err error) {
	from, err := Open(ctx, options)
	if err != nil {
		return eventlog.Position{}, 0, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	if from.lost != nil {
		return eventlog.Position{}, 0, from.lost
	}
	place := &Log{Name: to, options: Options{Log: to}}
	o, err := place.source()
	if err != nil {
		return eventlog.Position{}, 0, err
	}
	if o.URL == "" {
		return from.copyToDir(ctx, place.Name, target)
	}
	at, err := from.copyToServers(ctx, o)
	return at, 0, err
}

// start returns the position before the first entry of a log.
func start(ctx context.Context, from eventlog.Log) (eventlog.Position, error) {
	x, err := from.Extent(ctx)
	if err != nil {
		return eventlog.Position{}, err
	}
	return from.Position(ctx, x.First-1)
}

// copyInto copies the entries of a log to one that was opened for it, and reports their numbers.
func copyInto(ctx context.Context, to eventlog.Copied, from eventlog.Log,
	progress func(string, int, int)) (eventlog.Position, error) {
	at, err := eventlog.Copy(ctx, to, from, func(done, total uint64) {
		if progress != nil {
			progress("copying", int(done), int(total))
		}
	})
	switch {
	case errors.Is(err, eventlog.ErrBeyond):
		err = hint.New(err, "a service may have written to the copy: copy in the other direction, or name another place")
	case errors.Is(err, eventlog.ErrForeign), errors.Is(err, eventlog.ErrRemoved):
		err = hint.New(err, "name a place without a log, or with a recent copy of the same log")
	}
	return at, err
}

// copyEntries copies a log to a directory, and calls finish, which may copy more. Only if finish returns 0 is the copy
// complete, and a service may start on it.
func copyEntries(ctx context.Context, dir string, from eventlog.Log, progress func(string, int, int),
	finish func(at eventlog.Position) (next uint64, err error)) (at eventlog.Position, next uint64, err error) {
	begin, err := start(ctx, from)
	if err != nil {
		return at, 0, err
	}
	to, err := filelog.Open(ctx, filelog.Options{Dir: dir, Start: begin, Copies: true})
	if err != nil {
		return at, 0, err
	}
	at, err = copyInto(ctx, to, from, progress)
	if err == nil { // a service would take the keys for lost
		err = host.BeginShoppers(filepath.Dir(dir))
	}
	if err == nil {
		next, err = finish(at)
	}
	if err == nil && next == 0 {
		err = to.MarkCopy(ctx, false)
	}
	return at, next, errors.Join(err, to.Close())
}

// copyToDir copies the log and its snapshots to a data directory, as copyUpTo does.
func (r *Log) copyToDir(ctx context.Context, data string, target uint64) (eventlog.Position, uint64, error) {
	return copyEntries(ctx, filepath.Join(data, host.LogDir), r.Log, r.options.Progress,
		func(at eventlog.Position) (uint64, error) { return r.copySnapshots(ctx, data, at, target) })
}

// copySnapshots copies the snapshots to a data directory with the entries up to at. It returns the entry that the next
// round must reach, or 0.
func (r *Log) copySnapshots(ctx context.Context, data string, at eventlog.Position, target uint64) (uint64, error) {
	if shared, ok := r.Log.(*natslog.Store); ok {
		newest, read, err := shared.LastSnapshot(ctx)
		if errors.Is(err, natslog.ErrNoSnapshot) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		if newest.Sequence > at.Sequence && at.Sequence >= target {
			return newest.Sequence, nil
		}
		_, err = eventlog.Locate(ctx, shared, newest)
		switch {
		case errors.Is(err, eventlog.ErrForeign) || errors.Is(err, eventlog.ErrBeyond):
			r.warn(fmt.Sprintf("the snapshot of entry %d on the servers is left out: %v", newest.Sequence, err))
			return 0, nil
		case err != nil && !errors.Is(err, eventlog.ErrRemoved): // a running service may have removed the entry
			return 0, err
		}
		return 0, replace.PrivateStream(filepath.Join(data, host.SnapshotFile),
			func(w io.Writer) error { return read(ctx, w) })
	}
	for _, s := range r.snapshots {
		if err := s.writeTo(data); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// copyToServers copies the log and its last snapshot to NATS servers.
func (r *Log) copyToServers(ctx context.Context, o natslog.Options) (at eventlog.Position, err error) {
	if o.Start, err = start(ctx, r.Log); err != nil {
		return at, err
	}
	o.Copies = true
	to, err := natslog.Open(ctx, o)
	if errors.Is(err, eventlog.ErrAlive) || errors.Is(err, eventlog.ErrFenced) {
		err = hint.New(err, "stop the services that write the log there")
	}
	if err != nil {
		return at, err
	}
	defer func() {
		if err == nil {
			err = to.MarkCopy(ctx, false)
		}
		err = errors.Join(err, to.Close())
	}()
	if at, err = copyInto(ctx, to, r.Log, r.options.Progress); err != nil {
		return at, err
	}
	if err := to.MakeKeys(ctx); err != nil { // a service would take it for lost
		return at, err
	}
	last, newest := (*snapshot)(nil), eventlog.Position{}
	for _, s := range r.snapshots {
		p, err := state.SnapshotPosition(s.data)
		if err == nil {
			_, err = eventlog.Locate(ctx, to, p)
		}
		if err == nil && p.Sequence > newest.Sequence {
			last, newest = s, p
		}
	}
	if last == nil {
		if r.First > 1 {
			return at, fmt.Errorf("the first entry is %d, and %s has no snapshot of those before: a service could "+
				"not start on the copy", r.First, cmp.Or(r.options.Data, strings.TrimSpace(r.Name)))
		}
		return at, nil
	}
	return at, to.PutSnapshot(ctx, newest, bytes.NewReader(last.data))
}

// Backup copies the log and the snapshots of a data directory, or of the one that a configuration file names, to a new
// directory. The service may be running: the copy contains everything that was acknowledged before Backup began. On an
// error, Backup removes the copy. It calls progress, unless that is nil, from time to time.
func Backup(ctx context.Context, data, to string, progress func(what string, done, total int)) (err error) {
	r := &Log{Name: data, options: Options{Log: data}}
	if o, err := r.source(); err != nil {
		return err
	} else if o.URL != "" {
		return hint.New(fmt.Errorf("%s: its log is on NATS servers, and a backup copies a directory", r.Name),
			"copy the log into a directory with vitrine log copy")
	}
	log, data, err := findLog(r.Name)
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return hint.New(fmt.Errorf("%s exists", to), "a backup never overwrites: name a directory that does "+
				"not exist")
		}
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(to))
		}
	}()
	release, err := filelog.Hold(log)
	if err != nil {
		return err
	}
	defer release()
	if data != "" { // before the log, so that the log contains all of their entries
		for s, err := range snapshotsOf(data) {
			if err == nil {
				err = s.writeTo(to)
			}
			if err != nil {
				return err
			}
		}
	}
	from, err := openReader(ctx, log, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	if from.Damage() != nil {
		return from.Damage()
	}
	_, _, err = copyEntries(ctx, filepath.Join(to, host.LogDir), from, progress,
		func(eventlog.Position) (uint64, error) { return 0, nil })
	return err
}
