package inspect

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
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

// Options say how to open a log. Only Log is required.
type Options struct {
	// Log is a data directory, the log in it, nats://host:4222, or a configuration file of the service.
	Log string
	// Data is the data directory with the snapshots, for a log on a server. If it is "", it is the one that the
	// configuration file names. If it holds none, and entries were removed, the newest one on the server is read.
	Data string
	// Warn, if set, is called for faults that leave the log readable.
	Warn func(message string)
	// Progress, if set, is called from time to time. The unit of done and total depends on the stage.
	Progress func(stage string, done, total int)
}

// Log is a log opened for reading.
type Log struct {
	eventlog.Log
	eventlog.Extent
	Name string // the log as messages name it

	options   Options
	data      string      // the data directory around a log in a directory, or ""
	snapshots []*snapshot // of the data directory: the last one and the bases
	lost      error       // why entries may be missing at the beginning or the end, or nil
}

// Open opens a log for reading, while another process may be writing it. It verifies a log in a directory. Of a damaged
// one it reads what is before the damage; the error follows.
func Open(ctx context.Context, options Options) (_ *Log, err error) {
	r := &Log{Name: options.Log, options: options}
	o, err := r.source()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	if o.URL != "" {
		err = r.openShared(ctx, o)
	} else {
		err = r.openDir(ctx)
	}
	if err != nil {
		return nil, err
	}
	r.Extent, err = r.Log.Extent(ctx)
	return r, err
}

func (r *Log) openShared(ctx context.Context, o natslog.Options) error {
	if err := r.readSnapshots(r.options.Data); err != nil {
		return err
	}
	o.ReadOnly, o.Logger = true, slog.New(warner{r})
	s, err := natslog.Open(ctx, o)
	if err != nil {
		return err
	}
	r.Log = s
	x, err := s.Extent(ctx)
	if err == nil && x.First > 1 && r.snapshots == nil {
		err = r.readShared(ctx, s)
	}
	return err
}

// readShared reads the snapshot next to a log on servers, if there is one.
func (r *Log) readShared(ctx context.Context, s *natslog.Store) error {
	at, read, err := s.LastSnapshot(ctx)
	if errors.Is(err, natslog.ErrNoSnapshot) {
		return nil
	}
	var data bytes.Buffer
	if err == nil {
		err = read(ctx, &data)
	}
	if err != nil {
		return fmt.Errorf("the snapshot on the servers: %w: give --data, the data directory of a service", err)
	}
	r.snapshots = []*snapshot{{path: fmt.Sprintf("the snapshot of entry %d on the servers", at.Sequence),
		name: host.SnapshotFile, data: data.Bytes()}}
	return nil
}

func (r *Log) openDir(ctx context.Context) error {
	dir, data, err := findLog(r.Name)
	if err != nil {
		return err
	}
	release, err := filelog.Hold(dir)
	if err != nil {
		return err
	}
	defer release()
	r.data = data
	if err := r.readSnapshots(data); err != nil { // before the log, so that the log contains all of their entries
		return err
	}
	s, err := openReader(ctx, dir, r.options.Progress)
	if err == nil {
		r.Log, r.lost = s, s.Damage()
	}
	return err
}

// openReader opens a log in a directory for reading. It reports progress in KiB.
func openReader(ctx context.Context, dir string, progress func(string, int, int)) (*filelog.Store, error) {
	o := filelog.Options{Dir: dir, ReadOnly: true}
	if progress != nil {
		o.Progress = func(done, total int64) { progress("verifying", int(done>>10), int(total>>10)) }
	}
	return filelog.Open(ctx, o)
}

// source returns the options of a log on NATS servers, and the zero value for a log in a directory.
func (r *Log) source() (natslog.Options, error) {
	if strings.Contains(r.options.Log, "://") {
		hosts, _, err := natslog.SplitURL(r.options.Log)
		r.Name = hosts
		return natslog.Options{URL: r.options.Log}, err
	}
	if !strings.HasSuffix(r.options.Log, ".toml") {
		return natslog.Options{}, nil
	}
	s, err := host.ReadConfig(r.options.Log)
	if err != nil {
		return natslog.Options{}, err
	}
	if s.Log.URL == "" {
		r.Name = s.Data
		return natslog.Options{}, nil
	}
	r.options.Data = cmp.Or(r.options.Data, s.Data)
	return s.Log.Options()
}

// warner is a slog.Handler that passes the store's warnings to Options.Warn.
type warner struct{ log *Log }

func (w warner) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (w warner) WithAttrs([]slog.Attr) slog.Handler               { return w }
func (w warner) WithGroup(string) slog.Handler                    { return w }

