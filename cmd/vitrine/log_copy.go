package main

import (
	"context"
	"fmt"

	"vitrine/service/inspect"
)

type logCmd struct {
	Copy logCopyCmd `cmd:"" help:"Copy the log to another directory, to NATS servers, or from there."`
}

type logCopyCmd struct {
	logArg
	To string `arg:"" help:"Where the copy goes: a data directory, nats://host:4222, or the configuration file of the service."`
}

func (logCopyCmd) Help() string {
	return `The copy has the entries of the log, its identity and its numbers, and the newest snapshot, so a service started on the copy continues where the other one ended. The keys of remembered shoppers stay behind, as in a backup: to a service on the copy all shoppers are new. At the end the command compares the running hashes of both logs. If the copy is interrupted, give the same command again: it continues after the last entry copied.

Stop the services first, unless the copy is a backup: decisions logged after the copy are not in it, and two logs that both grow cannot be joined. While the command runs, no service can write to the copy.

` + examples("vitrine log copy vitrine-data nats://127.0.0.1:4222", "vitrine log copy service.toml vitrine-data")
}

func (c logCopyCmd) Run(ctx context.Context, t terminal) error {
	progress := stages{w: t.err, name: c.Log}
	defer progress.close()
	at, err := inspect.Copy(ctx, inspect.Options{Log: c.Log, Data: c.Data, Warn: t.warn, Progress: progress.report},
		c.To)
	progress.close()
	if err != nil {
		return err
	}
	fmt.Fprintf(t.out, "both logs end at entry %d, with the same running hash %x\n", at.Sequence, at.Hash)
	return nil
}
