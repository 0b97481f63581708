package main

import (
	"context"
	"fmt"

	"vitrine/service/inspect"
)

type backupCmd struct {
	Data string `arg:"" help:"The data directory of the service, or its configuration file."`
	To   string `arg:"" help:"The directory to create."`
}

func (backupCmd) Help() string {
	return `The copy has every decision and outcome acknowledged before the command began. A log on NATS servers is copied by vitrine log copy instead. The copy is a data directory: to restore it, start the service on it or on a copy of it. Keys and configuration are your own files and are not copied.

` + examples("vitrine backup vitrine-data /backup/2026-01-02", "vitrine check /backup/2026-01-02")
}

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
