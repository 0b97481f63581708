package host

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/trace"

	"vitrine/internal/flock"
	"vitrine/internal/hint"
	"vitrine/internal/replace"
	"vitrine/internal/sockets"
	"vitrine/internal/wait"
	"vitrine/service/alert"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/filelog"
	"vitrine/service/eventlog/natslog"
	"vitrine/service/feed"
	"vitrine/service/keys"
	"vitrine/service/metrics"
	"vitrine/service/server"
	"vitrine/service/shoppers"
)

// Options are the settings of [Run] that are the program's and not in the configuration file. The
// zero value is ready.
type Options struct {
	Version  string
	Logger   *slog.Logger // nil discards the log
	TakeOver bool         // take a log on NATS servers from a live process

	// Opened, if set, is called each time the log was opened, before requests are answered. An error ends the service.
	Opened func(*engine.Engine) error
	// Serving, if set, runs in a goroutine while requests are answered at an address. It must return
	// when ctx ends: when Run stops, or when the log fails, after which Run calls Serving again.
	Serving func(ctx context.Context, address string)
	// Demo holds the routes of a demonstration, below /demo/.
	Demo []api.Route

	// Export, if set, writes a placement's decisions from an entry of the log on, with snapshots in the directory data,
	// for downloads.
	Export func(ctx context.Context, log eventlog.Log, data, placement string, from uint64, w io.Writer) error

	Wall     func() time.Time     // the time of day; nil is time.Now
	Elapsed  func() time.Duration // since some moment, by the monotonic clock; nil is time.Since
	Patience time.Duration        // how long a write to the log may take; 0 is natslog's default

	// Serve, if set, answers requests instead of the HTTP server, until ctx ends. It must also call Engine.Expire and
	// Engine.Exchange now and then.
	Serve func(ctx context.Context, e *engine.Engine, clock func() time.Time) error
	// Connecting, if set, may change how a log on NATS servers is opened.
	Connecting func(*natslog.Options)
}

// service is a running service.
type service struct {
	Config
	Options
	process string // identifies the writer of the log
	keys    *keys.Set
	proxies sockets.Proxies
	alerts  *alert.Sender // nil without alerts
	tracer  trace.Tracer  // nil without traces

	reopened     atomic.Int64           // how often the log was opened again after a failure
	socket       *server.Socket         // shared by all sessions; nil with Serve
	ready        func(address string)   // called when the session answers requests
	earlier      *filelog.Store         // the log in the directory as it was last open: the next session need not verify all
	unrecognized atomic.Pointer[string] // that remembered shoppers are new, because their keys were missing
}

// Run runs the decision service. When ctx ends, it answers the requests in progress and returns nil. If the log cannot
// be written, Run opens it again, until it succeeds. It follows a log on external servers while another process writes
// it, and takes over when that process is gone. Run returns an error if the configuration is wrong, or if the log is
// damaged or lost.
func Run(ctx context.Context, c *Config, o Options) error {
	if c == nil {
		return errors.New("host.Run: the configuration is nil: begin with host.Default()")
	}
	s := &service{Config: *c, Options: o.withDefaults(), process: rand.Text()}
	if err := s.check(); err != nil {
		return err
	}
	if err := os.MkdirAll(s.Data, 0o700); err != nil {
		return err
	}
	if s.Log.URL != "" { // a log in the directory has its own lock
		lock, err := flock.Take(filepath.Join(s.Data, lockFile), os.O_RDWR|os.O_CREATE, flock.TryExclusive)
		if errors.Is(err, flock.ErrTaken) {
			return fmt.Errorf("the data directory %s %w, or give this service another one", s.Data, filelog.ErrInUse)
		} else if err != nil {
			return err
		}
		defer func() { _ = lock.Release() }()
	}
	var flush func()
	s.tracer, flush = tracer(ctx, s.Version, s.Logger)
	defer flush()
	stop, err := s.sendAlerts(ctx)
	if err != nil {
		return err
	}
	defer stop()
	err = s.run(ctx)
	isSecond := errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, filelog.ErrInUse) // the first one still runs
	if err != nil && ctx.Err() == nil && !isSecond {
		last, cancel := context.WithTimeout(ctx, lastAlert)
		defer cancel()
		s.alerts.Flush(last, s.logSource(), alert.Problem{Level: "bad", Key: "log",
			Text: s.alerts.Here() + "the service has ended: " + err.Error()})
	}
	return err
}

