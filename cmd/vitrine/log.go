package main

import (
	"context"
	"os/signal"
	"syscall"

	"vitrine/service/inspect"
)

type logArg struct {
	Log  string `arg:"" help:"The data directory of the service, its log, nats://host:4222, or the configuration file of the service."`
	Data string `placeholder:"DIR" help:"For a log on servers: directory with snapshots. Default: the configuration's, otherwise the newest snapshot on the servers."`
}

const aboutLog = `The log is not changed, and a service may be writing it. The service removes no entries of a log in a directory while the command reads it.`

// openLog is an opened log, with its progress on the terminal.
type openLog struct {
	*inspect.Log
	progress stages
}

func (a logArg) open(ctx context.Context, t terminal) (*openLog, error) {
	signal.Ignore(syscall.SIGPIPE) // damage is reported even if the reader of the output stops
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
