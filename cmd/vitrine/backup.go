package main

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

type backupCmd struct {
	Data string `arg:"" help:"The data directory of the service."`
	To   string `arg:"" help:"The directory to make."`
}

// Help is the tail of the command's help.
func (backupCmd) Help() string {
	return `The service may be running: the copy has every decision and outcome that was acknowledged before. It is a data directory itself: to restore it, let the service have it, or a copy of it, in the place of its own. Keys and configuration are files of yours, and not in it.

` + examples("vitrine backup vitrine-data /backup/2026-01-02", "vitrine check /backup/2026-01-02")
}

// Run copies the data directory. What cannot be copied whole is removed.
func (c backupCmd) Run(ctx context.Context, t terminal) (err error) {
	log, data, err := findLog(c.Data)
	if err != nil {
		return err
	}
	if err := os.Mkdir(c.To, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return hint.New(fmt.Errorf("%s exists", c.To), "a backup never overwrites: name a directory that is to be made")
		}
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(c.To))
		}
	}()
	release, err := natslog.Hold(log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if data != "" { // before the log, which then has all that is in them
		if err := copySnapshots(c.To, data); err != nil {
			return err
		}
	}
	if err := copyLog(ctx, t, filepath.Join(c.To, host.LogDir), log); err != nil {
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		return err
	}
	fmt.Fprintf(t.err, "vitrine: %s is a copy of %s: vitrine check verifies it\n", c.To, c.Data)
	return nil
}

// copySnapshots copies those of a data directory to another one.
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
		if err := replace.File(copied, s.data); err != nil {
			return err
		}
	}
	return nil
}
