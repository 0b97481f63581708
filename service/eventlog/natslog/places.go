package natslog

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ShardStream returns the name of the stream of a shard, from 1 on. The first shard is the log of a service without shards.
func ShardStream(stream string, shard int) string {
	if stream == "" {
		stream = defaultStream
	}
	if shard <= 1 {
		return stream
	}
	return fmt.Sprintf("%s-%d", stream, shard)
}

// Places says in which shard each placement is, in a bucket beside the streams. An entry is written when a placement is made,
// and stays for ever. The bucket also names the shards whose placements it has: one that was lost and made again knows no
// placement of a shard until a process has opened the log of that shard. Places is safe for concurrent use.
type Places struct {
	of     *Store // only its connection
	shards int
	bucket jetstream.KeyValue

	mu        sync.RWMutex
	known     map[string]int
	answerers map[string]answerer // by stream: the last that was there
}

// PartialError is returned for a placement that is not in the bucket, while the bucket lacks the placements of some shards.
type PartialError struct {
	Bucket string
	Shards []int
}

// Error implements error.
func (e *PartialError) Error() string {
	return fmt.Sprintf("natslog: the bucket %q has not got the placements of the shards %v yet: start a process that follows them", e.Bucket, e.Shards)
}

// Lacks returns the shards.
func (e *PartialError) Lacks() []int { return e.Shards }

// OpenPlaces opens the bucket of the shards of a stream on external servers, and makes it if it is missing. Errors are those of
// the connection, ErrShards, and ErrReopen if the servers do not answer.
func OpenPlaces(ctx context.Context, o Options, shards int) (_ *Places, err error) {
	s, err := newStore(o)
	if err != nil {
		return nil, err
	}
	close(s.watched)
	p := &Places{of: s, shards: shards, known: map[string]int{}, answerers: map[string]answerer{}}
	if err := reopens(ctx, p.open(ctx)); err != nil {
		p.Close()
		return nil, fmt.Errorf("the shards of %s: %w", s.where(), err)
	}
	return p, nil
}

func (p *Places) name() string { return p.of.options.Stream + "-shards" }

func (p *Places) open(ctx context.Context) (err error) {
	s := p.of
	if s.conn, err = s.dial(); err != nil {
		return err
	}
	if s.js, err = jetstream.New(s.conn); err != nil {
		return err
	}
	if err := s.agree(ctx); err != nil {
		return err
	}
	if err := p.make(ctx); err != nil {
		return err
	}
	p.bucket, err = ask(ctx, s, func(ctx context.Context) (jetstream.KeyValue, error) { return s.js.KeyValue(ctx, p.name()) })
	return err
}

// make makes the bucket if it is missing.
func (p *Places) make(ctx context.Context) error {
	s, missing := p.of, false
	_, err := ask(ctx, s, func(ctx context.Context) (jetstream.KeyValue, error) {
		bucket, err := s.js.KeyValue(ctx, p.name())
		if errors.Is(err, jetstream.ErrBucketNotFound) {
			missing = true
			bucket, err = s.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: p.name(), Replicas: s.newReplicas()})
		}
		if errors.Is(err, jetstream.ErrBucketExists) { // another process has made it meanwhile, and changed it as below
			bucket, err = s.js.KeyValue(ctx, p.name())
		}
		return bucket, err
	})
	if err != nil {
		return err
	}
	// A replica that is behind must not answer that a placement is not there.
	stream, err := ask(ctx, s, func(ctx context.Context) (jetstream.Stream, error) { return s.js.Stream(ctx, "KV_"+p.name()) })
	if err != nil {
		return err
	}
	if config := stream.CachedInfo().Config; config.AllowDirect {
		config.AllowDirect = false
		_, err = ask(ctx, s, func(ctx context.Context) (jetstream.Stream, error) { return s.js.UpdateStream(ctx, config) })
	}
	if missing && err == nil && p.hasShards(ctx) {
		s.options.Logger.Error("the bucket of the shards was lost: it is made again from the logs. No placement can be made until every shard has a process that follows it", "bucket", p.name())
	}
	return err
}