// withDefaults returns the options with a logger and clocks.
func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Wall == nil {
		o.Wall = time.Now
	}
	if o.Elapsed == nil {
		start := time.Now()
		o.Elapsed = func() time.Duration { return time.Since(start) }
	}
	return o
}

// check returns an error unless the service may start with its configuration, and reads the keys and proxies.
func (s *service) check() (err error) {
	if s.TakeOver && s.Log.URL == "" {
		return errors.New("only a log on NATS servers can be taken over: stop the process that has the log in the " +
			"directory")
	}
	if err := s.Config.check(); err != nil {
		return err
	}
	if s.Health != "" && s.Health == s.Listen && !strings.HasSuffix(s.Health, ":0") {
		return fmt.Errorf("health = %q: must not be the address of listen", s.Health)
	}
	if s.Keys != "" {
		if s.keys, err = keys.Open(s.Keys, time.Now, s.Logger); err != nil {
			return fmt.Errorf("keys: %w", err)
		}
	}
	if s.proxies, err = s.Config.proxies(); err != nil {
		return err
	}
	if err = server.MayListen(s.Listen, s.keys); errors.Is(err, server.ErrOpen) {
		return hint.New(err, "name a file of API keys in the configuration, keys = \"keys.toml\", or listen on "+
			"127.0.0.1")
	}
	return err
}

// lastAlert limits the time of the alert with which the service ends.
const lastAlert = 5 * time.Second

