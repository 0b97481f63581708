package main

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
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"vitrine"
	"vitrine/config"
	"vitrine/internal/replace"
	"vitrine/service/decision"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/natslog"
	"vitrine/service/server"
)

type serveCmd struct {
	Config string `placeholder:"FILE" help:"TOML file: listen, data, keys, [log], [tls], [limits], [timeouts], [snapshots], [retention]."`
	Listen string `placeholder:"ADDRESS" help:"Where to listen (127.0.0.1:8080). Elsewhere than on loopback only with keys."`
	Demo   bool   `help:"Simulated shoppers, in a directory that is thrown away unless --data names one."`
	Data   string `placeholder:"DIR" help:"Where the log and the snapshots are (vitrine-data)."`

	TakeOver bool `help:"Take a log on external servers from another service that is alive; that one ends."`
}

func (serveCmd) Help() string {
	return "The decision service: decide, be told what became of it, learn. Its API is at /docs; docs/operations.md has the configuration.\n\n" +
		examples("vitrine serve --demo", "vitrine serve", "vitrine serve --config service.toml")
}

func (c serveCmd) Run(ctx context.Context, t terminal) (err error) {
	s, err := readService(c.Config)
	if err != nil {
		return err
	}
	if c.Listen != "" {
		s.Listen = c.Listen
	}
	if c.Data != "" {
		s.Data = c.Data
	}
	if s.takeOver = c.TakeOver; s.takeOver && s.Log.URL == "" {
		return usageError{errors.New("--take-over: the log is in a directory, which one process has at a time: stop that process")}
	}
	if s.demo = c.Demo; s.demo && (s.Keys != "" || s.TLS.Key != "") {
		return usageError{errors.New("--demo: its shoppers have no API key and no TLS: leave keys and [tls] out")}
	}
	if s.demo && c.Data == "" {
		if s.Data, err = os.MkdirTemp("", "vitrine-demo-"); err != nil {
			return err
		}
		defer os.RemoveAll(s.Data)
	}
	logger := slog.New(slog.NewJSONHandler(t.err, &slog.HandlerOptions{Level: s.LogLevel}))
	return s.run(ctx, logger)
}

// run is the service. Where its log cannot be written any more it opens the log again, as often as it takes.
func (s *service) run(ctx context.Context, logger *slog.Logger) (err error) {
	var keys *server.Keys
	if s.Keys != "" {
		if keys, err = server.OpenKeys(s.Keys, time.Now, logger); err != nil {
			return fmt.Errorf("keys: %w", err)
		}
	}
	if err := server.MayListen(s.Listen, keys); err != nil {
		return hinted{err, "name a file of keys in the configuration, keys = \"keys.toml\", or listen on 127.0.0.1"}
	}
	if err := os.MkdirAll(s.Data, 0o700); err != nil {
		return err
	}
	s.process = rand.Text()
	known, begun, pause := uint64(0), false, leastPause
	for {
		last, served, err := s.live(ctx, keys, known, logger)
		if served {
			known, begun, pause = last, true, leastPause
		}
		if ctx.Err() != nil || !errors.Is(err, eventlog.ErrReopen) && (served || !begun || !mends(err)) {
			return err
		}
		logger.Error("the log will be opened again", "in", pause.String(), "cause", err.Error())
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
		pause = min(2*pause, largestPause)
	}
}

// Between two openings of a log that could not be written.
const (
	leastPause   = 100 * time.Millisecond
	largestPause = 30 * time.Second
)

// mends reports whether an error of opening a log again may go away by itself. A log that another service has
// taken over, that was moved, or that has lost entries is for its operator.
func mends(err error) bool {
	for _, final := range []error{eventlog.ErrFenced, eventlog.ErrAlive, eventlog.ErrLost, eventlog.ErrBeyond} {
		if errors.Is(err, final) {
			return false
		}
	}
	var damage *eventlog.DamageError
	return err != nil && !errors.As(err, &damage)
}