// hasShards reports whether there is a log of another shard than the first.
func (p *Places) hasShards(ctx context.Context) bool {
	for shard := 2; shard <= p.shards; shard++ {
		if _, err := p.of.js.Stream(ctx, ShardStream(p.of.options.Stream, shard)); err == nil {
			return true
		}
	}
	return false
}

// Close ends the connection.
func (p *Places) Close() {
	if p.of.conn != nil {
		p.of.conn.Close()
	}
}

// Shard returns the shard of a placement, 0 if it was never made. The error is a *PartialError if the bucket cannot say so.
func (p *Places) Shard(ctx context.Context, placement string) (int, error) {
	p.mu.RLock()
	shard := p.known[placement]
	p.mu.RUnlock()
	if shard > 0 {
		return shard, nil
	}
	if shard, err := p.look(ctx, placement); shard > 0 || err != nil {
		return shard, err
	}
	return 0, p.whole(ctx)
}

// Claim puts a placement into a shard, unless it is in one, and returns its shard. It reads the bucket, which may have been lost
// since Shard knew the placement. The error is a *PartialError if the placement may be in another shard.
func (p *Places) Claim(ctx context.Context, placement string, shard int) (int, error) {
	if was, err := p.look(ctx, placement); was > 0 || err != nil {
		return was, err
	}
	if err := p.whole(ctx); err != nil {
		return 0, err
	}
	return p.put(ctx, placement, shard)
}

// look reads the entry of a placement.
func (p *Places) look(ctx context.Context, placement string) (int, error) {
	entry, err := p.get(ctx, keyOf(placement))
	if entry == nil || err != nil {
		return 0, err
	}
	return p.note(entry)
}

// put is Claim in a bucket that may be partial.
func (p *Places) put(ctx context.Context, placement string, shard int) (int, error) {
	for {
		was, err := p.look(ctx, placement)
		if was > 0 || err != nil {
			return was, err
		}
		if err := p.write(ctx, keyOf(placement), strconv.Itoa(shard), 0); err != nil {
			return 0, err
		}
	}
}

// get returns the entry of a key, nil if there is none.
func (p *Places) get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	entry, err := ask(ctx, p.of, func(ctx context.Context) (jetstream.KeyValueEntry, error) { return p.bucket.Get(ctx, key) })
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, p.failure(err)
	}
	return entry, nil
}

// write writes an entry after a revision, 0 for none. It returns nil too if there is another entry.
func (p *Places) write(ctx context.Context, key, value string, after uint64) error {
	_, err := ask(ctx, p.of, func(ctx context.Context) (uint64, error) {
		if after == 0 {
			return p.bucket.Create(ctx, key, []byte(value))
		}
		return p.bucket.Update(ctx, key, []byte(value), after)
	})
	if err == nil {
		return nil
	}
	if !isWrongRevision(err) {
		return p.failure(err)
	}
	return wait(ctx, pause) // the other entry, or that of an attempt whose answer was lost, can be read a little later
}

// Add puts the placements of the log of a shard into the bucket, and notes that it has them. A bucket that is missing is made. The
// placements that are in other shards are returned with these.
func (p *Places) Add(ctx context.Context, shard int, placements []string) (elsewhere map[string]int, err error) {
	if err := p.make(ctx); err != nil {
		return nil, p.failure(err)
	}
	there, err := p.all(ctx)
	if err != nil {
		return nil, err
	}
	elsewhere = map[string]int{}
	for _, name := range placements {
		is := there[name]
		if is == 0 {
			if is, err = p.put(ctx, name, shard); err != nil {
				return nil, err
			}
		}
		if is != shard {
			elsewhere[name] = is
		}
	}
	for {
		added, revision, err := p.added(ctx)
		if err != nil || slices.Contains(added, shard) {
			return elsewhere, err
		}
		text, _ := json.Marshal(append(added, shard)) // numbers
		if err := p.write(ctx, addedKey, string(text), revision); err != nil {
			return nil, err
		}
	}
}