// sendAlerts sends alerts until ctx ends or stop is called.
func (s *service) sendAlerts(ctx context.Context) (stop func(), err error) {
	a := s.Config.Alerts
	if a.URL == "" {
		return func() {}, nil
	}
	if s.alerts, err = alert.Open(alert.Options{URL: a.URL, Secret: a.Secret, Level: a.Level,
		File: filepath.Join(s.Data, alertsFile), Logger: s.Logger}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var sending sync.WaitGroup
	sending.Go(func() { s.alerts.Run(ctx) })
	return func() { cancel(); sending.Wait() }, nil
}

func (s *service) logSource() string { return s.alerts.Source("log") }

// logFails says in an alert that the log is away, until logWorks.
func (s *service) logFails(cause error) {
	s.alerts.Observe(s.logSource(), []alert.Problem{{Level: "bad", Key: "log",
		Text: s.alerts.Here() + "the log cannot be used, and the service tries to open it again: " + cause.Error()}})
}

func (s *service) logWorks() { s.alerts.Observe(s.logSource(), nil) }

// How long a log must stay open before it works, if this process did not write to it: a log on a full disk opens, too.
const (
	calm         = 30 * time.Second
	followerCalm = 5 * time.Second
)

// works calls logWorks once the log took an entry, or stayed open for a while.
func (l *session) works(ctx context.Context) {
	for begin := time.Now(); ctx.Err() == nil; {
		if open := time.Since(begin); l.wrote.Load() || open >= calm || open >= followerCalm && !l.leads() {
			l.logWorks()
			return
		}
		_ = wait.For(ctx, time.Second) // the loop looks at ctx
	}
}

// run opens the log, and reopens it after an error that may be temporary.
func (s *service) run(ctx context.Context) error {
	last, begun, pause := uint64(0), false, minPause
	var short time.Time // since when the log ends before what is known of it
	if s.Serve == nil {
		if err := s.bind(ctx); ctx.Err() != nil {
			return nil
		} else if err != nil {
			return err
		}
		defer s.socket.Close()
	}
	for {
		l, err := s.session(ctx, last)
		if l.served() {
			last, begun, short = l.last, true, time.Time{}
			if l.lasted() { // otherwise it may fail again at once, as on a full disk
				pause = minPause
			}
		}
		if ctx.Err() != nil {
			if !l.served() && errors.Is(err, ctx.Err()) { // it was ended while it opened the log
				return nil
			}
			return err
		}
		if s.isShort(err) && short.IsZero() {
			short = time.Now()
		}
		switch {
		case s.Log.URL != "" && errors.Is(err, eventlog.ErrFenced):
			pause, s.TakeOver = minPause, false // two that take it from each other would never end
		case s.isShort(err) && time.Since(short) < s.patience(),
			errors.Is(err, eventlog.ErrReopen), begun && !l.served() && isTemporary(err):
			s.logFails(err)
			s.reopened.Add(1)
		default:
			return err
		}
		s.Logger.Error("the log will be opened again", "in", pause.String(), "cause", err.Error())
		if wait.For(ctx, pause) != nil { // the cause is logged
			return nil
		}
		pause = min(2*pause, maxPause)
	}
}

// errShort means that a log ends before entries that were acknowledged.
var errShort = errors.New("the log ends before it")

// isShort reports whether a log on NATS servers ends too early. A server that lags behind its cluster may have
// answered.
func (s *service) isShort(err error) bool {
	return s.Log.URL != "" && (errors.Is(err, eventlog.ErrBeyond) || errors.Is(err, errShort))
}

// patience is how long a log that is too short is opened again.
func (s *service) patience() time.Duration { return cmp.Or(s.Patience, 30*time.Second) }

// The pause before the log is opened again doubles from minPause to maxPause.
const (
	minPause = 100 * time.Millisecond
	maxPause = 30 * time.Second
)

// isTemporary reports whether a later attempt to reopen the log may succeed. It will not after another process took the
// log over, or if entries are lost or damaged.
func isTemporary(err error) bool {
	for _, final := range []error{eventlog.ErrFenced, eventlog.ErrAlive, eventlog.ErrLost, eventlog.ErrBeyond} {
		if errors.Is(err, final) {
			return false
		}
	}
	var damage *eventlog.DamageError
	return err != nil && !errors.As(err, &damage)
}

// session is the service from one opening of its log to the closing.
type session struct {
	*service
	store  store
	shared *natslog.Store // a log on NATS servers, which other processes may write; nil for a log in a directory
	engine *engine.Engine
	clock  *steadyClock
	keeper *keeper
	wrote  atomic.Bool            // whether the log took an entry
	unable atomic.Pointer[string] // why a follower could not lead, or nil
	since  time.Time              // when it began to answer requests, or zero
	last   uint64                 // the last entry when it ended

	replaced func() int // shoppers' keys that others have replaced; nil on NATS servers, where their number is not limited

	current atomic.Pointer[time.Time] // when the follower last included all log entries, or nil
}

// lasted reports whether the log took an entry, or stayed open for long.
func (l *session) lasted() bool { return l.wrote.Load() || time.Since(l.since) >= calm }

// served reports whether the session ever answered requests.
func (l *session) served() bool { return !l.since.IsZero() }

// session runs the service for as long as its log stays open. An earlier session acknowledged entries up to known.
func (s *service) session(ctx context.Context, known uint64) (*session, error) {
	ctx, stop := context.WithCancel(ctx)
	l := &session{service: s}
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop()
	s.ready = func(address string) {
		l.since = time.Now()
		if s.Serving != nil {
			beside.Go(func() { s.Serving(ctx, address) })
		}
	}
	return l, l.work(ctx, known, s.serverOptions())
}

// serverOptions returns a server's options, except those that depend on the log.
func (s *service) serverOptions() server.Options {
	return server.Options{
		Keys: s.keys, Feed: new(feed.Feed), Limits: s.limits(), Logger: s.Logger, Version: s.Version,
		Budget:       s.budget(),
		Personalizer: s.Personalizer, Proxies: s.proxies, Alerts: s.alerts, Origins: s.CORS.Origins, Tracer: s.tracer,
		Demo: s.Demo,
	}
}

// bind binds the service's address, before the replay, which may take long. If ctx has ended, nothing is bound.
func (s *service) bind(ctx context.Context) (err error) {
	if used := s.limits().Connections; used < s.Limits.Connections {
		s.Logger.Warn("connections in [limits] is more than a quarter of the files that the process may open: raise "+
			"ulimit -n", "connections", s.Limits.Connections, "used", used)
	}
	listen := s.listen()
	listen.Ready = func(a net.Addr) {
		s.Logger.Info("listening", "address", a.String(), "data", s.Data)
		s.ready(a.String())
	}
	s.socket, err = server.Bind(ctx, listen, s.serverOptions())
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w: stop the program that listens there, or name another address with --listen or the "+
			"key listen", err)
	}
	if err == nil && ctx.Err() != nil {
		s.socket.Close()
	}
	return err
}

