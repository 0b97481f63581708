package host

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"

	"vitrine/service/eventlog/natslog"
)

// LogSource says where the log is: in the data directory if it is the zero value, and on external NATS
// servers otherwise.
type LogSource struct {
	URL         string `toml:"url"`         // such as nats://host:4222; several are separated by commas
	Stream      string `toml:"stream"`      // the name of the stream
	Replicas    int    `toml:"replicas"`    // of the stream, if it is created
	Shards      int    `toml:"shards"`      // streams with a leader each, which share the placements; 0 and 1 are the only one
	Follow      []int  `toml:"follow"`      // the shards that this process follows; empty is all
	Credentials string `toml:"credentials"` // a file; give at most one of Credentials, NKey and Token
	NKey        string `toml:"nkey"`        // a file
	Token       string `toml:"token"`       // a file
	CA          string `toml:"ca"`          // a PEM file
	Certificate string `toml:"certificate"` // a PEM file
	Key         string `toml:"key"`         // a PEM file
}

// maxShards limits the shards of a service. Each has an engine in every process that follows it.
const maxShards = 1000

// UnmarshalText implements encoding.TextUnmarshaler, for log = "nats://host:4222".
func (l *LogSource) UnmarshalText(text []byte) error {
	*l = LogSource{URL: string(text)}
	return nil
}

// files returns the fields that name files.
func (l *LogSource) files() []*string {
	return []*string{&l.Credentials, &l.NKey, &l.Token, &l.CA, &l.Certificate, &l.Key}
}

func (l *LogSource) check() error {
	if len(l.Follow) == 0 {
		l.Follow = nil
	}
	logins := 0
	for _, file := range []string{l.Credentials, l.NKey, l.Token} {
		if file != "" {
			logins++
		}
	}
	switch {
	case l.URL == "" && !reflect.ValueOf(*l).IsZero():
		return errors.New("[log] has no url: a log in the data directory has no settings")
	case l.Replicas < 0 || l.Replicas > 5:
		return fmt.Errorf("log.replicas = %d: must be from 1 to 5, or left out", l.Replicas)
	case l.Shards < 0 || l.Shards > maxShards:
		return fmt.Errorf("log.shards = %d: must be from 1 to %d, or left out", l.Shards, maxShards)
	case len(l.Follow) > 0 && l.Shards < 2:
		return errors.New("log.follow is for a log of several shards: set log.shards, or leave it out")
	case strings.ContainsAny(l.Stream, " .*>/\\\t\r\n"):
		return fmt.Errorf("log.stream = %q: must not contain spaces, '.', '*', '>' or slashes", l.Stream)
	case logins > 1:
		return errors.New("[log] has more than one of credentials, nkey and token: keep one")
	case (l.Certificate == "") != (l.Key == ""):
		return errors.New("[log] needs both certificate and key, or neither")
	}
	for i, shard := range l.Follow {
		if shard < 1 || shard > l.Shards || slices.Contains(l.Follow[:i], shard) {
			return fmt.Errorf("log.follow = %v: must be different shards from 1 to %d", l.Follow, l.Shards)
		}
	}
	if l.URL == "" {
		return nil
	}
	if _, _, err := natslog.SplitURL(l.URL); err != nil {
		return fmt.Errorf("log.url: %w", err)
	}
	return nil
}

// options returns the options that open the log. Files are read at every connection.
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
