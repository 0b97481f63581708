package host

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/nats-io/nats.go"

	"vitrine/service/eventlog/natslog"
)

// LogSource says where the log is. The zero value is a log in the data directory; otherwise it is on external servers.
type LogSource struct {
	URL         string `toml:"url"` // nats://host:4222, comma separated
	Stream      string `toml:"stream"`
	Replicas    int    `toml:"replicas"`    // of a stream that is created
	Credentials string `toml:"credentials"` // files, one of these three
	NKey        string `toml:"nkey"`
	Token       string `toml:"token"`
	CA          string `toml:"ca"` // PEM files
	Certificate string `toml:"certificate"`
	Key         string `toml:"key"`
}

// UnmarshalText reads log = "nats://host:4222".
func (l *LogSource) UnmarshalText(text []byte) error {
	*l = LogSource{URL: string(text)}
	return nil
}

// files are the paths that it names.
func (l *LogSource) files() []*string {
	return []*string{&l.Credentials, &l.NKey, &l.Token, &l.CA, &l.Certificate, &l.Key}
}

func (l *LogSource) check() error {
	logins := 0
	for _, file := range []string{l.Credentials, l.NKey, l.Token} {
		if file != "" {
			logins++
		}
	}
	switch {
	case l.URL == "" && *l != LogSource{}:
		return errors.New(" [log] has no url: a log in the data directory needs no more settings")
	case l.Replicas < 0 || l.Replicas > 5:
		return fmt.Errorf(" log.replicas = %d: must be from 1 to 5, or left out", l.Replicas)
	case strings.ContainsAny(l.Stream, " .*>/\\\t\r\n"):
		return fmt.Errorf(" log.stream = %q: must have no spaces, dots, stars, '>' and slashes", l.Stream)
	case logins > 1:
		return errors.New(" [log] has more than one of credentials, nkey and token: give one")
	case (l.Certificate == "") != (l.Key == ""):
		return errors.New(" [log] needs both certificate and key, or none")
	}
	if l.URL == "" {
		return nil
	}
	if _, _, err := natslog.SplitURL(l.URL); err != nil {
		return fmt.Errorf(" log.url: %w", err)
	}
	return nil
}

// options are those that open the log. The files are read when it connects, and when it connects again.
func (l *LogSource) options() (natslog.Options, error) {
	o := natslog.Options{URL: l.URL, Stream: l.Stream, Replicas: l.Replicas}
	for _, file := range l.files() {
		if *file == "" {
			continue
		}
		if _, err := os.ReadFile(*file); err != nil {
			return o, fmt.Errorf("the log's server: %w", err)
		}
	}
	if l.Credentials != "" {
		o.Connect = append(o.Connect, nats.UserCredentials(l.Credentials))
	}
	if l.NKey != "" {
		option, err := nats.NkeyOptionFromSeed(l.NKey)
		if err != nil {
			return o, fmt.Errorf("the log's server: %s: %w", l.NKey, err)
		}
		o.Connect = append(o.Connect, option)
	}
	if l.Token != "" {
		o.Connect = append(o.Connect, nats.TokenHandler(func() string {
			token, _ := os.ReadFile(l.Token) // without it the server refuses
			return strings.TrimSpace(string(token))
		}))
	}
	if l.CA != "" {
		o.Connect = append(o.Connect, nats.RootCAs(l.CA))
	}
	if l.Certificate != "" {
		o.Connect = append(o.Connect, nats.ClientCert(l.Certificate, l.Key))
	}
	return o, nil
}