// work opens the log, answers requests, and writes the log or follows it, until ctx ends or the log is lost.
func (l *session) work(ctx context.Context, known uint64, o server.Options) (err error) {
	s := l.service
	ctx, end := context.WithCancelCause(ctx)
	stop := func() { end(server.ErrPause) } // the next session serves the socket, or run closes it
	defer stop()
	var beside sync.WaitGroup
	if err := l.openLog(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.store.Close()) }()
	s.TakeOver = false // later sessions do not take the log from its next owner
	o.Log, o.Appends = l.store, metrics.NewAppends()
	people, beginPeople, closePeople, err := l.openShoppers()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closePeople()) }()
	if err := l.open(ctx, engine.Options{Store: measuredLog{l.store, o.Appends, &l.wrote}, Shoppers: people, Budget: o.Budget,
		Applied: o.Feed.Applied}, known); err != nil {
		return err
	}
	defer l.engine.Close()
	if err := beginPeople(); err != nil {
		return err
	}
	beside.Go(func() {
		for range wait.Every(ctx, time.Second) {
			l.clock.compare(s.Logger)
		}
	})
	beside.Go(func() { l.works(ctx) })
	defer beside.Wait()
	defer stop()
	o.Reopened = s.reopened.Load
	o.Engine, o.Clock, o.ClockSkew, o.SnapshotAge = l.engine, l.clock.now, l.clock.ahead, l.keeper.age
	o.SnapshotEvery = l.Snapshots.Every.Duration
	o.Problems = func() []alert.Problem { return l.problems(o.Budget.Usage()) }
	if l.shared != nil {
		o.Epoch, o.Forward, o.Unreached = l.shared.Epoch, l.forward, l.shared.Unreached
	}
	if s.Export != nil {
		o.Export = func(ctx context.Context, w io.Writer, placement string) error {
			v, err := l.engine.View(placement)
			if err != nil {
				return err
			}
			return s.Export(ctx, l.store, s.Data, placement, v.Page.Born, w)
		}
	}
	var serving *server.Server
	if s.Serve == nil {
		serving = server.New(o)
	}
	var failure error // of becoming the leader
	drained := make(chan struct{})
	beside.Go(func() {
		if err := l.write(ctx, serving, drained); err != nil {
			if ctx.Err() == nil {
				failure = err
			}
			stop()
		}
	})
	beside.Go(func() {
		select {
		case <-l.store.Lost():
			s.Logger.Error("the log is lost: the service stops answering", "cause", l.store.Loss().Error())
			stop()
		case <-ctx.Done():
		}
	})
	if s.Serve != nil {
		l.since = time.Now()
		err = s.Serve(ctx, l.engine, l.clock.now)
	} else {
		err = serving.Serve(ctx, s.socket)
	}
	close(drained)
	stop()
	beside.Wait()
	if l.last = l.engine.Sequence(); l.store.Loss() != nil {
		return l.store.Loss()
	}
	if failure != nil {
		return errors.Join(err, failure)
	}
	if !errors.Is(err, engine.ErrStopped) {
		l.keeper.last()
	}
	l.last = l.engine.Sequence()
	s.Logger.Info("stopped", "entry", l.last)
	return err
}

// madeKeys is told that the stream of shoppers' keys was missing and is made again.
func (l *session) madeKeys() {
	l.lostKeys("the stream of shoppers' keys was missing, and a new one has been made")
}

