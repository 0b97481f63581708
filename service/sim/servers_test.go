package sim

import (
	"bytes"
	"context"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"vitrine/service/eventlog"
)

// servers are the NATS servers of a log, as natslog uses them: a stream, the bucket of the lease, and an object store.
type servers struct {
	w *world

	mu       sync.Mutex
	log      []stored          // the messages first, first+1, …
	first    uint64            // of those that were not removed
	bytes    uint64            // of these
	ids      map[string]uint64 // message of each Nats-Msg-Id
	keys     map[string]*value
	revision uint64
	objects  map[string]*object
	handlers map[string]*handler
	changed  chan struct{} // closed by the next message
	full     time.Time     // until when the disk is full
}

type stored struct {
	nats.Msg
	at time.Time
}

type value struct {
	jetstream.KeyValueEntry
	data     []byte
	revision uint64
}

func (v *value) Value() []byte    { return v.data }
func (v *value) Revision() uint64 { return v.revision }

type object struct {
	info *jetstream.ObjectInfo
	data []byte
}

type handler struct {
	conn   *conn
	handle nats.MsgHandler
}

func newServers(w *world) *servers {
	return &servers{w: w, first: 1, ids: map[string]uint64{}, keys: map[string]*value{}, objects: map[string]*object{},
		handlers: map[string]*handler{}, changed: make(chan struct{})}
}

func (s *servers) last() uint64 { return s.first + uint64(len(s.log)) - 1 }

func refused(code jetstream.ErrorCode, text string) error {
	return &jetstream.APIError{Code: 400, ErrorCode: code, Description: text}
}

const (
	wrongLast = jetstream.JSErrCodeStreamWrongLastSequence
	noSpace   = 10077 // the stream is full
	notFound  = jetstream.JSErrCodeMessageNotFound
)

// publish stores a message, as a server does.
func (s *servers) publish(c *conn, m *nats.Msg) (*jetstream.PubAck, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stream, _, _ := strings.Cut(m.Subject, ".")
	if id := m.Header.Get(jetstream.MsgIDHeader); id != "" {
		if at, ok := s.ids[id]; ok {
			return &jetstream.PubAck{Stream: stream, Sequence: at, Duplicate: true}, nil
		}
	}
	if after := m.Header.Get(jetstream.ExpectedLastSeqHeader); after != "" &&
		after != strconv.FormatUint(s.last(), 10) {
		return nil, refused(wrongLast, "wrong last sequence: "+strconv.FormatUint(s.last(), 10))
	}
	if time.Now().Before(s.full) {
		return nil, refused(noSpace, "maximum bytes exceeded")
	}
	s.log = append(s.log, stored{*m, time.Now()})
	s.bytes += size(m)
	if id := m.Header.Get(jetstream.MsgIDHeader); id != "" {
		s.ids[id] = s.last()
	}
	s.w.ledger.message(s.last(), m, c)
	close(s.changed)
	s.changed = make(chan struct{})
	return &jetstream.PubAck{Stream: stream, Sequence: s.last()}, nil
}

func (s *servers) put(key string, data []byte, after uint64) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.keys[key]
	switch {
	case time.Now().Before(s.full):
		return 0, refused(noSpace, "maximum bytes exceeded")
	case after == 0 && before != nil:
		return 0, jetstream.ErrKeyExists
	case after != 0 && (before == nil || before.revision != after):
		return 0, refused(wrongLast, "wrong last sequence")
	}
	s.revision++
	s.keys[key] = &value{data: data, revision: s.revision}
	return s.revision, nil
}

func (s *servers) get(key string) (jetstream.KeyValueEntry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.keys[key]; v != nil {
		return v, nil
	}
	return nil, jetstream.ErrKeyNotFound
}

func (s *servers) delete(key string, revision uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.keys[key]; v != nil && v.revision == revision {
		delete(s.keys, key)
	}
	return nil
}