// live is the service from an opening of its log to the closing. Entries up to known were in the log before. It returns
// the last entry at its end, and whether it has come to serve.
func (s *service) live(ctx context.Context, keys *server.Keys, known uint64, logger *slog.Logger) (last uint64, served bool, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var beside sync.WaitGroup
	listen, options := s.listen(), server.Options{Keys: keys, Feed: new(server.Feed), Limits: s.limits(), Logger: logger, Version: version}
	listen.Ready = func(a net.Addr) {
		s.Listen, served = a.String(), true // the next life listens there, too
		logger.Info("listening", "address", a.String(), "data", s.Data)
		if s.demo {
			beside.Go(func() { demonstrate(ctx, "http://"+a.String(), logger) })
		}
	}
	socket, err := server.Bind(ctx, listen, options) // what is wrong with it is known before a long replay
	if err != nil {
		return 0, false, err
	}
	defer socket.Close()
	store, err := s.openLog(ctx, logger)
	if err != nil {
		return 0, false, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	s.takeOver = false // only the first time: from then on the log is this service's, or lost
	if err := replace.Clean(s.snapshot()); err != nil {
		return 0, false, err
	}
	engine, err := s.openEngine(ctx, store, options.Feed, logger)
	if err != nil {
		return 0, false, err
	}
	defer engine.Close()
	if at := engine.Sequence(); at < known {
		return 0, false, &eventlog.DamageError{Sequence: at + 1, Err: fmt.Errorf("it ends there, and entries up to %d were acknowledged", known)}
	}
	if s.demo {
		switch err := mayDemonstrate(engine, s.Data); {
		case err != nil && known == 0:
			return 0, false, err
		case err != nil: // changed since it began: what was served is served again
			logger.Warn("the demonstration is over", "cause", err.Error())
			s.demo = false
		}
	}
	begin, err := lastTime(ctx, store, max(engine.Sequence(), 1))
	if err != nil {
		return 0, false, err
	}
	clock := newClock(begin, s.wall, logger)
	options.Clock = clock.now
	beside.Go(func() { clock.watch(ctx, time.Second, logger) })
	limits := &retention{age: s.Retention.Age.Duration, size: uint64(s.Retention.Size), log: store, data: s.Data}
	if err := limits.begin(ctx, logger); err != nil {
		return 0, false, err
	}
	options.Engine, options.Log = engine, store
	k := keeper{engine: engine, log: store, now: clock.now, path: s.snapshot(), retention: limits, logger: logger}
	k.written.Store(clock.now().UnixNano())
	options.SnapshotAge = k.age
	beside.Go(func() { k.run(ctx, s.Snapshots.Every.Duration, s.Snapshots.KeepEvery.Duration) })
	beside.Go(func() {
		select {
		case <-store.Lost():
			logger.Error("the log is lost: nothing more is decided", "cause", store.Loss().Error())
			stop()
		case <-ctx.Done():
		}
	})
	err = server.New(options).Serve(ctx, socket)
	stop()
	beside.Wait()
	if loss := store.Loss(); loss != nil {
		return engine.Sequence(), served, loss
	}
	if !errors.Is(err, decision.ErrStopped) {
		k.last()
	}
	logger.Info("stopped", "entry", engine.Sequence())
	return engine.Sequence(), served, err
}

func (s *service) openLog(ctx context.Context, logger *slog.Logger) (*natslog.Store, error) {
	o, err := s.logOptions()
	if err != nil {
		return nil, err
	}
	o.Patience, o.Logger, o.Process, o.TakeOver = s.patience, logger, s.process, s.takeOver
	store, err := natslog.Open(ctx, o)
	if errors.Is(err, eventlog.ErrAlive) {
		return nil, hinted{err, "stop it, or start with --take-over, which ends it"}
	}
	return store, err
}

// logOptions are those of the log in the data directory, or on external servers.
func (s *service) logOptions() (natslog.Options, error) {
	if s.Log.URL == "" {
		return natslog.Options{Dir: filepath.Join(s.Data, logName)}, nil
	}
	return s.Log.options()
}

func (s *service) snapshot() string { return filepath.Join(s.Data, snapshotName) }

// gather is how long a caller may wait for others, for one append of all. docs/adr/0041 has what it saves.
const gather = 200 * time.Microsecond

// openEngine makes the state from the newest snapshot and the log after it; where that cannot be
// from an earlier snapshot, or the whole log.
func (s *service) openEngine(ctx context.Context, store eventlog.Store, feed *server.Feed, logger *slog.Logger) (*decision.Engine, error) {
	o := decision.Options{
		Store: store, Build: config.NewLearner, Gather: gather, Applied: feed.Applied,
		Progress: func(entries int) { logger.Info("replaying", "entries", entries) },
	}
	paths, err := snapshotsIn(s.Data)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		if o.Snapshot, err = os.ReadFile(path); err != nil {
			return nil, err
		}
		e, err := decision.Open(ctx, o)
		if err == nil {
			compareKernels(path, o.Snapshot, logger)
		}
		if err == nil || ctx.Err() != nil || errors.Is(err, eventlog.ErrBeyond) {
			return e, err
		}
		logger.Warn("a snapshot is of no use: more of the log is replayed", "snapshot", path, "cause", err.Error())
	}
	o.Snapshot = nil
	e, err := decision.Open(ctx, o)
	if errors.Is(err, eventlog.ErrRemoved) {
		if e := s.beginAgain(ctx, o, paths, logger); e != nil {
			return e, nil
		}
		return nil, hinted{err, "the log begins with what a snapshot has: put state.snapshot or bases/ of the data directory that it had, or of its backup, into " + s.Data}
	}
	return e, err
}