// addedKey is the key of the numbers of the shards whose placements were added. It is no key of a placement.
const addedKey = "=added"

// added returns the shards whose placements are in the bucket.
func (p *Places) added(ctx context.Context) (shards []int, revision uint64, err error) {
	entry, err := p.get(ctx, addedKey)
	if entry == nil || err != nil {
		return nil, 0, err
	}
	if err := json.Unmarshal(entry.Value(), &shards); err != nil {
		return nil, 0, fmt.Errorf("natslog: the key %q of the bucket %q is %q: must be a list of shards: delete it, and the services write it again", addedKey, p.name(), entry.Value())
	}
	return shards, entry.Revision(), nil
}

// Lacks returns the shards whose placements are not in the bucket: all if it is missing.
func (p *Places) Lacks(ctx context.Context) (shards []int, err error) {
	added, _, err := p.added(ctx)
	if err != nil && !p.of.lacks(ctx, p.name()) {
		return nil, err
	}
	for shard := 1; shard <= p.shards; shard++ {
		if !slices.Contains(added, shard) {
			shards = append(shards, shard)
		}
	}
	return shards, nil
}

// whole returns a *PartialError if the bucket lacks the placements of a shard.
func (p *Places) whole(ctx context.Context) error {
	lacks, err := p.Lacks(ctx)
	if err == nil && len(lacks) > 0 {
		err = &PartialError{p.name(), lacks}
	}
	return err
}

// Counts returns how many placements each shard has.
func (p *Places) Counts(ctx context.Context) (map[int]int, error) {
	all, err := p.all(ctx)
	counts := map[int]int{}
	for _, shard := range all {
		counts[shard]++
	}
	return counts, err
}

// all returns the placements with their shards.
func (p *Places) all(ctx context.Context) (map[string]int, error) {
	watch, err := p.bucket.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return nil, p.failure(err)
	}
	defer func() { _ = watch.Stop() }() // of a connection that has gone
	all := map[string]int{}
	for {
		select {
		case <-ctx.Done():
			return nil, p.failure(ctx.Err())
		case entry := <-watch.Updates():
			if entry == nil { // the end of what is there
				return all, nil
			}
			if entry.Key() == addedKey {
				continue
			}
			if all[placementOf(entry.Key())], err = p.note(entry); err != nil {
				return nil, err
			}
		}
	}
}