// conn is a process's connection to the servers, from one start to the next. A request's fate is drawn at the address
// of its kind and its contents, so that it does not depend on the order of requests that are sent at the same moment.
type conn struct {
	jetstream.JetStream
	*servers
	p    *proc
	life int
	base uint64 // of its draws

	mu    sync.Mutex
	drawn map[address]uint64
	fresh int    // messages with entries that it got as soon as they were stored, undisturbed; see hears
	heard uint64 // the last of them

	seen, sized uint64        // the stream's last message, when its size was last asked for, and when its messages were measured
	dead        chan struct{} // closed at a crash
	once        sync.Once
}

// hasHeard reports whether the process has followed the log for long enough to know its clock, which the given message
// moved last.
func (c *conn) hasHeard(moved uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fresh > 10 && c.heard >= moved
}

// hears notes that the process got a message with entries as soon as it was stored. It does not count while the state
// is behind: one without an old decision in memory reads its offer from the log first.
func (c *conn) hears(message uint64) {
	e, _ := c.p.at()
	if e == nil {
		return
	}
	if lag, sawEnd := e.Lag(); !sawEnd || lag >= time.Second {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fresh++
	c.heard = message
}

// followsAnew notes that the process has yet to hear the log.
func (c *conn) followsAnew() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fresh = 0
}

func (c *conn) kill() { c.once.Do(func() { close(c.dead) }) }

func (c *conn) isDead() bool {
	select {
	case <-c.dead:
		return true
	default:
		return false
	}
}

// hash returns the hash of some bytes.
func hash(data []byte) uint64 {
	h := fnv.New64a()
	h.Write(data)
	return h.Sum64()
}

// luck is a request's fate.
type luck struct {
	out, back         time.Duration
	lostOut, lostBack bool
	again             time.Duration // when a copy arrives; 0 is never
}

// address is where the luck of a request is drawn.
type address struct {
	kind string
	of   uint64
}

func (c *conn) draw(at address) (l luck) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drawn[at]++
	r := rand.New(rand.NewPCG(c.base^hash([]byte(at.kind)), at.of^c.drawn[at]<<48))
	isRough := int64(time.Since(c.w.begin)) < c.w.rough.Load()
	delay := func() time.Duration {
		d := time.Duration(50_000 + r.Int64N(1_000_000))
		switch n := r.IntN(1000); {
		case c.w.calm:
		case isRough && n < 500:
			d += time.Duration(r.Int64N(300_000_000))
		case n < 3:
			d += time.Duration(r.Int64N(4_000_000_000))
		case n < 20:
			d += time.Duration(r.Int64N(200_000_000))
		}
		return d
	}
	l.out, l.back = delay(), delay()
	n, m := r.IntN(1000), time.Duration(r.Int64N(3_000_000_000))
	if c.w.calm {
		return l
	}
	l.lostOut, l.lostBack = n < 2, n >= 2 && n < 6
	if isRough {
		l.lostOut, l.lostBack = n >= 960, n < 200
	}
	switch {
	case l.lostOut:
		c.w.count("message: " + at.kind + " lost")
	case l.lostBack:
		c.w.count("message: answer to " + at.kind + " lost")
	case n >= 206 && n < 210:
		l.again = m
		c.w.count("message: " + at.kind + " doubled")
	case l.back > time.Second:
		c.w.count("message: answer to " + at.kind + " late")
	}
	return l
}

// reach waits until a message passes between the process and the servers, and reports whether it does. A message sent
// during a partition waits until it ends, or is lost.
func (c *conn) reach(outward bool, delay time.Duration) bool {
	time.Sleep(delay)
	for !c.isDead() {
		until := c.p.cutUntil(outward)
		now := time.Now()
		if !until.After(now) {
			return true
		}
		if delay%3 == 0 { // this one is lost
			return false
		}
		time.Sleep(until.Sub(now) + delay)
	}
	return outward // sent before the crash
}

