package host

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"vitrine/internal/sockets"
	"vitrine/internal/strict"
	"vitrine/service/alert"
	"vitrine/service/budget"
	"vitrine/service/server"
)

// Config is the configuration of the decision service. In a file it is TOML; deploy/defaults.toml explains every key.
type Config struct {
	Listen   string     `toml:"listen"`
	Health   string     `toml:"health"` // another address for /healthz and /readyz, or ""
	Data     string     `toml:"data"`
	Log      LogSource  `toml:"log"`
	Keys     string     `toml:"keys"` // a file of API keys
	LogLevel slog.Level `toml:"log_level"`

	TrustedProxies      []string `toml:"trusted_proxies"`       // addresses and networks of proxies before the service
	ClientAddressHeader string   `toml:"client_address_header"` // the header that names the caller; "" is X-Forwarded-For

	Personalizer bool `toml:"personalizer"` // whether the first Rank creates the placement of that name

	TLS struct {
		Certificate string `toml:"certificate"`
		Key         string `toml:"key"`
	} `toml:"tls"`
	Limits struct {
		server.Limits

		Memory ByteCount `toml:"memory"` // shared by placements and requests; 0 is half of the memory available
		Answer Span      `toml:"answer"`
	} `toml:"limits"`
	Alerts struct {
		URL    string `toml:"url"`    // of a webhook, or ""
		Secret string `toml:"secret"` // a file with the secret that signs
		Level  string `toml:"level"`  // bad, or warning for both; "" is bad
	} `toml:"alerts"`
	CORS struct {
		Origins []string `toml:"origins"` // pages of these may call the service
	} `toml:"cors"`
	Timeouts struct {
		Header Span `toml:"header"`
		Read   Span `toml:"read"`
		Write  Span `toml:"write"`
		Idle   Span `toml:"idle"`
		Drain  Span `toml:"drain"`
	} `toml:"timeouts"`
	Snapshots struct {
		Every     Span `toml:"every"`      // between snapshots of the state
		KeepEvery Span `toml:"keep_every"` // between versions to roll back to
	} `toml:"snapshots"`
	Retention struct { // of the log; 0 is no limit
		Age  Span      `toml:"age"`
		Size ByteCount `toml:"size"`
	} `toml:"retention"`
}

// Span is a positive duration. In a file it is a string such as "30s"; "90d" is 90 days of 24 hours.
type Span struct{ time.Duration }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Span) UnmarshalText(text []byte) (err error) {
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

// ByteCount is a positive number of bytes. In a file it is a string such as "10GB" or "10GiB". It is a struct so that a
// file's number without a unit is an error.
type ByteCount struct{ Bytes uint64 }

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *ByteCount) UnmarshalText(text []byte) error {
	number := strings.TrimRight(string(text), "kKMGTiB")
	unit, ok := map[string]uint64{
		"B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
		"TiB": 1 << 40,
	}[string(text[len(number):])]
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil || !ok || n == 0 || n > math.MaxInt64/unit {
		return fmt.Errorf("%q: must be a positive size such as \"500MB\" or \"10GB\"", text)
	}
	b.Bytes = n * unit
	return nil
}

// Default returns the configuration of an empty file. A [Config] made in Go begins with it.
func Default() *Config {
	c := &Config{Listen: "127.0.0.1:8080", Data: "vitrine-data"}
	c.Snapshots.Every.Duration, c.Snapshots.KeepEvery.Duration = 5*time.Minute, time.Hour
	return c
}

// ReadConfig reads a configuration file. Unknown keys are errors that name the line. Paths in the file
// are relative to its directory.
func ReadConfig(path string) (*Config, error) {
	c := Default()
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := c.parse(text); err != nil {
		return nil, strict.In(path, err)
	}
	for _, p := range append(c.Log.files(), &c.Data, &c.Keys, &c.TLS.Certificate, &c.TLS.Key, &c.Alerts.Secret) {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(filepath.Dir(path), *p)
		}
	}
	return c, nil
}

func (c *Config) parse(text []byte) error {
	if err := strict.Decode(text, c); err != nil {
		return err
	}
	return c.check()
}