// lostKeys says whom a loss of keys makes new.
func (l *session) lostKeys(loss string) {
	if n := l.engine.Remembered(); n > 0 {
		l.unrecognized.Store(new(fmt.Sprintf("%s, so up to %d remembered shoppers are new when they return: find out the cause. "+
			"This message lasts until the service starts again.", strings.ToUpper(loss[:1])+loss[1:], n)))
		l.Logger.Error(loss+": returning shoppers are new", "remembered", n)
	}
}

// openShoppers opens the keys of shoppers: next to the log, so that all processes on the log share them. begin repairs them
// and tells of lost keys once there is an engine: a service that stops before leaves the damage for the next start to find.
func (l *session) openShoppers() (people shoppers.Store, begin, stop func() error, err error) {
	none := func() error { return nil }
	if l.shared != nil {
		return l.shared.Shoppers(), none, none, nil
	}
	path := filepath.Join(l.Data, shoppersFile)
	file, err := shoppers.Open(path)
	if err != nil {
		return nil, nil, nil, err
	}
	l.replaced = file.Replaced
	return file, func() error {
		wrong, err := file.Begin(l.engine.Remembered())
		if wrong != "" {
			l.lostKeys("the file of shoppers' keys, " + path + ", " + wrong)
		}
		return err
	}, file.Close, nil
}

// open makes the engine, the clock and the keeper from the log.
func (l *session) open(ctx context.Context, o engine.Options, known uint64) (err error) {
	if err := replace.Clean(filepath.Join(l.Data, SnapshotFile)); err != nil {
		return err
	}
	l.clock = newClock(l.Wall, l.Elapsed)
	if l.engine, err = l.openEngine(ctx, o); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			l.engine.Close()
		}
	}()
	if at := l.engine.Sequence(); at < known {
		return &eventlog.DamageError{Sequence: at + 1, Err: fmt.Errorf("%w, but entries up to %d were acknowledged",
			errShort, known)}
	}
	if l.Opened != nil {
		if err := l.Opened(l.engine); err != nil {
			return err
		}
	}
	if l.engine.Sequence() == 0 && l.leads() && l.Demo == nil {
		l.Logger.Warn("the service begins a new log, without placements: if there should be some, is the right data "+
			"directory mounted?", "data", l.Data)
	}
	l.keeper = l.newKeeper()
	begin, err := lastTime(ctx, l.store, max(l.engine.Sequence(), 1))
	switch {
	case errors.Is(err, eventlog.ErrRemoved) && !l.leads(): // by the leader, before this process followed the log
		return fmt.Errorf("%w: %w", eventlog.ErrReopen, err)
	case err != nil:
		return err
	case !l.leads():
		if l.clock.last.Load() == 0 {
			l.clock.last.Store(begin)
		}
	default:
		move := func(from, to int64) (open, late int, err error) { return l.engine.MoveClock(ctx, from, to) }
		if err := l.goOn(begin, move); err != nil {
			return err
		}
		if err := l.keeper.retention.Begin(ctx, l.Logger); err != nil {
			return err
		}
	}
	l.warnOfRetention()
	l.keeper.retention.Needs = l.engine.Needs
	l.keeper.written.Store(l.clock.now().UnixNano())
	return nil
}

// warnOfRetention warns of an age that gives up decisions before their attribution windows end.
func (l *session) warnOfRetention() {
	age := l.Retention.Age.Duration
	for _, name := range l.engine.Placements() {
		if c, err := l.engine.Config(name); err == nil && age > 0 && c.Window() > age {
			l.Logger.Warn("[retention] age is shorter than the placement's attribution window: decisions are given up before "+
				"their outcomes count", "placement", name, "age", age.String(), "window", c.Window().String())
		}
	}
}

