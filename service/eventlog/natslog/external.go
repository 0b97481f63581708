package natslog

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// SplitURL splits a comma-separated list of server addresses, such as nats://user:password@host:4222 or
// nats://token@host:4222, into addresses without secrets and the user, which all addresses must share. Errors contain
// no secrets.
func SplitURL(urls string) (hosts string, user *url.Userinfo, err error) {
	var list []string
	for i, text := range strings.Split(urls, ",") {
		text = strings.TrimSpace(text)
		if !strings.Contains(text, "://") {
			text = "nats://" + text
		}
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || strings.HasPrefix(u.Scheme, "http") {
			return "", nil, fmt.Errorf("natslog: address %d of the log's server is not a URL such as nats://host:4222",
				i+1)
		}
		if u.User != nil {
			if user != nil && user.String() != u.User.String() {
				return "", nil, fmt.Errorf("natslog: address %d of the log's server names another user than those "+
					"before: give one user for all", i+1)
			}
			user, u.User = u.User, nil
		}
		list = append(list, u.String())
	}
	return strings.Join(list, ","), user, nil
}

// login returns the option that authorises a user or the bearer of a token; nil is anonymous.
func login(user *url.Userinfo) nats.Option {
	if user == nil {
		return func(*nats.Options) error { return nil }
	}
	if password, ok := user.Password(); ok {
		return nats.UserInfo(user.Username(), password)
	}
	return nats.Token(user.Username())
}

// If a server's machine is gone or cut off, the server cannot even close its connections. After some unanswered pings,
// the next server is asked.
const (
	pingInterval = time.Second
	maxPings     = 2
)

// writeTime is how long a server may stop reading from the connection. Meanwhile all other writes wait, even pings.
const writeTime = 5 * time.Second

// Conn is the part of a server connection that a store uses besides JetStream.
type Conn interface {
	RequestMsgWithContext(ctx context.Context, m *nats.Msg) (*nats.Msg, error)
	PublishMsg(m *nats.Msg) error
	Listen(subject string, handle nats.MsgHandler) (stop func(), err error)
	FlushTimeout(time.Duration) error
	ForceReconnect() error
	IsConnected() bool
	MaxPayload() int64
	Servers() []string
	ConnectedClusterName() string
	ConnectedUrlRedacted() string
	Close()
}

// netConn is a Conn to a real server.
type netConn struct{ *nats.Conn }

func (c netConn) Listen(subject string, handle nats.MsgHandler) (stop func(), err error) {
	sub, err := c.Subscribe(subject, handle)
	return func() { _ = sub.Unsubscribe() }, err // a closed connection has no subscriptions
}

// dial connects to the servers, and keeps reconnecting, also while they refuse the credentials: an operator may be
// changing them.
func (s *Store) dial() (Conn, jetstream.JetStream, error) {
	if s.options.Servers != nil {
		conn, js := s.options.Servers()
		return conn, js, nil
	}
	said := "" // by failed attempts since the connection was lost
	options := append([]nats.Option{
		nats.Name("vitrine"), nats.MaxReconnects(-1), nats.ReconnectWait(100 * time.Millisecond), login(s.user),
		nats.IgnoreAuthErrorAbort(),
		nats.PingInterval(pingInterval), nats.MaxPingsOutstanding(maxPings), nats.FlusherTimeout(writeTime),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil { // nil if this store closed the connection
				s.options.Logger.Warn("disconnected from the log's server", "cause", err.Error())
			}
		}),
		nats.ReconnectHandler(func(c *nats.Conn) {
			said = ""
			s.options.Logger.Info("connected to the log's server again", "server", c.ConnectedUrlRedacted())
		}),
		nats.ErrorHandler(func(c *nats.Conn, _ *nats.Subscription, err error) {
			if text := err.Error(); text != said || c.IsConnected() {
				said = text
				s.options.Logger.Warn("the log's server", "cause", text)
			}
		}),
		nats.ClosedHandler(func(*nats.Conn) { s.cut.Store(true) }),
	}, s.options.Connect...)
	conn, err := nats.Connect(s.options.URL, options...)
	if err != nil {
		return nil, nil, err
	}
	if v := conn.ConnectedServerVersion(); !syncsAlways(v) {
		conn.Close()
		return nil, nil, fmt.Errorf("it has version %s, which cannot sync each write before it acknowledges it: "+
			"use 2.10 or later", v)
	}
	js, err := jetstream.New(conn)
	return netConn{conn}, js, err
}

// syncsAlways reports whether a server version supports sync: always.
func syncsAlways(version string) bool {
	var major, minor int
	_, err := fmt.Sscanf(version, "%d.%d", &major, &minor)
	return err == nil && (major > 2 || major == 2 && minor >= 10)
}

// newReplicas returns the number of replicas for a new stream.
func (s *Store) newReplicas() int {
	switch {
	case s.options.Replicas > 0:
		return s.options.Replicas
	case s.conn.ConnectedClusterName() != "" && len(s.conn.Servers()) >= 3:
		return 3
	}
	return 1
}

// checkReplicas warns if the stream uses fewer replicas than a new one would.
func (s *Store) checkReplicas(ctx context.Context) {
	if want := s.newReplicas(); s.replicas < want {
		s.options.Logger.WarnContext(ctx,
			"the log has fewer replicas than its cluster allows: an entry that one server lost may be gone",
			"replicas", s.replicas, "want", want, "change", fmt.Sprintf("nats stream edit %s --replicas %d",
				s.options.Stream, want))
	}
}
