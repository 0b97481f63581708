package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"

	"vitrine/service/host"
	"vitrine/service/inspect"
)

// demoLog limits the log of a demonstration in a temporary directory, in bytes.
const demoLog = 1 << 30

type serveCmd struct {
	Config string `placeholder:"FILE" help:"TOML file with the service's configuration."`
	Listen string `placeholder:"ADDRESS" help:"Address to listen on (127.0.0.1:8080). Addresses other than loopback need keys."`
	Demo   bool   `help:"Open a shop with simulated shoppers, in a temporary data directory unless --data names one."`
	Open   bool   `help:"Open the desk in a browser."`
	Data   string `placeholder:"DIR" help:"The directory of the log and the snapshots (vitrine-data)."`

	TakeOver bool `help:"Take over a log on external servers from another running service, which then follows it."`
}

func (serveCmd) Help() string {
	return "The decision service makes decisions, receives their outcomes, and learns from them. Its API is at " +
		"/docs. The file defaults.toml, in the archive or in /usr/share/doc/vitrine, lists every key of the " +
		"configuration. Several processes may share a log on external servers.\n\n" +
		examples("vitrine serve --demo --open", "vitrine serve", "vitrine serve --config service.toml")
}

func (c serveCmd) Run(ctx context.Context, t terminal) (err error) {
	s := host.Default()
	if c.Config != "" {
		if s, err = host.ReadConfig(c.Config); err != nil {
			return err
		}
	}
	s.Listen, s.Data = cmp.Or(c.Listen, s.Listen), cmp.Or(c.Data, s.Data)
	if c.TakeOver && s.Log.URL == "" {
		return usageError{errors.New("--take-over is for logs on servers: this log is in a directory; stop the " +
			"process that uses it")}
	}
	o := host.Options{Version: version, TakeOver: c.TakeOver, Export: inspect.ExportPlacement,
		Logger: slog.New(slog.NewJSONHandler(t.err, &slog.HandlerOptions{Level: s.LogLevel}))}
	if c.Demo {
		if s.Keys != "" || s.TLS.Key != "" {
			return usageError{errors.New("--demo: its shoppers have no API key and no TLS: leave keys and [tls] out")}
		}
		if c.Data == "" {
			if s.Data, err = os.MkdirTemp("", "vitrine-demo-"); err != nil {
				return err
			}
			defer os.RemoveAll(s.Data)
			if s.Retention.Size.Bytes == 0 {
				s.Retention.Size.Bytes = demoLog
			}
		}
		demonstration(s.Data, &o)
	}
	if c.Demo || c.Open {
		scheme := "http"
		if s.TLS.Key != "" {
			scheme = "https"
		}
		announce(&o, scheme, c.Demo, c.Open, t)
	}
	collecting, stop := context.WithCancel(ctx)
	defer stop()
	go host.CollectOften(collecting)
	return host.Run(ctx, s, o)
}