// openEngine opens the engine, which begins with the snapshot beside the log if that is the newest one.
func (l *session) openEngine(ctx context.Context, o engine.Options) (*engine.Engine, error) {
	o.Confirm = l.store.Confirm
	if l.shared == nil {
		return OpenEngine(ctx, l.Data, o, l.Logger)
	}
	at, unfetched := l.fetchSnapshot(ctx)
	bucket := "OBJ_" + l.shared.SnapshotBucket()
	if err := emptied(ctx, l.store, unfetched, bucket); err != nil {
		return nil, err
	}
	if unfetched != nil {
		if _, empty := l.store.Position(ctx, 1); errors.Is(empty, eventlog.ErrBeyond) {
			return nil, fmt.Errorf("%w: it is empty, and cannot begin before %s is read, because another log may have "+
				"written it (if its snapshots are not needed, remove the bucket): %w", eventlog.ErrReopen, bucket, unfetched)
		}
		l.Logger.Warn("the snapshot beside the log is not used", "cause", unfetched.Error())
	}
	var follower atomic.Pointer[engine.Engine]
	if !l.leads() {
		var err error
		if o.Replica, err = l.shared.NewReplica(ctx); err != nil {
			return nil, err
		}
		o.Follow, o.Leader, o.Propose = l.shared, l.leader, l.propose
		o.Clock = func() int64 { return l.clock.now().UnixNano() }
		applied := o.Applied
		o.Applied = func(entry uint64, e *eventlog.Event) {
			if f := follower.Load(); f != nil && !l.leads() {
				lag, sawEnd := f.Lag()
				l.clock.hear(e.Time, sawEnd && lag < time.Second)
			}
			applied(entry, e)
		}
	}
	e, err := OpenEngine(ctx, l.Data, o, l.Logger)
	if unfetched != nil && errors.Is(err, eventlog.ErrRemoved) && !errors.Is(unfetched,
		eventlog.ErrForeign) { // it may be there next time
		err = fmt.Errorf("%w: %w", eventlog.ErrReopen, err)
	}
	if unfetched == nil && errors.Is(err,
		eventlog.ErrRemoved) { // perhaps by the leader meanwhile: it stored a later snapshot first
		if later, _, failed := l.shared.LastSnapshot(ctx); failed == nil && later.Sequence > at.Sequence {
			err = fmt.Errorf("%w: %w", eventlog.ErrReopen, err)
		}
	}
	follower.Store(e)
	return e, err
}

func (l *session) newKeeper() *keeper {
	k := &keeper{engine: l.engine, log: l.store, now: l.clock.now, sure: l.clock.sure,
		path: filepath.Join(l.Data, SnapshotFile), logger: l.Logger}
	k.retention = &Retention{Age: l.Retention.Age.Duration, Size: l.Retention.Size.Bytes, Log: l.store, Data: l.Data}
	k.retention.Evict = func(ctx context.Context, before uint64, since int64) (int, error) {
		n, err := l.engine.EvictBefore(ctx, before, since, l.clock.now().UnixNano())
		if n > 0 {
			l.Logger.Warn("decisions are given up before their attribution window is over: the log must be "+
				"smaller than they need", "decisions", n, "before", before)
		}
		return n, err
	}
	if l.shared != nil {
		k.share = l.shared.PutSnapshot
	}
	return k
}

// leader names the process that writes the log, or "" if unknown.
func (l *session) leader() string {
	if h := l.shared.Leader(); h.Process != "" {
		return h.String()
	}
	return ""
}

// lead waits until this process is the one that writes the log. The error of one that cannot ends this session.
func (l *session) lead(ctx context.Context) error {
	if l.leads() {
		return nil
	}
	l.Logger.Info("following the log, which another process writes", "entry", l.engine.Sequence(), "leader", l.leader())
	calm := time.AfterFunc(0, func() { l.unable.Store(nil) })
	defer l.unable.Store(nil)
	defer calm.Stop()
	for {
		err := l.shared.Lead(ctx)
		calm.Reset(time.Minute) // an attempt that fails takes less, so by then another process renews its lease
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, eventlog.ErrFenced) || errors.Is(err, eventlog.ErrReopen) ||
			errors.Is(err, eventlog.ErrClosed) {
			return err
		}
		text := "This process could not take over the log if the leader failed: " + err.Error() + "."
		l.unable.Store(&text)
		if wait.For(ctx, time.Second) != nil {
			return nil
		}
	}
	l.clock.hold()
	err := l.engine.Lead(ctx, func(move engine.MoveClock) error {
		last, err := lastTime(ctx, l.store, max(l.engine.Sequence(), 1))
		if err == nil {
			err = l.goOn(last, move)
		}
		l.clock.resume()
		return err
	})
	if err != nil {
		return err
	}
	l.Logger.Info("this process writes the log now", "entry", l.engine.Sequence(), "epoch", l.shared.Epoch())
	l.keeper.written.Store(l.clock.now().UnixNano())
	return l.keeper.retention.Begin(ctx, l.Logger)
}