// beginAgain makes the state from a snapshot whose learners cannot all be read, of a log that cannot be learned from
// its first entry on: these learners begin again. It returns nil where no snapshot is good for that.
func (s *service) beginAgain(ctx context.Context, o decision.Options, paths []string, logger *slog.Logger) *decision.Engine {
	o.BeginAgain = true
	for _, path := range paths {
		var err error
		if o.Snapshot, err = os.ReadFile(path); err != nil {
			continue
		}
		e, err := decision.Open(ctx, o)
		if err != nil {
			continue
		}
		for _, name := range e.Placements() {
			if stats, err := e.Stats(name); err == nil && stats.Forgotten > 0 {
				logger.Warn("a learner begins again: its saved state cannot be read, and the log no longer has what it learned from",
					"placement", name, "forgotten", stats.Forgotten, "snapshot", path, "cause", stats.Problem)
			}
		}
		return e
	}
	return nil
}

// compareKernels says where a state was learned with other vector code, and differs in the last digits from what a
// replay gives here.
func compareKernels(path string, snapshot []byte, logger *slog.Logger) {
	kernels, err := decision.SnapshotKernels(snapshot)
	if here, _ := vitrine.KernelPath(); err == nil && kernels != nil && !slices.Equal(kernels, []string{here}) {
		logger.Info("the state was learned with other vector code, too: a replay of the log differs in the last digits", "snapshot", path, "code", kernels, "here", here)
	}
}

// keeper writes snapshots, removes what the log need not have after them, and keeps versions to roll
// back to.
type keeper struct {
	engine    *decision.Engine
	log       *natslog.Store
	now       func() time.Time
	path      string
	retention *retention
	logger    *slog.Logger
	upTo      uint64       // of the last snapshot
	written   atomic.Int64 // when it was up to date, Unix nanoseconds
	behind    []string     // placements whose learner did not keep up with the last one
}

// age is how old the last snapshot is.
func (k *keeper) age() time.Duration { return time.Duration(k.now().UnixNano() - k.written.Load()) }

func (k *keeper) run(ctx context.Context, every, keepEvery time.Duration) {
	snapshots, versions := time.NewTicker(every), time.NewTicker(keepEvery)
	defer snapshots.Stop()
	defer versions.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-snapshots.C:
			k.write(ctx)
			k.shrink(ctx)
			if age := k.age(); age > snapshotsLate*every {
				k.logger.Warn("the last snapshot is old: the next start replays all since, and no entries are removed", "seconds", int64(age.Seconds()))
			}
		case <-versions.C:
			k.keep(ctx)
		}
	}
}

const (
	// learnersPatience is how long a snapshot waits for learners that are behind. Then it has their last
	// checkpoint and the rounds since.
	learnersPatience = 2 * time.Second
	// snapshotDeadline bounds the wait for the engine. Without a last snapshot the next start replays more.
	snapshotDeadline = 30 * time.Second
	// snapshotsLate is how many snapshots may be missing without a warning.
	snapshotsLate = 3
)

func (k *keeper) last() { k.write(context.Background()) }

func (k *keeper) write(ctx context.Context) {
	if k.engine.Sequence() == k.upTo {
		k.written.Store(k.now().UnixNano())
		return
	}
	ctx, cancel := context.WithTimeout(ctx, snapshotDeadline)
	defer cancel()
	var upTo uint64
	var behind []string
	var size counter
	begin := k.now()
	err := replace.Stream(k.path, func(w io.Writer) (err error) {
		upTo, behind, err = k.engine.WriteSnapshot(ctx, io.MultiWriter(w, &size), learnersPatience)
		return cmp.Or(err, k.log.Loss()) // the directory may be another log's by now
	})
	if err != nil {
		k.logger.Warn("no snapshot was written", "cause", err.Error())
		return
	}
	k.upTo = upTo
	k.written.Store(begin.UnixNano())
	k.logger.Info("snapshot", "entry", upTo, "bytes", int64(size))
	if len(behind) > 0 && !slices.Equal(behind, k.behind) {
		k.logger.Warn("learners are behind: a snapshot has their last checkpoint and the rounds since, which the next start learns first", "placements", behind)
	}
	k.behind = behind
}

// counter counts the bytes that are written to it.
type counter int64

func (c *counter) Write(b []byte) (int, error) { *c += counter(len(b)); return len(b), nil }

// shrink removes the entries beyond the limits.
func (k *keeper) shrink(ctx context.Context) {
	if k.upTo == 0 || !k.retention.limits() {
		return
	}
	removed, err := k.retention.apply(ctx, k.upTo, k.now())
	switch {
	case err != nil:
		k.logger.Warn("retention", "cause", err.Error())
	case removed.to >= removed.from:
		k.logger.Info("removed", "entries", removed)
	}
}

// keep keeps the versions of the placements that have learned since the last one.
func (k *keeper) keep(ctx context.Context) {
	for _, name := range k.engine.Placements() {
		s, err := k.engine.Stats(name)
		if err != nil || len(s.Versions) > 0 && s.Versions[len(s.Versions)-1] >= s.PolicyVersion {
			continue
		}
		version, err := k.engine.Keep(ctx, name, k.now().UnixNano())
		if err != nil {
			k.logger.Warn("no version was kept", "placement", name, "cause", err.Error())
			continue
		}
		k.logger.Info("version kept", "placement", name, "version", version)
	}
}