func (w warner) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += fmt.Sprintf(": %s %v", a.Key, a.Value); return true })
	w.log.warn(text)
	return nil
}

func (r *Log) warn(message string) {
	if r.options.Warn != nil {
		r.options.Warn(message)
	}
}

// readSnapshots reads a data directory's snapshots, if data is not "".
func (r *Log) readSnapshots(data string) error {
	if data == "" {
		return nil
	}
	for s, err := range snapshotsOf(data) {
		if err != nil {
			return err
		}
		r.snapshots = append(r.snapshots, s)
	}
	return nil
}

// snapshotsOf yields the snapshots of a data directory, which a running service may be changing.
func snapshotsOf(data string) iter.Seq2[*snapshot, error] {
	return eventlog.Iterate(func(yield func(*snapshot) bool) error {
		paths, err := host.Snapshots(data)
		if err != nil {
			return err
		}
		for _, path := range paths {
			s, err := readSnapshot(data, path)
			switch {
			case errors.Is(err, fs.ErrNotExist): // the service removed it
			case err != nil:
				return err
			case !yield(s):
				return nil
			}
		}
		return nil
	})
}

// base returns the earliest snapshot that covers all removed entries, and its last entry, or nil. A replay also needs
// the offers of the snapshot's open decisions, and the entries that learners learned again after it, as far as later
// snapshots know.
func (r *Log) base(ctx context.Context, snapshots []*snapshot, isReplay bool) (base *snapshot, upTo uint64) {
	for _, s := range snapshots {
		n, err := s.entry(ctx, r)
		needs := n + 1
		if err == nil && isReplay {
			needs, err = state.SnapshotOldest(s.data)
			for _, later := range snapshots {
				relearned, failed := state.SnapshotNeeds(later.data, n)
				needs, err = min(needs, relearned), cmp.Or(err, failed)
			}
		}
		if err == nil && needs >= r.First && (base == nil || n < upTo) {
			base, upTo = s, n
		}
	}
	return base, upTo
}

// findLog returns the directory of the log and its data directory, which is "" if name is the log
// itself.
func findLog(name string) (dir, data string, err error) {
	for _, dir := range []string{filepath.Join(name, host.LogDir), name} {
		if _, err := os.ReadDir(dir); errors.Is(err, fs.ErrPermission) {
			return "", "", err
		}
		switch {
		case !filelog.Exists(dir):
			continue
		case dir == name:
			return dir, "", nil
		}
		return dir, name, nil
	}
	return "", "", hint.New(fmt.Errorf("%s has no log", name), "give the data directory of the service, or the "+
		"directory log in it")
}

// snapshot is a snapshot of the state.
type snapshot struct {
	path string
	name string // the path in the data directory
	data []byte
}

func readSnapshot(dir, path string) (*snapshot, error) {
	name, err := filepath.Rel(dir, path)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	return &snapshot{path, name, data}, err
}

// writeTo writes the snapshot to another data directory.
func (s *snapshot) writeTo(data string) error {
	path := filepath.Join(data, s.name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return replace.Private(path, s.data)
}

// entry returns the last entry of the snapshot. It returns an error if the log ends before that entry or differs in its
// history. If that entry was removed, it cannot compare them.
func (s *snapshot) entry(ctx context.Context, log *Log) (uint64, error) {
	at, err := state.SnapshotPosition(s.data)
	if err != nil {
		return 0, err
	}
	if at.Sequence > log.Last {
		return at.Sequence, fmt.Errorf("its last entry is %d, but that of the log is %d", at.Sequence, log.Last)
	}
	if _, err = eventlog.Locate(ctx, log.Log, at); errors.Is(err, eventlog.ErrRemoved) {
		err = nil
	}
	return at.Sequence, err
}

// entries yields the entries from a sequence number on, and then r.lost.
func (r *Log) entries(ctx context.Context, what string, from uint64) iter.Seq2[[]byte, error] {
	return eventlog.Iterate(func(yield func([]byte) bool) error {
		n, total := int(max(from, r.First)-r.First), max(int(r.Last+1-r.First), 1) // a replay reads the log in parts
		progress := func() {
			if r.options.Progress != nil {
				r.options.Progress(what, n, total)
			}
		}
		for entry, err := range r.Entries(ctx, from) {
			if err != nil {
				return err
			}
			if !yield(entry) {
				return nil
			}
			if n++; n%progressEntries == 0 {
				progress()
			}
		}
		progress()
		return r.lost
	})
}

// progressEntries is the number of entries between two reports of progress.
const progressEntries = 1000

// Close closes the log.
func (r *Log) Close() error {
	if r.Log == nil {
		return nil
	}
	return r.Log.Close()
}
