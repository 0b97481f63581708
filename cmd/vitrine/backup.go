package main

import (
	"context"
	"fmt"

	"vitrine/service/inspect"
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

// Run copies the data directory.
func (c backupCmd) Run(ctx context.Context, t terminal) error {
	progress := stages{w: t.err, name: c.Data}
	defer progress.close()
	if err := inspect.Backup(ctx, c.Data, c.To, progress.report); err != nil {
		return err
	}
	progress.close()
	fmt.Fprintf(t.err, "vitrine: %s is a copy of %s: vitrine check verifies it\n", c.To, c.Data)
	return nil
}