// trip sends a request to the servers and waits for the answer. The end of ctx does not call it back.
func trip[T any](ctx context.Context, c *conn, kind string, of uint64, serve func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	if c.isDead() {
		return none, nats.ErrConnectionClosed
	}
	l := c.draw(address{kind, of})
	answered := make(chan answer, 1)
	go func() {
		if !c.reach(true, l.out) || l.lostOut {
			return
		}
		var a answer
		a.value, a.err = serve()
		if l.again > 0 {
			go func() {
				time.Sleep(l.again)
				_, _ = serve()
			}()
		}
		if c.reach(false, l.back) && !l.lostBack {
			answered <- a
		}
	}()
	select {
	case a := <-answered:
		return a.value, a.err
	case <-ctx.Done():
		return none, ctx.Err()
	case <-c.dead:
		return none, nats.ErrConnectionClosed
	}
}

// Conn and the parts of it that natslog uses.

func (c *conn) FlushTimeout(time.Duration) error { return nil }
func (c *conn) ForceReconnect() error            { return nil }
func (c *conn) IsConnected() bool                { return !c.isDead() }
func (c *conn) MaxPayload() int64                { return 2 << 20 }
func (c *conn) Servers() []string                { return []string{"sim"} }
func (c *conn) ConnectedClusterName() string     { return "" }
func (c *conn) ConnectedUrlRedacted() string     { return "sim" }
func (c *conn) Close()                           { c.kill() }

func (c *conn) Listen(subject string, handle nats.MsgHandler) (func(), error) {
	h := &handler{c, handle}
	c.servers.mu.Lock()
	defer c.servers.mu.Unlock()
	c.handlers[subject] = h
	return func() {
		c.servers.mu.Lock()
		defer c.servers.mu.Unlock()
		if c.handlers[subject] == h {
			delete(c.handlers, subject)
		}
	}, nil
}

