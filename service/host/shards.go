package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"vitrine/service/decision"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/natslog"
	"vitrine/service/server"
)

// ShardsDir is the directory, in that of the data, with a data directory for each shard.
const ShardsDir = "shards"

// follows returns the numbers of the shards that this process follows.
func (l *LogSource) follows() []int {
	if len(l.Follow) > 0 {
		return slices.Sorted(slices.Values(l.Follow))
	}
	all := make([]int, l.Shards)
	for i := range all {
		all[i] = i + 1
	}
	return all
}

// runShards runs a service with several logs. A log that is away, even for good, ends nothing: it is opened again now and then,
// and requests for its placements are refused meanwhile.
func (s *service) runShards(ctx context.Context) error {
	if s.Opened != nil {
		return errors.New("a demonstration has one log: leave log.shards out")
	}
	options := s.serverOptions()
	options.Clock = s.Wall
	var beside sync.WaitGroup
	defer beside.Wait()
	serving, stopServing := context.WithCancel(ctx)
	defer stopServing()
	socket, err := s.bind(ctx, options, func(address string) {
		if s.Serving != nil {
			beside.Go(func() { s.Serving(serving, address) })
		}
	})
	if err != nil {
		return err
	}
	defer socket.Close()
	places, err := s.places(ctx)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) { // it was ended while it waited for the servers
		return nil
	}
	if err != nil {
		return err
	}
	defer places.Close()
	follow := s.Log.follows()
	options.Shards = &server.Shards{Count: s.Log.Shards, Follow: follow, Places: places, Pass: pass(places.Ask), PassAtLength: pass(places.AskAtLength)}
	answering := server.New(options)
	working, stopWorking := context.WithCancel(context.WithoutCancel(ctx)) // requests in progress need the logs
	defer stopWorking()
	spread := newSpread(follow)
	beside.Go(func() { spread.run(working, s.process) })
	for _, number := range follow {
		own := s.ofShard(number)
		if err := os.MkdirAll(own.Data, 0o700); err != nil {
			return err
		}
		beside.Go(func() { own.keep(working, answering, options, spread) })
	}
	err = answering.Serve(ctx, socket)
	stopWorking()
	stopServing()
	beside.Wait()
	return err
}

// places opens the bucket of the shards, and waits for the log's servers.
func (s *service) places(ctx context.Context) (*natslog.Places, error) {
	o, err := s.LogOptions()
	if err != nil {
		return nil, err
	}
	o.Patience, o.Logger, o.Shards = s.Patience, s.Logger, max(s.Log.Shards, 1)
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		places, err := natslog.OpenPlaces(ctx, o, s.Log.Shards)
		if err == nil || !errors.Is(err, eventlog.ErrReopen) {
			return places, err
		}
		s.Logger.Error("the shards will be opened again", "in", pause.String(), "cause", err.Error())
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// ofShard returns the service of one shard: it has its own stream, and its own data directory.
func (s *service) ofShard(number int) *service {
	own := *s
	own.reopened = new(atomic.Int64)
	own.shard, own.Logger = number, s.Logger.With("shard", number)
	own.Log.Stream = natslog.ShardStream(s.Log.Stream, number)
	own.Data = filepath.Join(s.Data, ShardsDir, strconv.Itoa(number))
	return &own
}

// keep opens the log of the shard, again and again, until ctx ends.
func (s *service) keep(ctx context.Context, answering *server.Server, o server.Options, spread *spread) {
	last := uint64(0)
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		l := &life{service: s}
		err := l.work(ctx, last, o.Budget, answering.Applied(s.shard), func(log server.Shard) (*server.Server, func(context.Context) error, error) {
			shard, err := answering.Mount(ctx, s.shard, log)
			if err != nil {
				return nil, nil, err
			}
			stop, err := l.store.Serve(
				func(request []byte, most int) []byte { return answering.Passed(s.shard, request, most) },
				func(ctx context.Context, request []byte, to io.Writer) error {
					return answering.PassedAtLength(ctx, s.shard, request, to)
				})
			if err != nil {
				answering.Unmount(s.shard, err.Error())
				return nil, nil, err
			}
			l.served = true
			s.logWorks()
			spread.has(s.shard, l)
			return answering, func(ctx context.Context) error {
				defer stop()
				defer spread.has(s.shard, nil)
				err := answering.Tend(ctx, shard, 0)
				answering.Unmount(s.shard, "this process opens its log again")
				return err
			}, nil
		})
		if ctx.Err() != nil {
			if err != nil {
				s.Logger.Error("the log did not close well", "cause", err.Error())
			}
			return
		}
		if l.served {
			last, pause = l.last, minPause
		}
		if errors.Is(err, eventlog.ErrFenced) {
			pause = minPause
		}
		if err == nil { // cannot be: work ends with ctx, or with an error
			err = decision.ErrStopped
		}
		answering.Unmount(s.shard, err.Error())
		if !errors.Is(err, eventlog.ErrFenced) {
			s.logFails(err)
			s.reopened.Add(1)
		}
		s.Logger.Error("the log of the shard will be opened again; placements of other shards are served", "in", pause.String(), "cause", err.Error())
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// pass returns ask, which passes a request on to a process with a shard, with the errors that a server knows.
func pass[T any](ask func(ctx context.Context, shard int, request []byte) (T, error)) func(ctx context.Context, shard int, request []byte) (T, error) {
	return func(ctx context.Context, shard int, request []byte) (answer T, err error) {
		answer, err = ask(ctx, shard, request)
		switch {
		case errors.Is(err, natslog.ErrNobody):
			err = fmt.Errorf("%w: %w", server.ErrAway, err)
		case errors.Is(err, nats.ErrMaxPayload):
			err = fmt.Errorf("%w: %w", server.ErrTooLong, err)
		}
		return answer, err
	}
}
