package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"vitrine/service/server"
)

// service is the configuration of the decision service. Paths are relative to its file.
type service struct {
	Listen   string     `toml:"listen"`
	Health   string     `toml:"health"` // of /healthz and /readyz; "" is at Listen only
	Data     string     `toml:"data"`
	Log      logSource  `toml:"log"`
	Keys     string     `toml:"keys"` // a file of API keys
	LogLevel slog.Level `toml:"log_level"`
	TLS      struct {
		Certificate string `toml:"certificate"`
		Key         string `toml:"key"`
	} `toml:"tls"`
	Limits struct {
		Body        int64   `toml:"body"`
		Concurrent  int     `toml:"concurrent"`
		Rate        float64 `toml:"rate"`
		Burst       int     `toml:"burst"`
		Connections int     `toml:"connections"`
		Subscribers int     `toml:"subscribers"`

		KeyConcurrent  int `toml:"key_concurrent"`
		KeySubscribers int `toml:"key_subscribers"`

		Answer span `toml:"answer"`
	} `toml:"limits"`
	Timeouts struct {
		Header span `toml:"header"`
		Read   span `toml:"read"`
		Write  span `toml:"write"`
		Idle   span `toml:"idle"`
		Drain  span `toml:"drain"`
	} `toml:"timeouts"`
	Snapshots struct {
		Every     span `toml:"every"`      // between snapshots of the state
		KeepEvery span `toml:"keep_every"` // between versions to roll back to
	} `toml:"snapshots"`
	Retention struct { // of the log; what is left out is no limit
		Age  span      `toml:"age"`
		Size byteCount `toml:"size"`
	} `toml:"retention"`

	demo     bool
	wall     func() time.Time // the time of day
	takeOver bool             // the log, from a process that is alive
	process  string           // names this process among those that write the log
	patience time.Duration    // with the log; 0 is natslog's
}

// span is a positive time.Duration, in a file a string; "90d" are days of 24 hours.
type span struct{ time.Duration }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *span) UnmarshalText(text []byte) (err error) {
	if days, ok := strings.CutSuffix(string(text), "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		d.Duration = time.Duration(n) * 24 * time.Hour
	} else {
		d.Duration, err = time.ParseDuration(string(text))
	}
	if err != nil || d.Duration <= 0 {
		return fmt.Errorf("%q: must be a positive duration such as \"30s\" or \"90d\"", text)
	}
	return nil
}

// byteCount is a positive number of bytes, in a file a string such as "10GB".
type byteCount uint64

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *byteCount) UnmarshalText(text []byte) error {
	number := strings.TrimRight(string(text), "kKMGTiB")
	unit, ok := map[string]uint64{
		"B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
	}[string(text[len(number):])]
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil || !ok || n == 0 || n > math.MaxInt64/unit {
		return fmt.Errorf("%q: must be a positive size such as \"500MB\" or \"10GB\"", text)
	}
	*b = byteCount(n * unit)
	return nil
}

// readService reads a configuration strictly. No path is one that says nothing.
func readService(path string) (*service, error) {
	s := &service{Listen: "127.0.0.1:8080", Data: "vitrine-data", wall: time.Now}
	s.Snapshots.Every.Duration, s.Snapshots.KeepEvery.Duration = 5*time.Minute, time.Hour
	if path == "" {
		return s, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := s.parse(text); err != nil {
		return nil, fmt.Errorf("%s:%w", path, err)
	}
	for _, p := range append(s.Log.files(), &s.Data, &s.Keys, &s.TLS.Certificate, &s.TLS.Key) {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(filepath.Dir(path), *p)
		}
	}
	return s, nil
}

func (s *service) parse(text []byte) error {
	d := toml.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(s)
	var strict *toml.StrictMissingError
	var at *toml.DecodeError
	switch {
	case errors.As(err, &strict):
		first := strict.Errors[0]
		line, _ := first.Position()
		return fmt.Errorf("%d: unknown key %q", line, strings.Join(first.Key(), "."))
	case errors.As(err, &at):
		line, _ := at.Position()
		return fmt.Errorf("%d: %s", line, strings.TrimPrefix(at.Error(), "toml: "))
	case err != nil:
		return fmt.Errorf(" %w", err)
	}
	const most = math.MaxInt32
	for _, l := range []struct {
		key   string
		value float64
	}{
		{"body", float64(s.Limits.Body)}, {"concurrent", float64(s.Limits.Concurrent)}, {"rate", s.Limits.Rate},
		{"burst", float64(s.Limits.Burst)}, {"connections", float64(s.Limits.Connections)}, {"subscribers", float64(s.Limits.Subscribers)},
		{"key_concurrent", float64(s.Limits.KeyConcurrent)}, {"key_subscribers", float64(s.Limits.KeySubscribers)},
	} {
		if !(l.value >= 0 && l.value <= most) {
			return fmt.Errorf(" limits.%s = %v: must be from 0, which is the default, to %d", l.key, l.value, most)
		}
	}
	if (s.TLS.Certificate == "") != (s.TLS.Key == "") {
		return errors.New(" [tls] needs both certificate and key")
	}
	return s.Log.check()
}

func (s *service) limits() server.Limits {
	l := s.Limits
	return server.Limits{
		Body: l.Body, Concurrent: l.Concurrent, Rate: l.Rate, Burst: l.Burst, Connections: l.Connections, Subscribers: l.Subscribers, Answer: l.Answer.Duration,
		KeyConcurrent: l.KeyConcurrent, KeySubscribers: l.KeySubscribers,
	}
}

func (s *service) listen() server.Listen {
	t := s.Timeouts
	return server.Listen{
		Address: s.Listen, Health: s.Health, Certificate: s.TLS.Certificate, Key: s.TLS.Key,
		Header: t.Header.Duration, Read: t.Read.Duration, Write: t.Write.Duration, Idle: t.Idle.Duration, Drain: t.Drain.Duration,
	}
}