// note remembers an entry.
func (p *Places) note(entry jetstream.KeyValueEntry) (int, error) {
	shard, err := strconv.Atoi(string(entry.Value()))
	if err != nil || shard < 1 {
		return 0, fmt.Errorf("natslog: the key %q of the bucket %q is %q: must be the number of a shard", entry.Key(), p.name(), entry.Value())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known[placementOf(entry.Key())] = shard
	return shard, nil
}

func (p *Places) failure(err error) error {
	if errors.Is(err, jetstream.ErrBucketNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, nats.ErrNoResponders) {
		return fmt.Errorf("the bucket %q of %s, which says in which shard a placement is, is missing: the services make it again from their logs: %w", p.name(), p.of.where(), err)
	}
	return fmt.Errorf("natslog: the bucket %q of %s: %w", p.name(), p.of.where(), err)
}

// A key of a bucket has no colon, and no points side by side.
var (
	escapes   = strings.NewReplacer(".", "=d", ":", "=c")
	unescapes = strings.NewReplacer("=d", ".", "=c", ":")
)

func keyOf(placement string) string { return escapes.Replace(placement) }

func placementOf(key string) string { return unescapes.Replace(key) }

// process is the last part of the subject at which one of the processes that have a log says its own subject, for requests. So a
// request goes to a process that has just been there, and not to one that hangs or whose machine is gone.
const process = ".process"

// trust is how long a process that was there is asked without a question before.
const trust = time.Second

// answerer is a process that has answered at a time.
type answerer struct {
	subject string
	at      time.Time
}

// Ask sends a request to one of the processes that have the log of a shard, and returns its answer. Errors are ErrNobody, those
// of NATS, and that of ctx, after which the request may have been answered.
func (p *Places) Ask(ctx context.Context, shard int, request []byte) ([]byte, error) {
	stream := ShardStream(p.of.options.Stream, shard)
	for {
		to, err := p.answerer(ctx, stream)
		if err == nil {
			var answer *nats.Msg
			if answer, err = p.of.conn.RequestWithContext(ctx, to.subject, request); err == nil {
				return answer.Data, nil
			}
			p.forget(stream, to)
			if errors.Is(err, nats.ErrNoResponders) { // it has gone since, and has not got the request
				continue
			}
		}
		return nil, p.unanswered(stream, err)
	}
}

// unanswered is the error of a request to the processes that have a log.
func (p *Places) unanswered(stream string, err error) error {
	if errors.Is(err, nats.ErrNoResponders) {
		return fmt.Errorf("%w: %s of %s", ErrNobody, stream, p.of.where())
	}
	return fmt.Errorf("asking a process at %s of %s: %w", stream, p.of.where(), err)
}

// answerer returns a process that has the log of a stream.
func (p *Places) answerer(ctx context.Context, stream string) (answerer, error) {
	p.mu.RLock()
	to := p.answerers[stream]
	p.mu.RUnlock()
	if time.Since(to.at) < trust {
		return to, nil
	}
	for {
		m, err := within(ctx, shortAttempt, func(ctx context.Context) (*nats.Msg, error) {
			return p.of.conn.RequestWithContext(ctx, stream+process, nil)
		})
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			continue // another one is asked
		}
		if err != nil {
			return to, err
		}
		to = answerer{string(m.Data), time.Now()}
		p.mu.Lock()
		p.answerers[stream] = to
		p.mu.Unlock()
		return to, nil
	}
}

// forget makes the next request look for a process.
func (p *Places) forget(stream string, gone answerer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answerers[stream] == gone {
		delete(p.answerers, stream)
	}
}

// Serve answers requests to any process that has this log, each in a goroutine of its own, until stop is called.
// most is the max size of an answer. Those of AskAtLength are answered by atLength, whose context ends when its answer is not
// wanted any more, or at stop; an error breaks the answer off.
func (s *Store) Serve(handle func(request []byte, most int) []byte, atLength func(ctx context.Context, request []byte, to io.Writer) error) (stop func(), err error) {
	var running sync.WaitGroup
	answering, stopAnswering := context.WithCancel(context.Background())
	question := s.options.Stream + process
	own := question + "." + rand.Text()
	requests, err := s.conn.Subscribe(own, func(m *nats.Msg) {
		if m.Header.Get(answerHeader) != "" {
			running.Go(func() { s.answerAtLength(answering, m, atLength) })
			return
		}
		running.Go(func() { _ = m.Respond(handle(m.Data, int(s.conn.MaxPayload()))) })
	})
	if err != nil {
		stopAnswering()
		return nil, fmt.Errorf("natslog: %s: %w", s.where(), err)
	}
	questions, err := s.conn.QueueSubscribe(question, "vitrine", func(m *nats.Msg) { _ = m.Respond([]byte(own)) })
	if err != nil {
		stopAnswering()
		_ = requests.Unsubscribe()
		return nil, fmt.Errorf("natslog: %s: %w", s.where(), err)
	}
	_ = s.conn.FlushTimeout(attempt) // so that who asks from now on reaches it
	return func() {
		drain(questions)
		drain(requests)
		stopAnswering()
		running.Wait()
	}, nil
}

// drain ends a subscription after the messages that are on their way.
func drain(sub *nats.Subscription) {
	closed := make(chan struct{})
	sub.SetClosedHandler(func(string) { close(closed) })
	if sub.Drain() != nil { // a closed connection has no subscriptions
		return
	}
	select {
	case <-closed:
	case <-time.After(attempt): // the server is away
		_ = sub.Unsubscribe()
	}
}
