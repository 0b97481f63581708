package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/nats-io/nats.go/jetstream"

	"vitrine/decision"
	"vitrine/eventlog"
	"vitrine/eventlog/natslog"
)

// logArg is the log that a command reads.
type logArg struct {
	Log string `arg:"" help:"The data directory of the service, the log in it, or nats://host:4222."`
}

const aboutLog = `The log is not changed, and may be in use: what is read is a copy of it, in the directory for temporary files (TMPDIR), which is removed at the end. Of a server of NATS the log itself is read.`

// logReader reads a log that it does not change.
type logReader struct {
	*natslog.Store
	eventlog.Extent
	snapshot *snapshotFile // the service's, beside the log; nil where there is none
	lost     error         // why the log cannot be trusted to end where it ends; nil where it can
	name     string        // as it was given
	dir      string        // the log's directory; "" on a server
	scratch  string        // that of the copy
}

// open opens a log for reading. Its errors speak of the log, not of the copy.
func (a logArg) open(ctx context.Context, t terminal) (_ *logReader, err error) {
	r := &logReader{name: a.Log}
	defer func() {
		if err != nil {
			err = errors.Join(r.explain(err), r.close())
		}
	}()
	o := natslog.Options{URL: a.Log, ReadOnly: true}
	if !strings.Contains(a.Log, "://") {
		if err := r.copy(ctx, t); err != nil {
			return nil, err
		}
		o.Dir, o.URL = r.scratch, ""
	}
	r.Store, err = natslog.Open(ctx, o)
	if err != nil && o.Dir != "" && ctx.Err() == nil {
		// What is left is read nevertheless: the copy need not be guarded.
		why := r.explain(err)
		if err := os.Remove(filepath.Join(o.Dir, "mark")); err != nil {
			return nil, why
		}
		if r.Store, err = natslog.Open(ctx, o); err == nil {
			r.lost = why
		}
	}
	if errors.Is(err, jetstream.ErrStreamNotFound) && o.Dir != "" {
		return nil, hinted{err, "the stream's description, meta.inf or meta.sum below jetstream/, is damaged or missing: restore these files from a backup"}
	}
	if err != nil {
		return nil, err
	}
	r.Extent, err = r.Store.Extent(ctx)
	return r, err
}

// copy copies the log to a directory of its own.
func (r *logReader) copy(ctx context.Context, t terminal) (err error) {
	var snapshot string
	if r.dir, snapshot, err = findLog(r.name); err != nil {
		return err
	}
	if snapshot != "" { // before the log, which then has all that is in it
		if r.snapshot, err = readSnapshot(snapshot); err != nil {
			return err
		}
	}
	signal.Ignore(syscall.SIGPIPE) // so that the copy is removed, whoever stops reading
	if r.scratch, err = os.MkdirTemp("", "vitrine-log-"); err != nil {
		return err
	}
	return copyLog(ctx, t, r.scratch, r.dir)
}

// findLog returns the directory of the log in a data directory, or that is one
// itself, and the snapshot beside it, "" where there is none.
func findLog(name string) (dir, snapshot string, err error) {
	for _, dir := range []string{filepath.Join(name, logName), name} {
		switch info, err := os.Stat(filepath.Join(dir, "jetstream")); {
		case errors.Is(err, fs.ErrPermission):
			return "", "", err
		case err != nil || !info.IsDir():
			continue
		}
		if snapshot = filepath.Join(name, snapshotName); dir == name || !isFile(snapshot) {
			snapshot = ""
		}
		return dir, snapshot, nil
	}
	return "", "", hinted{fmt.Errorf("%s has no log", name), "give the data directory of the service, or the directory log in it"}
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

// entry returns the last entry that is in it, and reports one that the log does not have.
func (s *snapshotFile) entry(log *logReader) (uint64, error) {
	upTo, err := decision.SnapshotSequence(s.data)
	if err == nil && upTo > log.Last {
		err = fmt.Errorf("it is of entry %d, the last one of the log is %d", upTo, log.Last)
	}
	return upTo, err
}

// What a data directory has: the log, and the snapshot that serve starts from.
const (
	logName      = "log"
	snapshotName = "state.snapshot"
)

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
		return hinted{err, "the copy takes as much as the log has: name a directory with room for it, with TMPDIR"}
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