// write waits until this process leads, and then writes snapshots and followers' decisions: until ctx ends, and if the
// service is stopped, until its callers get their answers. Other processes wait for it until it gives up its lease.
func (l *session) write(ctx context.Context, serving *server.Server, drained <-chan struct{}) error {
	if err := l.lead(ctx); err != nil {
		return err
	}
	if ctx.Err() == nil && l.shared != nil {
		stop, err := l.answerFollowers(context.WithoutCancel(ctx), serving)
		if err != nil {
			return err
		}
		defer stop()
	}
	l.keeper.run(ctx, l.Snapshots.Every.Duration, l.Snapshots.KeepEvery.Duration)
	if !errors.Is(context.Cause(ctx), server.ErrPause) {
		select {
		case <-drained:
		case <-l.store.Lost():
		}
	}
	return nil
}

// goOn continues the log's time when this process begins to write it. If its clock does not follow on from the log's
// last event, either outcomes could not be reported since, or a clock is or was wrong: open decisions must not expire
// because of that.
func (l *session) goOn(last int64, move engine.MoveClock) error {
	now, gap := l.clock.goOn(last)
	defer func() {
		by, at := l.engine.Jumped(now, doubt) // also before the last start
		l.clock.jump.Store(by)
		l.clock.jumped.Store(at)
	}()
	if gap == 0 {
		return nil
	}
	if gap < 0 {
		l.Logger.Warn("the log's last event is in the future: the clock was ahead then or is behind now", "seconds",
			int64(-gap.Seconds()))
	}
	open, late, err := move(last, now)
	switch {
	case err != nil:
		return err
	case late > 0:
		l.Logger.Warn("decisions wait for their outcomes although their attribution windows are over: the service "+
			"was down, or a clock is wrong. Each keeps what was left of its window at the log's last event; check "+
			"the clocks of the machines",
			"decisions", late, "seconds", int64(gap.Seconds()), "open", open)
	case open > 0:
		l.Logger.Info("the attribution windows of open decisions move with the clock", "open", open, "seconds",
			int64(gap.Seconds()))
	}
	return nil
}

// measuredLog measures a log's appends, and notes whether any succeeded.
type measuredLog struct {
	store
	appends *metrics.Appends
	wrote   *atomic.Bool
}

// Append implements eventlog.Log.
func (l measuredLog) Append(ctx context.Context, entries ...[]byte) (uint64, error) {
	begin := time.Now()
	last, err := l.store.Append(ctx, entries...)
	l.appends.Observe(time.Since(begin))
	if err == nil {
		l.wrote.Store(true)
	}
	return last, err
}

// store is an open log.
type store interface {
	eventlog.Log
	Confirm(ctx context.Context) error // an error if this process may not be the log's writer any more
	Lost() <-chan struct{}             // closed when the log is lost
	Loss() error                       // why
}

// leads reports whether this process writes the log.
func (l *session) leads() bool { return l.shared == nil || l.shared.Leads() }

// openLog opens the log, in the data directory or on NATS servers.
func (l *session) openLog(ctx context.Context) error {
	if l.Log.URL == "" {
		s, err := filelog.Open(ctx, filelog.Options{Dir: filepath.Join(l.Data, LogDir), Logger: l.Logger,
			Earlier: l.earlier})
		if err == nil {
			l.store, l.earlier = s, s
		}
		return err
	}
	o, err := l.Log.Options()
	if err != nil {
		return err
	}
	o.Patience, o.Logger, o.Process, o.TakeOver, o.Standby = l.Patience, l.Logger, l.process, l.TakeOver, true
	o.MadeKeys = l.madeKeys
	if l.Connecting != nil {
		l.Connecting(&o)
	}
	s, err := natslog.Open(ctx, o)
	if err == nil {
		l.store, l.shared = s, s
	}
	return err
}