// RequestMsgWithContext sends a request to the process that listens, by way of the servers.
func (c *conn) RequestMsgWithContext(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
	request := nats.Msg{Subject: m.Subject, Data: bytes.Clone(m.Data), Header: m.Header}
	answered := make(chan *nats.Msg, 1)
	reply := "reply." + c.p.name + "." + strconv.FormatUint(c.w.replies.Add(1), 10)
	c.w.inboxes.Store(reply, answered)
	defer c.w.inboxes.Delete(reply)
	return trip(ctx, c, "ask", hash(request.Data), func() (*nats.Msg, error) {
		c.servers.mu.Lock()
		h := c.handlers[m.Subject]
		c.servers.mu.Unlock()
		if h == nil || h.conn.isDead() {
			return nil, nats.ErrNoResponders
		}
		l := h.conn.draw(address{"asked", hash(request.Data)})
		if long := time.Until(h.conn.p.thaws()); long > 0 {
			time.Sleep(long + l.out)
		}
		if h.conn.p.isQuiet() {
			return nil, nats.ErrNoResponders
		}
		if !h.conn.reach(false, l.out) {
			return nil, context.DeadlineExceeded
		}
		r := request
		r.Reply = reply
		h.handle(&r)
		select {
		case a := <-answered:
			if !h.conn.reach(true, l.back) || l.lostBack {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return a, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
}

// peer is a connection for answers to requests: its PublishMsg sends them, while JetStream's PublishMsg stores
// messages.
type peer struct{ *conn }

func (p peer) PublishMsg(m *nats.Msg) error {
	if to, ok := p.w.inboxes.Load(m.Reply); ok || m.Subject != "" {
		if !ok {
			to, ok = p.w.inboxes.Load(m.Subject)
		}
		if ok {
			select {
			case to.(chan *nats.Msg) <- &nats.Msg{Data: bytes.Clone(m.Data), Header: m.Header}:
			default:
			}
		}
	}
	return nil
}

// JetStream.

func (c *conn) PublishMsg(ctx context.Context, m *nats.Msg, _ ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	sent := &nats.Msg{Subject: m.Subject, Header: m.Header, Data: bytes.Clone(m.Data)}
	return trip(ctx, c, "publish", hash([]byte(sent.Header.Get(jetstream.ExpectedLastSeqHeader))),
		func() (*jetstream.PubAck, error) { return c.servers.publish(c, sent) })
}

func (c *conn) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	if strings.HasSuffix(name, "-shoppers") || !strings.HasPrefix(name, "OBJ_") && !c.w.made.Load() {
		return nil, jetstream.ErrStreamNotFound
	}
	return &stream{conn: c, isObjects: strings.HasPrefix(name, "OBJ_")}, nil
}

func (c *conn) CreateStream(context.Context, jetstream.StreamConfig) (jetstream.Stream, error) {
	c.w.made.Store(true)
	return &stream{conn: c}, nil
}

func (c *conn) KeyValue(context.Context, string) (jetstream.KeyValue, error) {
	return bucket{conn: c}, nil
}

func (c *conn) CreateKeyValue(context.Context, jetstream.KeyValueConfig) (jetstream.KeyValue, error) {
	return bucket{conn: c}, nil
}

func (c *conn) CreateOrUpdateKeyValue(context.Context, jetstream.KeyValueConfig) (jetstream.KeyValue, error) {
	return bucket{conn: c}, nil
}

func (c *conn) ObjectStore(context.Context, string) (jetstream.ObjectStore, error) {
	return objects{conn: c}, nil
}

func (c *conn) CreateOrUpdateObjectStore(context.Context, jetstream.ObjectStoreConfig) (jetstream.ObjectStore, error) {
	return objects{conn: c}, nil
}

type stream struct {
	jetstream.Stream
	*conn
	isObjects bool
}

func (s *stream) CachedInfo() *jetstream.StreamInfo {
	return &jetstream.StreamInfo{Config: jetstream.StreamConfig{Name: "sim", Replicas: 1}, State: s.state()}
}

func (s *stream) state() jetstream.StreamState {
	s.servers.mu.Lock()
	defer s.servers.mu.Unlock()
	if s.isObjects {
		return jetstream.StreamState{}
	}
	return jetstream.StreamState{FirstSeq: s.first, LastSeq: s.last(), Msgs: uint64(len(s.log)), Bytes: s.bytes}
}

// size returns a message's bytes in a file of a server.
func size(m *nats.Msg) uint64 {
	n := 34 + len(m.Subject) + len("NATS/1.0\r\n\r\n") + len(m.Data)
	for name, values := range m.Header {
		for _, v := range values {
			n += len(name) + len(": \r\n") + len(v)
		}
	}
	return uint64(n)
}

func (s *stream) Info(ctx context.Context, _ ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	return trip(ctx, s.conn, "info", 0, func() (*jetstream.StreamInfo, error) {
		info := s.CachedInfo()
		s.conn.seen = info.State.LastSeq
		return info, nil
	})
}

func (s *stream) GetMsg(ctx context.Context, sequence uint64,
	_ ...jetstream.GetMsgOpt) (*jetstream.RawStreamMsg, error) {
	return trip(ctx, s.conn, "get", sequence, func() (*jetstream.RawStreamMsg, error) {
		s.servers.mu.Lock()
		defer s.servers.mu.Unlock()
		if sequence < s.first || sequence > s.last() {
			return nil, jetstream.ErrMsgNotFound
		}
		m := s.log[sequence-s.first]
		return &jetstream.RawStreamMsg{Subject: m.Subject, Sequence: sequence, Header: m.Header, Data: m.Data,
			Time: m.at}, nil
	})
}

func (s *stream) Purge(ctx context.Context, opts ...jetstream.StreamPurgeOpt) error {
	var r jetstream.StreamPurgeRequest
	for _, o := range opts {
		_ = o(&r)
	}
	if s.isObjects {
		return nil
	}
	_, err := trip(ctx, s.conn, "purge", 0, func() (struct{}, error) {
		s.servers.mu.Lock()
		defer s.servers.mu.Unlock()
		if r.Sequence > s.first && r.Sequence <= s.last()+1 {
			s.bound(r.Sequence)
			for i := range s.log[:r.Sequence-s.first] {
				s.bytes -= size(&s.log[i].Msg)
			}
			s.log = append([]stored(nil), s.log[r.Sequence-s.first:]...)
			s.first = r.Sequence
			if len(s.log) > 0 {
				s.w.ledger.removed(&s.log[0].Msg)
			}
		}
		return struct{}{}, nil
	})
	return err
}

// bound checks that the log's size, when it was measured, needed the last frame to go that goes.
func (s *stream) bound(first uint64) {
	left := uint64(0)
	for at := first; at <= min(s.sized, s.last()); at++ {
		left += size(&s.log[at-s.first].Msg)
	}
	for at := first - 1; at >= s.first; at-- {
		m := &s.log[at-s.first].Msg
		left += size(m)
		if f, err := eventlog.DecodeFrame(m.Data); err == nil && len(f.Entries) > 0 {
			break
		}
	}
	if most := uint64(s.w.retained() / 10 * 9); left <= most {
		s.w.finding("the frame before message %d need not have been removed: %d bytes were left with it, and %d may be",
			first, left, most)
	}
}

func (s *stream) CreateConsumer(ctx context.Context, config jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	return trip(ctx, s.conn, "consumer", config.OptStartSeq, func() (jetstream.Consumer, error) {
		s.servers.mu.Lock()
		defer s.servers.mu.Unlock()
		if config.HeadersOnly {
			s.sized = s.seen
		}
		return &consumer{conn: s.conn, next: max(config.OptStartSeq, s.first), headers: config.HeadersOnly,
			stopped: make(chan struct{})}, nil
	})
}

func (s *stream) DeleteConsumer(context.Context, string) error { return nil }

// consumer delivers messages some time after they were stored.
type consumer struct {
	jetstream.Consumer
	*conn
	next, count uint64
	headers     bool
	stop        sync.Once
	stopped     chan struct{}
}

func (c *consumer) CachedInfo() *jetstream.ConsumerInfo { return nil }

func (c *consumer) Messages(...jetstream.PullMessagesOpt) (jetstream.MessagesContext, error) {
	return messages{consumer: c}, nil
}

// messages are a consumer's deliveries.
type messages struct {
	jetstream.MessagesContext
	*consumer
}

func (c messages) Stop() { c.stop.Do(func() { close(c.stopped) }) }

// waits returns the time that an option allows, which only its package can read otherwise.
func waits(opts []jetstream.NextOpt) time.Duration {
	for _, o := range opts {
		f := reflect.ValueOf(o)
		to := reflect.New(f.Type().In(0).Elem())
		f.Call([]reflect.Value{to})
		if d := to.Elem().FieldByName("timeout"); d.Int() > 0 {
			return time.Duration(d.Int())
		}
	}
	return time.Minute
}

func (c messages) Next(opts ...jetstream.NextOpt) (jetstream.Msg, error) {
	timeout := time.NewTimer(waits(opts))
	defer timeout.Stop()
	for {
		c.servers.mu.Lock()
		changed := c.changed
		c.next = max(c.next, c.first)
		var m *delivered
		var at time.Time
		if last := c.last(); c.next <= last {
			s := &c.log[c.next-c.first]
			m, at = &delivered{sequence: c.next, count: c.count + 1, pending: last - c.next, headers: s.Header,
				data: s.Data}, s.at
		}
		c.servers.mu.Unlock()
		var due <-chan time.Time
		if m != nil {
			if c.headers {
				m.headers = nats.Header{}
				for k, v := range c.log[c.next-c.first].Header {
					m.headers[k] = v
				}
				m.headers.Set(nats.MsgSize, strconv.Itoa(len(m.data)))
				m.data = nil
			}
			until := c.p.cutUntil(false)
			if lag := at.Add(c.p.lag(c.next)); lag.After(until) {
				until = lag
			}
			left := time.Until(until)
			if left <= 0 {
				c.next++
				c.count++
				if m.pending == 0 && !c.headers && len(m.data) > eventlog.EmptyFrame && time.Since(at) < time.Second/2 {
					c.hears(m.sequence)
				}
				return m, nil
			}
			timer := time.NewTimer(left)
			defer timer.Stop()
			due, changed = timer.C, nil
		}
		select {
		case <-changed:
		case <-due:
		case <-timeout.C:
			return nil, nats.ErrTimeout
		case <-c.stopped:
			return nil, jetstream.ErrMsgIteratorClosed
		case <-c.dead:
			return nil, nats.ErrConnectionClosed
		}
	}
}

type delivered struct {
	jetstream.Msg
	sequence, count, pending uint64
	headers                  nats.Header
	data                     []byte
}

func (d *delivered) Data() []byte         { return d.data }
func (d *delivered) Headers() nats.Header { return d.headers }

func (d *delivered) Metadata() (*jetstream.MsgMetadata, error) {
	return &jetstream.MsgMetadata{Sequence: jetstream.SequencePair{Consumer: d.count, Stream: d.sequence},
		NumPending: d.pending}, nil
}

// bucket is the bucket of the lease.
type bucket struct {
	jetstream.KeyValue
	*conn
}

func (b bucket) Bucket() string { return "sim-lease" }

func (b bucket) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	return trip(ctx, b.conn, "key", 0, func() (jetstream.KeyValueEntry, error) { return b.servers.get(key) })
}

func (b bucket) Create(ctx context.Context, key string, data []byte, _ ...jetstream.KVCreateOpt) (uint64, error) {
	data = bytes.Clone(data)
	return trip(ctx, b.conn, "renew", 0, func() (uint64, error) { return b.servers.put(key, data, 0) })
}

func (b bucket) Update(ctx context.Context, key string, data []byte, revision uint64) (uint64, error) {
	data = bytes.Clone(data)
	return trip(ctx, b.conn, "renew", 0, func() (uint64, error) { return b.servers.put(key, data, revision) })
}

func (b bucket) Delete(ctx context.Context, key string, _ ...jetstream.KVDeleteOpt) error {
	held, err := b.servers.get(key)
	if err != nil || !bytes.Contains(held.Value(), []byte(`"`+b.p.id()+`"`)) { // as its option says
		return err
	}
	_, err = trip(ctx, b.conn, "release", 0, func() (struct{}, error) {
		return struct{}{}, b.servers.delete(key, held.Revision())
	})
	return err
}

// objects are the snapshots beside the log.
type objects struct {
	jetstream.ObjectStore
	*conn
}

func (o objects) Put(ctx context.Context, meta jetstream.ObjectMeta, r io.Reader) (*jetstream.ObjectInfo, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	return trip(ctx, o.conn, "share", 0, func() (*jetstream.ObjectInfo, error) {
		o.servers.mu.Lock()
		defer o.servers.mu.Unlock()
		if time.Now().Before(o.full) {
			return nil, refused(noSpace, "maximum bytes exceeded")
		}
		info := &jetstream.ObjectInfo{ObjectMeta: meta, Size: uint64(len(data))}
		o.objects[meta.Name] = &object{info, data}
		return info, nil
	})
}

func (o objects) find(name string) (*object, error) {
	o.servers.mu.Lock()
	defer o.servers.mu.Unlock()
	if found := o.servers.objects[name]; found != nil {
		return found, nil
	}
	return nil, jetstream.ErrObjectNotFound
}

func (o objects) GetInfo(ctx context.Context, name string,
	_ ...jetstream.GetObjectInfoOpt) (*jetstream.ObjectInfo, error) {
	return trip(ctx, o.conn, "object", 0, func() (*jetstream.ObjectInfo, error) {
		found, err := o.find(name)
		if err != nil {
			return nil, err
		}
		return found.info, nil
	})
}

func (o objects) Get(ctx context.Context, name string, _ ...jetstream.GetObjectOpt) (jetstream.ObjectResult, error) {
	return trip(ctx, o.conn, "object", 0, func() (jetstream.ObjectResult, error) {
		found, err := o.find(name)
		if err != nil {
			return nil, err
		}
		return &result{Reader: bytes.NewReader(found.data)}, nil
	})
}

type result struct {
	jetstream.ObjectResult
	io.Reader
}

func (r *result) Read(b []byte) (int, error) { return r.Reader.Read(b) }
func (r *result) Close() error               { return nil }
func (r *result) Error() error               { return nil }
