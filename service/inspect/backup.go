package inspect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"vitrine/internal/hint"
	"vitrine/internal/replace"
	"vitrine/service/eventlog/natslog"
	"vitrine/service/host"
)

// Backup copies the log and the snapshots of the data directory data to a new directory to. The service
// may be running: the copy has everything that was acknowledged before Backup began. On an error,
// Backup removes the copy. It calls progress, unless that is nil, from time to time.
func Backup(ctx context.Context, data, to string, progress func(what string, done, total int)) (err error) {
	log, data, err := findLog(data)
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return hint.New(fmt.Errorf("%s exists", to), "a backup never overwrites: name a directory that does not exist")
		}
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(to))
		}
	}()
	release, err := natslog.Hold(log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if data != "" { // before the log, so that the log has all of their entries
		if err := copySnapshots(to, data); err != nil {
			return err
		}
	}
	if err := copyLog(ctx, filepath.Join(to, host.LogDir), log, progress); err != nil {
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		return err
	}
	return nil
}

// copySnapshots copies the snapshots of a data directory to another one.
func copySnapshots(to, data string) error {
	for s, err := range snapshotsOf(data) {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(data, s.path)
		if err != nil {
			return err
		}
		copied := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(copied), 0o700); err != nil {
			return err
		}
		if err := replace.Private(copied, s.data); err != nil {
			return err
		}
	}
	return nil
}
