package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"vitrine/internal/hint"
	"vitrine/service/decision"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/natslog"
	"vitrine/service/host"
)

// logArg is the log that a command reads.
type logArg struct {
	Log  string `arg:"" help:"The data directory of the service, the log in it, nats://host:4222, or the configuration file of the service."`
	Data string `placeholder:"DIR" help:"Of a log on a server: the data directory, where the snapshots are."`
}

const aboutLog = `The log is not changed, and may be in use: what is read is a copy of it, in the directory for temporary files (TMPDIR), which is removed at the end. Of a server of NATS the log itself is read.`

// logReader reads a log that it does not change.
type logReader struct {
	*natslog.Store
	eventlog.Extent
	snapshots []*snapshotFile // beside the log: the service's, and bases
	lost      error           // why the log cannot be trusted to begin or end where it does; nil where it can
	name      string          // as it was given
	dir       string          // the log's directory; "" on a server
	scratch   string          // that of the copy
}

// open opens a log for reading. Its errors speak of the log, not of the copy.
func (a logArg) open(ctx context.Context, t terminal) (_ *logReader, err error) {
	r := &logReader{name: a.Log}
	o, err := r.source(a)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(r.explain(err), r.close())
		}
	}()
	o.Logger = slog.New(warner{r, t})
	if o.ReadOnly = true; o.URL != "" {
		err = r.readSnapshots(a.Data)
	} else {
		err = r.copy(ctx, t)
		o.Dir = r.scratch
	}
	if err != nil {
		return nil, err
	}
	r.Store, err = natslog.Open(ctx, o)
	if err != nil && o.Dir != "" && ctx.Err() == nil {
		// What is left is read nevertheless: the copy need not be guarded.
		why := r.explain(err)
		if err := os.Remove(filepath.Join(o.Dir, "mark")); err != nil {
			return nil, why
		}
		o.Logger = nil // the loss is told
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

// source returns the options of a log on external servers, none of one in a directory.
func (r *logReader) source(a logArg) (natslog.Options, error) {
	if strings.Contains(a.Log, "://") {
		hosts, _, err := natslog.SplitURL(a.Log)
		r.name = hosts
		return natslog.Options{URL: a.Log}, err
	}
	if !strings.HasSuffix(a.Log, ".toml") {
		return natslog.Options{}, nil
	}
	s, err := host.ReadConfig(a.Log)
	if err != nil {
		return natslog.Options{}, err
	}
	if s.Log.URL == "" {
		r.name = s.Data
		return natslog.Options{}, nil
	}
	return s.LogOptions()
}

// warner is a slog.Handler that puts what the log warns of on the terminal.
type warner struct {
	log *logReader
	terminal
}

func (w warner) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (w warner) WithAttrs([]slog.Attr) slog.Handler               { return w }
func (w warner) WithGroup(string) slog.Handler                    { return w }

func (w warner) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += fmt.Sprintf(": %s %v", a.Key, a.Value); return true })
	w.warn(w.log.explain(errors.New(text)).Error())
	return nil
}

// copy copies the log to a directory of its own.
func (r *logReader) copy(ctx context.Context, t terminal) (err error) {
	var data string
	if r.dir, data, err = findLog(r.name); err != nil {
		return err
	}
	release, err := natslog.Hold(r.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if err := r.readSnapshots(data); err != nil { // before the log, which then has all that is in them
		return err
	}
	signal.Ignore(syscall.SIGPIPE) // so that the copy is removed, whoever stops reading
	if r.scratch, err = os.MkdirTemp("", "vitrine-log-"); err != nil {
		return err
	}
	return copyLog(ctx, t, r.scratch, r.dir)
}

// readSnapshots reads those of a data directory, "" of none.
func (r *logReader) readSnapshots(data string) error {
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

// snapshotsOf yields the snapshots of a data directory that a service may be changing meanwhile.
func snapshotsOf(data string) iter.Seq2[*snapshotFile, error] {
	return func(yield func(*snapshotFile, error) bool) {
		paths, err := host.Snapshots(data)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, path := range paths {
			s, err := readSnapshot(path)
			if errors.Is(err, fs.ErrNotExist) { // not needed any more
				continue
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

// base returns the earliest snapshot that the log can begin with, nil where there is none.
func (r *logReader) base(ctx context.Context) (base *snapshotFile, upTo uint64) {
	for _, s := range r.snapshots {
		n, err := s.entry(ctx, r)
		if err == nil && n+1 >= r.First && (base == nil || n < upTo) {
			base, upTo = s, n
		}
	}
	return base, upTo
}

// findLog returns the directory of the log, and the data directory that it is in, "" where the log
// itself is named.
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

// snapshotFile is a snapshot of the state.
type snapshotFile struct {
	path string
	data []byte
}

func readSnapshot(path string) (*snapshotFile, error) {
	data, err := os.ReadFile(path)
	return &snapshotFile{path, data}, err
}

// entry returns the last entry that is in it, and reports one that the log does not have, or has with
// another history. Of entries that were removed it cannot know.
func (s *snapshotFile) entry(ctx context.Context, log *logReader) (uint64, error) {
	at, err := decision.SnapshotPosition(s.data)
	if err != nil {
		return 0, err
	}
	switch _, err = decision.Locate(ctx, log, at); {
	case errors.Is(err, eventlog.ErrBeyond):
		err = fmt.Errorf("it is of entry %d, the last one of the log is %d", at.Sequence, log.Last)
	case errors.Is(err, eventlog.ErrRemoved):
		err = nil
	}
	return at.Sequence, err
}

// copyLog copies a log with progress.
func copyLog(ctx context.Context, t terminal, to, from string) error {
	s := stages{w: t.err, name: from}
	defer s.close()
	return natslog.Copy(ctx, to, from, func(done, total int64) { s.report("copying", int(done>>10), int(total>>10)) })
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// explained is an error of the copy, told of the log.
type explained struct {
	error
	text string
}

func (e explained) Error() string { return e.text }
func (e explained) Unwrap() error { return e.error }

func (r *logReader) explain(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case errors.Is(err, syscall.ENOSPC):
		return hint.New(err, "the copy takes as much as the log has: name a directory with room for it, with TMPDIR")
	case err == nil || r.scratch == "":
		return err
	}
	return explained{err, strings.ReplaceAll(err.Error(), r.scratch, r.dir)}
}

// entries yields the entries from a sequence on, with progress. What is wrong with
// the log's end comes last.
func (r *logReader) entries(ctx context.Context, t terminal, what string, from uint64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		bar := newProgress(t.err, what+" "+r.name, "", max(int(r.Last+1-from), 1))
		defer bar.close()
		n := 0
		for entry, err := range r.Entries(ctx, from) {
			if !yield(entry, r.explain(err)) || err != nil {
				return
			}
			if n++; n%progressEntries == 0 {
				bar.add(progressEntries)
			}
		}
		bar.add(n % progressEntries)
		if r.lost != nil {
			yield(nil, r.lost)
		}
	}
}

// progressEntries is how many entries are between two reports.
const progressEntries = 1000

// close closes the copy and removes it.
func (r *logReader) close() (err error) {
	if r.Store != nil {
		err = r.Store.Close()
	}
	if r.scratch != "" {
		err = errors.Join(err, os.RemoveAll(r.scratch))
	}
	return err
}
