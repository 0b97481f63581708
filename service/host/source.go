package host

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/nats-io/nats.go"

	"vitrine/service/eventlog/natslog"
)

// LogSource says where the log is: in the data directory if it is the zero value, and on NATS servers
// otherwise.
type LogSource struct {
	URL         string `toml:"url"`         // such as nats://host:4222; several are separated by commas
	Stream      string `toml:"stream"`      // the name of the stream
	Replicas    int    `toml:"replicas"`    // of the stream, if it is created
	Credentials string `toml:"credentials"` // a file; give at most one of Credentials, NKey and Token
	NKey        string `toml:"nkey"`        // a file
	Token       string `toml:"token"`       // a file
	CA          string `toml:"ca"`          // a PEM file
	Certificate string `toml:"certificate"` // a PEM file
	Key         string `toml:"key"`         // a PEM file
}

// files returns the fields that name files.
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
		return errors.New("[log] has no url: a log in the data directory has no settings")
	case l.Replicas < 0 || l.Replicas > 5:
		return fmt.Errorf("log.replicas = %d: must be from 1 to 5, or left out", l.Replicas)
	case strings.ContainsAny(l.Stream, " .*>/\\\t\r\n"):
		return fmt.Errorf("log.stream = %q: must not contain spaces, '.', '*', '>' or slashes", l.Stream)
	case logins > 1:
		return errors.New("[log] has more than one of credentials, nkey and token: keep one")
	case (l.Certificate == "") != (l.Key == ""):
		return errors.New("[log] needs both certificate and key, or neither")
	}
	if l.URL == "" {
		return nil
	}
	if _, _, err := natslog.SplitURL(l.URL); err != nil {
		return fmt.Errorf("log.url: %w", err)
	}
	return nil
}

// Options returns the options that open a log on NATS servers. Files of credentials are read at every connection.
func (l *LogSource) Options() (natslog.Options, error) {
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
			token, _ := os.ReadFile(l.Token) // if that fails, the server refuses the empty token
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
