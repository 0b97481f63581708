package inspect

import (
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
	"syscall"

	"vitrine/internal/hint"
	"vitrine/service/decision"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/natslog"
	"vitrine/service/host"
)

// Options say how to open a log. Only Log is required.
type Options struct {
	// Log is a data directory, the log in it, nats://host:4222, or a configuration file of the service.
	Log string
	// Data is the data directory with the snapshots, for a log on a server.
	Data string
	// Warn, if set, is called for faults that leave the log readable.
	Warn func(message string)
	// Progress, if set, is called from time to time. The unit of done and total depends on the stage.
	Progress func(stage string, done, total int)
}

// Log is a log opened for reading. Its errors name the log and not its copy.
type Log struct {
	*natslog.Store
	eventlog.Extent
	Name string // the log as messages name it

	options   Options
	snapshots []*snapshot // of the data directory: the last one and the bases
	lost      error       // why entries may be missing at the beginning or the end; nil if none are
	dir       string      // the directory of the log; "" on a server
	scratch   string      // the directory of the copy
}

// Open opens a log for reading. It copies a log in a directory to the directory for temporary files
// (TMPDIR); [Log.Close] removes the copy. A damaged log is an *eventlog.DamageError.
func Open(ctx context.Context, options Options) (_ *Log, err error) {
	r := &Log{Name: options.Log, options: options}
	o, err := r.source()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(r.explain(err), r.Close())
		}
	}()
	o.Logger = slog.New(warner{r})
	if o.ReadOnly = true; o.URL != "" {
		err = r.readSnapshots(options.Data)
	} else {
		err = r.copy(ctx)
		o.Dir = r.scratch
	}
	if err != nil {
		return nil, err
	}
	r.Store, err = natslog.Open(ctx, o)
	if err != nil && o.Dir != "" && ctx.Err() == nil {
		// Read what is left: without its mark, a copy that has lost entries can be opened.
		why := r.explain(err)
		if err := os.Remove(filepath.Join(o.Dir, "mark")); err != nil {
			return nil, why
		}
		o.Logger = nil // r.lost reports the loss
		if r.Store, err = natslog.Open(ctx, o); err == nil {
			r.lost = why
		}
	}
	if err != nil {
		return nil, err
	}
	r.Extent, err = r.Store.Extent(ctx)
	return r, err
}

// source returns the options of a log on external servers, and none for a log in a directory.
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
	return s.LogOptions()
}

// warner is a slog.Handler that passes the store's warnings to Options.Warn.
type warner struct{ log *Log }

func (w warner) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (w warner) WithAttrs([]slog.Attr) slog.Handler               { return w }
func (w warner) WithGroup(string) slog.Handler                    { return w }

func (w warner) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += fmt.Sprintf(": %s %v", a.Key, a.Value); return true })
	w.log.warn(w.log.explain(errors.New(text)).Error())
	return nil
}

func (r *Log) warn(message string) {
	if r.options.Warn != nil {
		r.options.Warn(message)
	}
}

// copy copies the log to a temporary directory.
func (r *Log) copy(ctx context.Context) (err error) {
	var data string
	if r.dir, data, err = findLog(r.Name); err != nil {
		return err
	}
	release, err := natslog.Hold(r.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if err := r.readSnapshots(data); err != nil { // before the log, so that the log has all of their entries
		return err
	}
	if r.scratch, err = os.MkdirTemp("", "vitrine-log-"); err != nil {
		return err
	}
	return copyLog(ctx, r.scratch, r.dir, r.options.Progress)
}

// readSnapshots reads the snapshots of a data directory; "" has none.
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
	return func(yield func(*snapshot, error) bool) {
		paths, err := host.Snapshots(data)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, path := range paths {
			s, err := readSnapshot(path)
			if errors.Is(err, fs.ErrNotExist) { // the service has removed it
				continue
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

// base returns the earliest snapshot that has all removed entries, and its last entry; nil if there is
// none. A replay also needs the offers of the decisions that are open in the snapshot, and what learners learned again
// after it, as far as later snapshots know.
func (r *Log) base(ctx context.Context, snapshots []*snapshot, isReplay bool) (base *snapshot, upTo uint64) {
	for _, s := range snapshots {
		n, err := s.entry(ctx, r)
		needs := n + 1
		if err == nil && isReplay {
			needs, err = decision.SnapshotOldest(s.data)
			for _, later := range snapshots {
				relearned, failed := decision.SnapshotNeeds(later.data, n)
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
		switch info, err := os.Stat(filepath.Join(dir, "jetstream")); {
		case errors.Is(err, fs.ErrPermission):
			return "", "", err
		case err != nil || !info.IsDir():
			continue
		case dir == name:
			return dir, "", nil
		}
		return dir, name, nil
	}
	return "", "", hint.New(fmt.Errorf("%s has no log", name), "give the data directory of the service, or the directory log in it")
}

// snapshot is a snapshot of the state.
type snapshot struct {
	path string
	data []byte
}

func readSnapshot(path string) (*snapshot, error) {
	data, err := os.ReadFile(path)
	return &snapshot{path, data}, err
}

// entry returns the last entry of the snapshot. It returns an error if the log ends before that entry or
// has a different history. A snapshot whose last entry was removed is not compared.
func (s *snapshot) entry(ctx context.Context, log *Log) (uint64, error) {
	at, err := decision.SnapshotPosition(s.data)
	if err != nil {
		return 0, err
	}
	switch _, err = eventlog.Locate(ctx, log, at); {
	case errors.Is(err, eventlog.ErrBeyond):
		err = fmt.Errorf("its last entry is %d, but that of the log is %d", at.Sequence, log.Last)
	case errors.Is(err, eventlog.ErrRemoved):
		err = nil
	}
	return at.Sequence, err
}

// copyLog copies a log. It reports progress in KiB.
func copyLog(ctx context.Context, to, from string, progress func(string, int, int)) error {
	return natslog.Copy(ctx, to, from, func(done, total int64) {
		if progress != nil {
			progress("copying", int(done>>10), int(total>>10))
		}
	})
}

// explained is an error of the copy whose text names the log.
type explained struct {
	error
	text string
}

func (e explained) Error() string { return e.text }
func (e explained) Unwrap() error { return e.error }

func (r *Log) explain(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case errors.Is(err, syscall.ENOSPC):
		return hint.New(err, "the copy needs as much space as the log: set TMPDIR to a directory that has it")
	case err == nil || r.scratch == "":
		return err
	}
	return explained{err, strings.ReplaceAll(err.Error(), r.scratch, r.dir)}
}

// entries yields the entries from a sequence number on, and then r.lost.
func (r *Log) entries(ctx context.Context, what string, from uint64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		n, total := 0, max(int(r.Last+1-from), 1)
		progress := func() {
			if r.options.Progress != nil {
				r.options.Progress(what, n, total)
			}
		}
		for entry, err := range r.Entries(ctx, from) {
			if !yield(entry, r.explain(err)) || err != nil {
				return
			}
			if n++; n%progressEntries == 0 {
				progress()
			}
		}
		progress()
		if r.lost != nil {
			yield(nil, r.lost)
		}
	}
}

// progressEntries is the number of entries between two reports of progress.
const progressEntries = 1000

// Close closes the log and removes the copy.
func (r *Log) Close() (err error) {
	if r.Store != nil {
		err = r.Store.Close()
	}
	if r.scratch != "" {
		err = errors.Join(err, os.RemoveAll(r.scratch))
	}
	return err
}
