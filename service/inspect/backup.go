package inspect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"vitrine/internal/hint"
	"vitrine/service/eventlog/filelog"
	"vitrine/service/host"
)

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
		return explain(err)
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	if from.Damage() != nil {
		return from.Damage()
	}
	_, err = copyEntries(ctx, filepath.Join(to, host.LogDir), from, progress)
	return explain(err)
}
