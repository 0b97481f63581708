package main

import (
	"context"
	"os/signal"
	"syscall"

	"vitrine/service/inspect"
)

// logArg is the log that a command reads.
type logArg struct {
	Log  string `arg:"" help:"The data directory of the service, the log in it, nats://host:4222, or the configuration file of the service."`
	Data string `placeholder:"DIR" help:"Of a log on a server: the data directory, where the snapshots are."`
}

const aboutLog = `The log is not changed, and may be in use: what is read is a copy of it, in the directory for temporary files (TMPDIR), which is removed at the end. Of a server of NATS the log itself is read.`

// openLog is a log that a command reads, with its progress on the terminal.
type openLog struct {
	*inspect.Log
	progress stages
}

func (a logArg) open(ctx context.Context, t terminal) (*openLog, error) {
	signal.Ignore(syscall.SIGPIPE) // so that the copy is removed, whoever stops reading
	l := &openLog{progress: stages{w: t.err, name: a.Log}}
	log, err := inspect.Open(ctx, inspect.Options{Log: a.Log, Data: a.Data, Warn: t.warn, Progress: l.progress.report})
	l.progress.close()
	if err != nil {
		return nil, err
	}
	l.Log, l.progress.name = log, log.Name
	return l, nil
}

func (l *openLog) close() error {
	l.progress.close()
	return l.Close()
}