func (c *Config) check() error {
	if s := c.Snapshots; s.Every.Duration <= 0 || s.KeepEvery.Duration <= 0 {
		return fmt.Errorf("snapshots every %v, kept every %v: must be positive, as in host.Default", s.Every, s.KeepEvery)
	}
	for key, d := range map[string]Span{
		"header": c.Timeouts.Header, "read": c.Timeouts.Read, "write": c.Timeouts.Write, "idle": c.Timeouts.Idle,
		"drain": c.Timeouts.Drain,
	} {
		if d.Duration < 0 {
			return fmt.Errorf("timeouts.%s = %v: must not be negative", key, d)
		}
	}
	for key, address := range map[string]string{"listen": c.Listen, "health": c.Health} {
		if address != "" && !isAddress(address) {
			return fmt.Errorf("%s = %q: must be \"HOST:PORT\" with a port from 0 to 65535, such as \"127.0.0.1:8080\"",
				key, address)
		}
	}
	if c.Data == "" {
		return errors.New("data is empty: name a directory")
	}
	if err := c.checkLimits(); err != nil {
		return err
	}
	for _, origin := range c.CORS.Origins {
		if err := server.CheckOrigin(origin); err != nil {
			return fmt.Errorf("cors.origins: %w", err)
		}
	}
	if _, err := c.proxies(); err != nil {
		return err
	}
	if a := c.Alerts; (a.URL == "") != (a.Secret == "") || a.URL == "" && a.Level != "" {
		return errors.New("[alerts] needs both url and secret, a file with a secret that echo whsec_$(openssl " +
			"rand -base64 32) makes")
	}
	if err := alert.CheckLevel(c.Alerts.Level); err != nil {
		return err
	}
	if (c.TLS.Certificate == "") != (c.TLS.Key == "") {
		return errors.New("[tls] needs both certificate and key")
	}
	return c.Log.check()
}

func (c *Config) checkLimits() error {
	const maxLimit = math.MaxInt32
	l := &c.Limits
	for _, n := range []struct {
		key   string
		value float64
	}{
		{"body", float64(l.Body)}, {"concurrent", float64(l.Concurrent)}, {"rate", l.Rate}, {"burst", float64(l.Burst)},
		{"connections", float64(l.Connections)}, {"subscribers", float64(l.Subscribers)},
		{"key_concurrent", float64(l.KeyConcurrent)}, {"key_subscribers", float64(l.KeySubscribers)},
	} {
		if !(n.value >= 0 && n.value <= maxLimit) {
			return fmt.Errorf("limits.%s = %v: must be from 0, which is the default, to %d", n.key, n.value, maxLimit)
		}
	}
	const minMemory = 32 << 20 // less is probably a wrong unit
	if m := l.Memory.Bytes; m > 0 && m < minMemory {
		return fmt.Errorf("limits.memory is %d bytes: must be at least %d, 32MiB", m, minMemory)
	}
	if l.Burst > 0 && l.Rate == 0 {
		return fmt.Errorf("limits.burst = %d: bounds nothing without limits.rate, the requests a second of an API key", l.Burst)
	}
	return nil
}

func isAddress(text string) bool {
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = net.LookupPort("tcp", port) // which may be a name, such as https
	}
	return err == nil
}

// budget returns a new budget. Each session gets its own.
func (c *Config) budget() *budget.Budget {
	return budget.New(cmp.Or(int64(c.Limits.Memory.Bytes), defaultMemory()))
}

func (c *Config) limits() server.Limits {
	l := c.Limits.Limits
	l.Connections = min(cmp.Or(l.Connections, server.DefaultConnections), maxFiles()/4) // the log needs files, too
	l.Answer = c.Limits.Answer.Duration
	return l
}

func (c *Config) proxies() (sockets.Proxies, error) {
	return sockets.ParseProxies(c.TrustedProxies, c.ClientAddressHeader)
}

func (c *Config) listen() server.Listen {
	t := c.Timeouts
	return server.Listen{
		Address: c.Listen, Health: c.Health, Certificate: c.TLS.Certificate, Key: c.TLS.Key,
		Header: t.Header.Duration, Read: t.Read.Duration, Write: t.Write.Duration, Idle: t.Idle.Duration,
		Drain: t.Drain.Duration,
	}
}
