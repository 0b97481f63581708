package sim

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"vitrine"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/eventlog/natslog"
	"vitrine/service/host"
	"vitrine/service/learner"
	"vitrine/service/offer"
	"vitrine/service/setup"
	"vitrine/service/state"
)

// The sizes of a world.
const (
	processes = 3
	clients   = 96
	window    = 20 * time.Second // of the attribution
)

// world is a cluster and all around it.
type world struct {
	seed    uint64
	dir     string
	begin   time.Time
	servers *servers
	ledger  *ledger
	procs   []*proc
	calm    bool         // without faults
	rough   atomic.Int64 // until when messages are slow and answers lost, since begin
	made    atomic.Bool
	replies atomic.Uint64
	inboxes sync.Map
	logger  *slog.Logger

	mu       sync.Mutex
	lines    []line
	counts   map[string]int // of events
	sums     []sum
	findings []string
	end      time.Duration // when the first was found
}

// sum is of the state that a process had after an entry.
type sum struct {
	entry uint64
	of    string
	who   string
}

type line struct {
	at    time.Duration
	actor string
	text  string
}

// retained is how many bytes of the log are kept, enough for the decisions that callers ask about again.
func (w *world) retained() int { return 2_000_000 + 500_000*int(w.seed%3) }

// rand returns draws at an address.
func (w *world) rand(address ...any) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, address...)
	return rand.New(rand.NewPCG(w.seed, h.Sum64()))
}

func (w *world) at(t time.Time) string { return t.Sub(w.begin).Round(time.Microsecond).String() }

func (w *world) trace(actor, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, line{time.Since(w.begin), actor, fmt.Sprintf(format, args...)})
}

// count notes that something occurred.
func (w *world) count(what string) { w.countN(what, 1) }

func (w *world) countN(what string, times int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what] += times
}

// finding notes that something is wrong. The world stops soon.
func (w *world) finding(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.trace("finding", "%s", text)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.findings = append(w.findings, text); len(w.findings) == 1 {
		w.end = time.Since(w.begin)
	}
}

func (w *world) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.findings) > 0
}

func (w *world) deferred(id string) bool { return strings.HasSuffix(id, "d") }

// proc is a process of the service, over all its starts.
type proc struct {
	w     *world
	name  string
	lease time.Duration
	rate  float64 // of its steady clock

	mu     sync.Mutex
	life   int
	dir    string
	conn   *conn
	engine *engine.Engine // nil while it does not answer
	clock  func() time.Time
	out    time.Time     // until then its messages stay inside
	in     time.Time     // and in
	wrong  time.Duration // its time of day
	slept  time.Duration // by its monotonic clock
	frozen time.Time     // until when it does nothing
	quiet  time.Time     // until when its callers only read
	slow   time.Time     // until when what it reads lags

	takesOver bool // its next start
	stop      context.CancelFunc
	ended     chan struct{}
}

func (p *proc) id() string { return fmt.Sprint(p.name, "-", p.life) }

func (p *proc) cutUntil(outward bool) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if outward {
		return p.out
	}
	return p.in
}

// lag is how long after it was stored a message comes.
func (p *proc) lag(message uint64) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := (message*0x9e3779b97f4a7c15 + p.w.seed*0xbf58476d1ce4e5b9 + uint64(p.name[1])) >> 20
	d := 50*time.Microsecond + time.Duration(h%2_000_000)
	if time.Now().Before(p.slow) {
		d += time.Duration(h % 1_500_000_000)
	}
	return d
}

func (p *proc) wall() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Add(p.wrong)
}

// elapsed is the time since the beginning by a steady clock that is up to one percent wrong.
func (p *proc) elapsed() time.Duration { return time.Duration(p.rate * float64(time.Since(p.w.begin))) }

// clocks are the lease's, which may be wrong by a 2000th.
func (p *proc) clocks() (steady, day time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	wrong := time.Duration((p.rate - 1) / 20 * float64(now.Sub(p.w.begin)))
	return now.Add(wrong - p.slept), now.Add(wrong + p.wrong).Round(0)
}

func (p *proc) setsClock(wrong time.Duration) {
	p.w.trace(p.name, "has its clock set to %v", wrong)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrong = wrong
}

// thaws returns the end of the process's sleep.
func (p *proc) thaws() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.frozen
}

// moment is how long calls under way have to end before a process is cut off or freezes.
const moment = 50 * time.Millisecond

// isQuiet reports whether the process is to write nothing, and whether its callers only read.
func (p *proc) isQuiet() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.quiet.After(time.Now())
}

// freeze freezes a process, and its steady clock if it sleeps. Calls that come meanwhile wait. Those under way have a moment to end: the
// first that a process does afterwards is to answer a call.
func (p *proc) freeze(ctx context.Context, long time.Duration, sleeps bool) {
	p.mu.Lock()
	p.frozen = time.Now().Add(moment + long)
	p.mu.Unlock()
	sleep(ctx, moment)
	p.cut(long, long)
	if sleeps {
		p.mu.Lock()
		p.slept += long
		p.mu.Unlock()
	}
}

// at returns the engine and the clock of a process that answers.
func (p *proc) at() (*engine.Engine, func() time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.engine, p.clock
}

// start begins a life of a process, in a directory of its own.
func (p *proc) start() {
	w := p.w
	ctx, stop := context.WithCancel(context.Background())
	p.mu.Lock()
	p.life++
	life := p.life
	before := p.dir
	p.dir = filepath.Join(w.dir, p.id())
	p.stop, p.ended, p.frozen = stop, make(chan struct{}), time.Time{}
	ended := p.ended
	c := host.Default()
	c.Data = p.dir
	p.mu.Unlock()
	if before == "" {
		_ = os.MkdirAll(p.dir, 0o700)
	}
	c.Log.URL, c.Log.Stream = "nats://sim", "sim"
	c.Limits.Memory.Bytes = 1 << 30
	c.Snapshots.Every.Duration, c.Snapshots.KeepEvery.Duration = 5_000_000_123, time.Hour
	if life%2 == 0 { // a timer of a frozen process still goes off, and a version is an entry to write
		c.Snapshots.KeepEvery.Duration = 3_000_000_457
	}
	c.Retention.Size.Bytes = uint64(w.retained())
	takesOver := p.takesOver
	p.takesOver = false
	o := host.Options{
		TakeOver: takesOver, Wall: p.wall, Elapsed: p.elapsed, Patience: 6 * time.Second,
		Logger: w.logger.With("process", p.id()),
		Connecting: func(o *natslog.Options) {
			p.mu.Lock()
			defer p.mu.Unlock()
			o.Process, o.Lease, o.Now = fmt.Sprint(p.name, "-", life), p.lease, p.clocks
			o.Servers = func() (natslog.Conn, jetstream.JetStream) {
				n := &conn{servers: w.servers, p: p, life: life, base: w.rand(p.name, life).Uint64(),
					drawn: map[address]uint64{}, dead: make(chan struct{})}
				p.mu.Lock()
				defer p.mu.Unlock()
				if p.life != life {
					n.kill()
				} else {
					p.conn = n
				}
				return peer{n}, n
			}
		},
		Serve: func(ctx context.Context, e *engine.Engine, clock func() time.Time) error {
			return p.serve(ctx, life, e, clock)
		},
	}
	go func() {
		defer close(ended)
		err := host.Run(ctx, c, o)
		p.mu.Lock()
		crashed := p.life != life || errors.Is(err, nats.ErrConnectionClosed)
		p.mu.Unlock()
		if err != nil && !crashed && ctx.Err() == nil {
			w.finding("process %s-%d has ended: %v", p.name, life, err)
		}
	}()
}

// serve is a process while it answers.
func (p *proc) serve(ctx context.Context, life int, e *engine.Engine, clock func() time.Time) error {
	p.mu.Lock()
	if p.life == life {
		p.engine, p.clock = e, clock
	}
	n := p.conn
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.engine == e {
			p.engine, p.clock = nil, nil
		}
	}()
	p.w.trace(p.name, "answers as the %s at entry %d", e.Role(), e.Sequence())
	if e.Role() == engine.Follower {
		n.followsAnew()
	}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if p.isQuiet() || p.thaws().After(time.Now()) {
			continue
		}
		if e.Role() == engine.Follower {
			if err := e.Failure(); err != nil {
				return err
			}
			continue
		}
		if _, err := e.Expire(ctx, clock().UnixNano()); err != nil && ctx.Err() == nil {
			return err
		}
		if _, _, err := e.Exchange(ctx, clock().UnixNano()); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// crash ends a process at once. Its disk stays for its next life.
func (p *proc) crash(r *rand.Rand) {
	p.mu.Lock()
	stop, ended, before, life := p.stop, p.ended, p.dir, p.life
	if p.conn != nil {
		p.conn.kill()
	}
	p.engine, p.clock = nil, nil
	p.mu.Unlock()
	after := filepath.Join(p.w.dir, fmt.Sprint(p.name, "-", life+1))
	switch n := r.IntN(8); {
	case n == 0:
		p.w.trace(p.name, "crashes, and loses its disk")
		_ = os.MkdirAll(after, 0o700)
	case n == 1:
		p.w.trace(p.name, "crashes, and has a snapshot of another log")
		_ = os.MkdirAll(after, 0o700)
		if data, err := os.ReadFile(filepath.Join(before, host.SnapshotFile)); err == nil {
			if data = p.w.foreign(data); data != nil {
				_ = os.WriteFile(filepath.Join(after, host.SnapshotFile), data, 0o600)
			}
		}
	case n == 2:
		p.w.trace(p.name, "crashes, and has an old snapshot")
		_ = os.MkdirAll(after, 0o700)
		if bases, _ := filepath.Glob(filepath.Join(before, host.BasesDir, "*.snapshot")); len(bases) > 0 {
			if data, err := os.ReadFile(bases[0]); err == nil {
				_ = os.WriteFile(filepath.Join(after, host.SnapshotFile), data, 0o600)
			}
		}
	default:
		p.w.trace(p.name, "crashes")
		_ = os.CopyFS(after, os.DirFS(before))
		if data, err := os.ReadFile(filepath.Join(before, host.SnapshotFile)); err == nil &&
			n == 3 { // while it writes the next
			_ = os.WriteFile(filepath.Join(after, "."+host.SnapshotFile+".1"), data[:len(data)/2], 0o600)
		}
	}
	stop()
	<-ended
	_ = os.RemoveAll(before)
}

// end ends a process as an operator does.
func (p *proc) end() {
	p.mu.Lock()
	stop, ended, before, life := p.stop, p.ended, p.dir, p.life
	p.mu.Unlock()
	p.w.trace(p.name, "is stopped")
	stop()
	<-ended
	p.mu.Lock()
	if p.conn != nil {
		p.conn.kill()
	}
	p.mu.Unlock()
	_ = os.Rename(before, filepath.Join(p.w.dir, fmt.Sprint(p.name, "-", life+1)))
}

// cut cuts a process off for a time, both ways or one.
func (p *proc) cut(out, in time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.out, p.in = now.Add(out), now.Add(in)
	if p.conn != nil {
		p.conn.followsAnew()
	}
}

// fault is one thing that goes wrong, to a process or to all, and lasts for some time.
type fault struct {
	weight int
	name   string
	do     func(ctx context.Context, w *world, p *proc, r *rand.Rand, long time.Duration)
}

var faults = []fault{
	{6, "crash", func(ctx context.Context, w *world, p *proc, r *rand.Rand, long time.Duration) {
		p.crash(r)
		p.setsClock(w.error(r))
		sleep(ctx, long/4)
		p.start()
	}},
	{3, "stop", func(ctx context.Context, w *world, p *proc, r *rand.Rand, long time.Duration) {
		p.end()
		sleep(ctx, long/8)
		p.start()
	}},
	{6, "cut off while its callers read",
		func(ctx context.Context, _ *world, p *proc, _ *rand.Rand, long time.Duration) {
			p.mu.Lock()
			p.quiet = time.Now().Add(2*time.Second + long)
			p.mu.Unlock()
			sleep(ctx, moment)
			p.cut(2*time.Second+long, 2*time.Second+long)
		}},
	{3, "cut off", func(_ context.Context, _ *world, p *proc, _ *rand.Rand, long time.Duration) { p.cut(long, long) }},
	{2, "not heard", func(_ context.Context, _ *world, p *proc, _ *rand.Rand, long time.Duration) { p.cut(long, 0) }},
	{3, "hears nothing", func(_ context.Context, _ *world, p *proc, _ *rand.Rand, long time.Duration) {
		p.cut(0, long)
	}},
	{4, "frozen", func(ctx context.Context, _ *world, p *proc, _ *rand.Rand, long time.Duration) {
		p.freeze(ctx, 2*time.Second+long, false)
	}},
	{6, "asleep, and its steady clock, too",
		func(ctx context.Context, _ *world, p *proc, _ *rand.Rand, long time.Duration) {
			p.freeze(ctx, 2*time.Second+long, true)
		}},
	{2, "clock stepped", func(_ context.Context, w *world, p *proc, r *rand.Rand, _ time.Duration) {
		if !p.thaws().After(time.Now()) { // a sleeping machine runs no timer
			p.setsClock(w.error(r))
		}
	}},
	{2, "reads late", func(_ context.Context, _ *world, p *proc, _ *rand.Rand, long time.Duration) {
		p.mu.Lock()
		p.slow = time.Now().Add(long)
		p.mu.Unlock()
		p.conn.followsAnew()
	}},
	{1, "disk of the servers full", func(_ context.Context, w *world, _ *proc, _ *rand.Rand, long time.Duration) {
		w.servers.mu.Lock()
		defer w.servers.mu.Unlock()
		w.servers.full = time.Now().Add(long / 4)
	}},
	{1, "servers away", func(_ context.Context, w *world, _ *proc, _ *rand.Rand, long time.Duration) {
		for _, p := range w.procs {
			p.cut(long, long)
		}
	}},
	{1, "two take over", func(_ context.Context, w *world, p *proc, _ *rand.Rand, _ time.Duration) {
		w.twoTakeOver(p, 0)
	}},
	{2, "rough network", func(_ context.Context, w *world, _ *proc, _ *rand.Rand, long time.Duration) {
		w.roughens(long)
	}},
	{4, "rough network, one takes over",
		func(ctx context.Context, w *world, p *proc, _ *rand.Rand, long time.Duration) {
			q := w.beside(p)
			q.end()
			q.takesOver = true
			w.roughens(2*time.Second + long)
			sleep(ctx, long/4)
			q.start()
		}},
	{4, "rough network, two take over", func(_ context.Context, w *world, p *proc, _ *rand.Rand, long time.Duration) {
		w.twoTakeOver(p, 4*time.Second+long/2)
	}},
	{1, "rough network, crash", func(ctx context.Context, w *world, p *proc, r *rand.Rand, long time.Duration) {
		w.roughens(2*time.Second + long)
		sleep(ctx, long/4)
		p.crash(r)
		sleep(ctx, long/4)
		p.start()
	}},
}

// roughens makes messages slow and loses answers for some time.
func (w *world) roughens(long time.Duration) { w.rough.Store(int64(time.Since(w.begin) + long)) }

// twoTakeOver starts the other two processes again, each of which is to take the log over, in a network that is rough for some time.
func (w *world) twoTakeOver(p *proc, rough time.Duration) {
	q := w.beside(p)
	o := w.beside(q)
	q.end()
	o.end()
	q.takesOver, o.takesOver = true, true
	w.roughens(rough)
	q.start()
	o.start()
}

// beside is the process after another.
func (w *world) beside(p *proc) *proc { return w.procs[(slices.Index(w.procs, p)+1)%len(w.procs)] }

// trouble makes what may go wrong go wrong, until ctx ends. Three faults of four are the leader's, if there is one.
func (w *world) trouble(ctx context.Context) {
	r := w.rand("trouble")
	total := 0
	for _, f := range faults {
		total += f.weight
	}
	for sleep(ctx, time.Duration(300_000_000+r.Int64N(2_500_000_000))) {
		p := w.procs[r.IntN(len(w.procs))]
		if r.IntN(4) > 0 {
			for _, q := range w.procs {
				if e, _ := q.at(); e != nil && e.Role() == engine.Leader {
					p = q
				}
			}
		}
		long, n := time.Duration(r.Int64N(5_000_000_000)), r.IntN(total)
		for _, f := range faults {
			if n -= f.weight; n < 0 {
				w.trace(p.name, "%s, %v", f.name, long)
				w.count("fault: " + f.name)
				f.do(ctx, w, p, r, long)
				break
			}
		}
	}
}

// error is how wrong a time of day is: not at all, by less than a second, or by much.
func (w *world) error(r *rand.Rand) time.Duration {
	sign := time.Duration(2*r.IntN(2) - 1)
	small, large := time.Duration(r.Int64N(400_000_000)), 2*time.Minute+time.Duration(r.Int64N(int64(time.Hour)))
	switch n := r.IntN(4); n {
	case 0:
		return sign * large
	case 1:
		return sign * small
	}
	return 0
}

// sleep reports whether ctx goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

const (
	homeConfig = `{"max_size":2,"features":[{"name":"x","kind":"number"},{"name":"kind","kind":"category"}],"policy":{"name":"greedy"},"attribution_window":"20s","max_versions":3,"learn_in_alarm":true,"memory_bytes":%d}`
	shopConfig = `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"},"attribution_window":"20s","max_versions":2,"memory_bytes":20000000,"seed":%d%s}`
)

// client decides, reports, reads and repeats, until ctx ends.
type client struct {
	w       *world
	number  int
	r       *rand.Rand
	mu      sync.Mutex
	recent  []*asked
	old     []*asked // some of those before
	partner *client
	at      *proc
	n       int
	waited  bool // for a process that was frozen or is quiet: it reads
}

// asked is a client's decision.
type asked struct {
	placement string
	request   *api.Request
	shown     []string
	item      string // the outcome that will be reported
	hasItem   bool
	isOld     bool
	at        time.Time
}

// mayBeForgotten reports whether its entry may be removed and the decision forgotten, also because its client slept.
func (d *asked) mayBeForgotten() bool { return d.isOld || time.Since(d.at) > 10*time.Second }

func (c *client) run(ctx context.Context) {
	for sleep(ctx, time.Duration(1+c.r.ExpFloat64()*float64(20*time.Millisecond))) {
		if c.at == nil || c.r.IntN(20) == 0 {
			c.at = c.w.procs[c.r.IntN(len(c.w.procs))]
		}
		if c.waited = c.at.isQuiet(); c.at.thaws().After(time.Now()) {
			if c.waited = true; !sleep(ctx, time.Until(c.at.thaws())+time.Duration(1+c.r.Int64N(300_000))) {
				return
			}
		}
		e, clock := c.at.at()
		if e == nil {
			c.at = nil
			continue
		}
		c.act(ctx, e, clock)
	}
}

func (c *client) act(ctx context.Context, e *engine.Engine, clock func() time.Time) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(2_000_000_000+c.r.Int64N(8_000_000_000)))
	defer cancel()
	a := &answer{client: c.number, begin: time.Now(), byLeader: e.Role() == engine.Leader}
	now := clock().UnixNano()
	n := c.r.IntN(100)
	if c.waited { // what has the partner decided meanwhile?
		n = 96
	}
	d := c.pick(n)
	if d == nil || n < 50 {
		d = c.ask()
		n = 0
	} else if n < 56 && d.mayBeForgotten() {
		n = 99
	}
	a.placement, a.id = d.placement, d.request.Decision
	switch {
	case n < 56: // a new one, or once more
		a.kind = "decide"
		c.w.ledger.ask(d.placement, a.id)
		var got *offer.Offer
		if got, a.err = e.Decide(ctx, d.placement, d.request, now); a.err == nil {
			a.shown = got.IDs()
			c.mu.Lock()
			d.shown = a.shown
			c.mu.Unlock()
		}
	case n < 90:
		a.kind = "outcome"
		c.mu.Lock()
		if !d.hasItem || c.r.IntN(30) == 0 {
			d.item, d.hasItem = "", true
			if c.r.IntN(3) > 0 && len(d.shown) > 0 {
				d.item = d.shown[c.r.IntN(len(d.shown))]
			}
		}
		a.item = d.item
		c.mu.Unlock()
		a.err = e.Outcome(ctx, d.placement, a.id, a.item, now)
	case n < 94 && c.w.deferred(a.id):
		a.kind = "activate"
		a.err = e.Activate(ctx, d.placement, a.id, now)
	default:
		a.kind = "read"
		if a.err = e.CatchUp(ctx); a.err == nil {
			var read engine.Decision
			if read, a.err = e.Decision(ctx, d.placement, a.id); a.err == nil {
				a.status, a.choice = read.Status, read.Choice
			}
		}
	}
	a.end = time.Now()
	if a.err != nil && !errors.Is(a.err, engine.ErrLate) && !errors.Is(a.err, engine.ErrConflict) {
		c.w.trace(fmt.Sprint("client ", c.number), "%s %s at %s: %v", a.kind, a.id, c.at.name, plain(a.err))
	}
	c.w.ledger.check(a)
}

// plain is an error without what is drawn in each run.
func plain(err error) string {
	text := err.Error()
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		text = text[:i]
	}
	text, _, _ = strings.Cut(text, ": process ") // its number
	return text[:min(len(text), 90)]
}

// pick returns a decision of this client or its partner.
func (c *client) pick(n int) *asked {
	of := c
	if n%4 == 0 {
		of = c.partner
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	if len(of.recent) == 0 {
		return nil
	}
	if c.r.IntN(12) == 0 && len(of.old) > 0 {
		return of.old[c.r.IntN(len(of.old))]
	}
	return of.recent[c.r.IntN(len(of.recent))]
}

// ask makes a new decision.
func (c *client) ask() *asked {
	c.n++
	d := &asked{placement: "home", at: time.Now(),
		request: &api.Request{Decision: fmt.Sprintf("c%d-%d", c.number, c.n)}}
	switch n := c.r.IntN(24_000); {
	case n < 24: // so few that its learner waits, between two versions
		d.placement = "quiet"
		d.request.Items = []api.Item{{ID: "i", Features: api.Values{api.Number("x", 1), api.Text("kind", "k0")}}}
	case n < 4000:
		d.placement = "shop"
		d.request.MaxSize, d.request.ShopperID = 1, fmt.Sprint("u", c.r.IntN(50))
	default:
		for i := range 3 {
			d.request.Items = append(d.request.Items, api.Item{ID: fmt.Sprint("i", i),
				Features: api.Values{api.Number("x", float64(c.r.IntN(8))/8),
					api.Text("kind", fmt.Sprint("k", c.r.IntN(4)))}})
		}
	}
	if c.r.IntN(12) == 0 {
		d.request.Decision += "d"
		d.request.Defer = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.recent = append(c.recent, d); len(c.recent) > 12 {
		if c.n%15 == 0 || c.w.deferred(c.recent[0].request.Decision) {
			c.recent[0].isOld = true
			c.old = append(c.old, c.recent[0])
		}
		c.recent = c.recent[1:]
	}
	return d
}

// operate changes placements, catalogues and learners, until ctx ends.
func (w *world) operate(ctx context.Context, number int) {
	r := w.rand("operator", number)
	for n := 0; sleep(ctx, time.Duration(50_000_000+r.Int64N(700_000_000))); n++ {
		p := w.procs[r.IntN(len(w.procs))]
		e, clock := p.at()
		if e == nil || p.isQuiet() || p.thaws().After(time.Now()) { // a change would keep its callers waiting
			continue
		}
		w.operation(ctx, r, number, n, e, clock().UnixNano())
	}
}

func (w *world) operation(ctx context.Context, r *rand.Rand, number, n int, e *engine.Engine, now int64) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	a := &answer{placement: "config", client: clients + number, begin: time.Now(), byLeader: true}
	var err error
	kind := r.IntN(12)
	pick, item, price := r.IntN(10), fmt.Sprint("s", r.IntN(30)), float64(1+r.IntN(20))
	switch kind {
	case 0, 1, 2:
		a.kind, a.value = "put", 60_000_000+2*n+number
		_, err = e.Put(ctx, "home", fmt.Appendf(nil, homeConfig, a.value), now)
	case 3, 4, 5:
		a.kind = "config"
		if err = e.CatchUp(ctx); err == nil {
			var c *setup.Config
			if c, err = e.Config("home"); err == nil {
				a.value = c.MemoryBytes
			}
		}
	case 6:
		if pick < 5 {
			_, err = e.PutItems(ctx, "shop",
				[]api.CatalogueItem{{ID: item, Features: api.Values{api.Number("x", price/20)}, Revenue: &price}}, now)
			break
		}
		a.kind, a.placement, a.value = "put", "items", 2+2*n+number
		_, err = e.PutItems(ctx, "shop", priced(a.value), now)
	case 7:
		a.kind, a.placement = "config", "items"
		if err = e.CatchUp(ctx); err == nil {
			a.value, err = w.price(e)
		}
	case 8:
		_, err = e.DeleteItems(ctx, "shop", []string{item}, now)
	case 9:
		var number uint64
		if number, err = e.Keep(ctx, "quiet", fmt.Sprint("note ", n), now); err == nil {
			w.hasNote(e, number)
		}
	case 10:
		if versions, _ := e.Versions("shop", now); len(versions) > 0 {
			err = e.RollBack(ctx, "shop", versions[pick%len(versions)].Version, nil, now)
		}
	case 11:
		mode := ""
		if pick < 5 {
			mode = `,"mode":"experiment","experiment":{"name":"e","variants":[{"name":"own","show":"policy","share":0.5},{"name":"rival","show":"policy","policy":{"name":"greedy"},"share":0.5}]}`
		}
		how := engine.Change{Reset: pick%3 == 0, Relearn: pick%3 == 1}
		if _, err = e.Change(ctx, "shop", fmt.Appendf(nil, shopConfig, pick%2, mode), how, now); err == nil &&
			mode != "" {
			w.count("experiment")
		}
	}
	a.end, a.err = time.Now(), err
	w.trace(fmt.Sprint("operator ", number), "%d: %v", kind, plain(cmpErr(err)))
	if err == nil {
		w.count(fmt.Sprint("operation: ", [...]string{"put", "put", "put", "read", "read", "read", "push", "list",
			"delete", "keep", "roll back", "change"}[kind]))
	}
	if a.kind != "" {
		w.ledger.check(a)
	}
}

// priced are items that are pushed together, and have one price.
func priced(price int) (items []api.CatalogueItem) {
	for i := range 4 {
		items = append(items, api.CatalogueItem{ID: fmt.Sprint("t", i),
			Features: api.Values{api.Number("x", float64(i)/4)}, Revenue: new(float64(price))})
	}
	return items
}

// price returns the price of those items, and checks that it is one.
func (w *world) price(e *engine.Engine) (price int, err error) {
	page, err := e.Items("shop", 0, engine.MaxPage)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, i := range page.Items {
		if i.ID[0] == 't' {
			if n++; price != 0 && price != int(*i.Revenue) {
				w.finding("items of one push have the prices %d and %v", price, *i.Revenue)
			}
			price = int(*i.Revenue)
		}
	}
	if n != len(priced(1)) {
		w.finding("%d items of one push are there, want %d", n, len(priced(1)))
	}
	return price, nil
}

var errNone = errors.New("done")

func cmpErr(err error) error {
	if err == nil {
		return errNone
	}
	return err
}

// hasNote checks that a version which an operator keeps is not one of the timer.
func (w *world) hasNote(e *engine.Engine, number uint64) {
	versions, err := e.Versions("quiet", 0)
	for _, v := range versions {
		if err == nil && v.Version == number && v.Automatic {
			w.finding("version %d was kept by an operator, and counts as kept by the timer", number)
		}
	}
}

// run plays a world for some virtual time, and then until it is at rest. It returns the decisions made.
func (w *world) run(t *testing.T, lasts time.Duration) {
	time.Sleep(26 * 365 * 24 * time.Hour) // to after the beginning of numbers of replicas
	w.begin = time.Now()
	w.servers, w.ledger = newServers(w), newLedger(w)
	w.calm = true
	leases := w.rand("leases")
	for i := range processes {
		p := &proc{w: w, name: fmt.Sprint("p", i), lease: time.Second + time.Duration(leases.IntN(3))*time.Second,
			rate: 1 + (leases.Float64()-0.5)/50}
		w.procs = append(w.procs, p)
		p.start()
		time.Sleep(1_234_567)
	}
	w.prepare(t)
	w.calm = false
	ctx, stop := context.WithCancel(context.Background())
	var going sync.WaitGroup
	all := make([]*client, clients)
	for i := range all {
		all[i] = &client{w: w, number: i, r: w.rand("client", i)}
	}
	for i, c := range all {
		c.partner = all[i^1]
		going.Go(func() { c.run(ctx) })
	}
	for i := range 2 {
		going.Go(func() { w.operate(ctx, i) })
	}
	troubles, end := context.WithCancel(ctx)
	going.Go(func() { w.trouble(troubles) })
	going.Go(func() { w.look(troubles) })
	for time.Since(w.begin) < lasts && !w.failed() {
		time.Sleep(time.Second)
	}
	end()
	w.calm = true
	time.Sleep(8 * time.Second) // of partitions
	stop()
	going.Wait()
	if !w.failed() {
		w.rest(t)
	}
	for _, p := range w.procs {
		p.end()
	}
	time.Sleep(time.Minute) // for calls under way
}

// leader returns the process that writes the log, or nil.
func (w *world) leader() *engine.Engine {
	for _, p := range w.procs {
		if e, _ := p.at(); e != nil && e.Role() == engine.Leader && e.Confirm(context.Background()) == nil {
			return e
		}
	}
	return nil
}

// prepare makes the placements.
func (w *world) prepare(t *testing.T) {
	ctx := context.Background()
	var e *engine.Engine
	for range 100 {
		if e = w.leader(); e != nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if e == nil {
		t.Fatal("no process leads")
	}
	now := time.Now().UnixNano()
	_, err := e.Put(ctx, "home", fmt.Appendf(nil, homeConfig, 60_000_000), now)
	_, err2 := e.Put(ctx, "shop", fmt.Appendf(nil, shopConfig, 0, ""), now)
	_, err4 := e.Put(ctx, "quiet", fmt.Appendf(nil, homeConfig, 60_000_000), now)
	items := priced(1)
	for i := range 10 {
		items = append(items, api.CatalogueItem{ID: fmt.Sprint("s", i),
			Features: api.Values{api.Number("x", float64(i)/10)}})
	}
	_, err3 := e.PutItems(ctx, "shop", items, now)
	fatal.If(t, errors.Join(err, err2, err3, err4))
	w.ledger.check(&answer{kind: "put", placement: "config", value: 60_000_000, begin: w.begin, end: time.Now(),
		client: clients})
	w.ledger.check(&answer{kind: "put", placement: "items", value: 1, begin: w.begin, end: time.Now(), client: clients})
}

// foreign returns a snapshot of a copy of the log in which one outcome after another snapshot is a different one, nil
// without such an outcome.
func (w *world) foreign(snapshot []byte) []byte {
	from, err := state.SnapshotPosition(snapshot)
	entries, positions := w.ledger.log()
	if err != nil || from.Log != positions[0].Log || from.Sequence > uint64(len(entries)) ||
		positions[from.Sequence] != from {
		return nil
	}
	for at := int(from.Sequence); at < len(entries); at++ {
		event, err := eventlog.Decode(entries[at])
		if c, ok := event.Body.(*eventlog.Chosen); err == nil && ok && c.Choice > 0 {
			c.Choice, c.Basket = 0, nil
			entries[at], _ = event.Encode(nil)
			for i := at; i < len(entries); i++ {
				positions[i+1] = positions[i].After(entries[i])
			}
			data, _ := w.replay(entries, positions, uint64(len(entries)), snapshot)
			return data
		}
	}
	return nil
}

// replay returns the state after an entry, from a snapshot or from the beginning.
func (w *world) replay(entries [][]byte, positions []eventlog.Position, upTo uint64, snapshot []byte) ([]byte, error) {
	ctx := context.Background()
	log := truth{new(memlog.Store), positions}
	for chunk := range slices.Chunk(entries[:upTo], 1000) {
		if _, err := log.Append(ctx, chunk...); err != nil {
			return nil, err
		}
	}
	e, err := engine.Open(ctx, engine.Options{Store: log, Build: setup.NewLearner, Size: setup.LearnerSize,
		Snapshot: snapshot})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	data, _, err := e.Snapshot(ctx)
	return data, err
}

// look notes now and then what state some process has, until ctx ends.
func (w *world) look(ctx context.Context) {
	r := w.rand("look")
	for sleep(ctx, time.Duration(2_000_000_000+r.Int64N(6_000_000_000))) {
		if p := w.procs[r.IntN(len(w.procs))]; !p.thaws().After(time.Now()) {
			w.notes(ctx, p)
		}
	}
}

// notes notes the state of a process.
func (w *world) notes(ctx context.Context, p *proc) {
	e, _ := p.at()
	if e == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	data, at, err := e.Snapshot(ctx)
	if err != nil || e.Needs(at) < w.ledger.begins() { // a second learner that misses entries is given up soon
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sums = append(w.sums, sum{at, short(data), p.name})
}

// rest checks that all processes reach the state of a full replay, without loss.
func (w *world) rest(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for w.leader() == nil {
		if !sleep(ctx, 100*time.Millisecond) {
			w.finding("no process leads the log, two minutes after all is well")
			return
		}
	}
	entries, _ := w.ledger.log()
	at := uint64(len(entries))
	w.trace("world", "is at rest after entry %d", at)
	for _, p := range w.procs {
		e, _ := p.at()
		for ; e == nil; e, _ = p.at() {
			if !sleep(ctx, time.Second) {
				w.finding("process %s does not answer, two minutes after all is well", p.name)
				return
			}
		}
		for err := e.WaitFor(ctx, at); err != nil; err = e.WaitFor(ctx, at) {
			if ctx.Err() != nil {
				w.finding("process %s does not reach entry %d: %v", p.name, at, err)
				return
			}
			sleep(ctx, time.Second)
			if again, _ := p.at(); again != nil { // it was behind, and has opened the log again
				e = again
			}
		}
		w.notes(ctx, p)
		if p == w.procs[0] {
			w.learned(ctx, e)
		}
	}
	w.compare()
}

// compare compares the processes' states with a full replay's.
func (w *world) compare() {
	slices.SortStableFunc(w.sums, func(a, b sum) int { return cmp.Compare(a.entry, b.entry) })
	entries, positions := w.ledger.log()
	var data []byte
	var err error
	for i, s := range w.sums {
		if i == 0 || s.entry > w.sums[i-1].entry {
			if data, err = w.replay(entries, positions, s.entry, data); err != nil {
				w.finding("the log cannot be replayed up to entry %d: %v", s.entry, err)
				return
			}
		}
		if want := short(data); s.of != want {
			w.finding("process %s had another state after entry %d than a replay: %s, %s", s.who, s.entry, s.of, want)
		}
	}
	w.countN("checked: states", len(w.sums))
	w.trace("world", "has the state %s, and had %d others", short(data), len(w.sums)-len(w.procs))
}

// learned checks that a learner saw each round once and in order: it has the state of a learner that is given the
// rounds of the log. The placement has never got another learner or configuration of it.
func (w *world) learned(ctx context.Context, e *engine.Engine) {
	c, err := e.Config("home")
	if err != nil {
		w.finding("the placement is gone: %v", err)
		return
	}
	at := e.Sequence()
	is, err := e.Model(ctx, "home")
	if err != nil {
		w.finding("the learner cannot be read: %v", err)
		return
	}
	l, err := setup.NewLearner(c.Spec())
	offers, rounds := map[string]*eventlog.Offered{}, uint64(0)
	order := ordering{entry: map[string]uint64{}, began: map[string]int64{}, maximum: c.Share() / 2}
	entries, _ := w.ledger.log()
	for i, entry := range entries[:max(at, is.PolicyEntry)] {
		event, _ := eventlog.Decode(entry)
		id, choice, teaches, basket := "", int32(0), false, eventlog.Basket(nil)
		switch b := event.Body.(type) {
		case *eventlog.Offered:
			if event.Placement == "home" {
				offers[b.Decision] = b
				order.entry[b.Decision], order.began[b.Decision] = uint64(i+1), event.Time
			}
		case *eventlog.ClockMoved:
			if event.Placement == "home" {
				for id := range order.began {
					order.began[id] += b.By
				}
			}
		case *eventlog.Evicted:
			id = b.Decision
		case *eventlog.Chosen:
			id, choice, teaches, basket = b.Decision, b.Choice, !b.Unlearned, b.Basket
		case *eventlog.Expired:
			id, teaches = b.Decision, !b.Unlearned && !w.ledger.isWithdrawn(uint64(i+1))
		}
		if o := offers[id]; o != nil && event.Placement == "home" && err == nil {
			var decoded *offer.Offer
			if decoded, err = offer.Of(o); err != nil {
				break
			}
			var round *vitrine.Round
			if teaches {
				round = new(decoded.Round(int(choice), basket))
			}
			for _, r := range order.end(id, round, learner.RoundBytes(decoded), uint64(i+1)) {
				err = cmp.Or(err, l.Observe(r))
				rounds++
			}
		}
	}
	if err != nil {
		w.finding("the rounds of the log cannot be learned: %v", err)
		return
	}
	data, err := l.(encoding.BinaryMarshaler).MarshalBinary()
	if want := base64.StdEncoding.EncodeToString(data); err != nil || is.Learned != rounds || is.State != want {
		w.finding("a learner has learned %d rounds up to entry %d, and the log has %d, or others: %v", is.Learned,
			is.PolicyEntry, rounds, err)
	}
	w.countN("checked: rounds of a learner", int(rounds))
	w.trace("world", "has a learner of %d rounds", rounds)
}

func short(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:4])
}

// text is the trace: the last lines, or all if there are fewer.
func (w *world) text(last int) string {
	slices.SortStableFunc(w.lines, func(a, b line) int {
		return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.actor+a.text, b.actor+b.text))
	})
	var b strings.Builder
	for _, l := range w.lines[max(0, len(w.lines)-last):] {
		fmt.Fprintf(&b, "%12s %-10s %s\n", l.at.Round(time.Microsecond), l.actor, l.text)
	}
	return b.String()
}

// play plays a seed.
func play(t *testing.T, seed uint64, lasts time.Duration) *world {
	w := &world{seed: seed, dir: t.TempDir(), logger: slog.New(slog.DiscardHandler), counts: map[string]int{}}
	if *logs {
		w.logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	synctest.Test(t, func(t *testing.T) { w.run(t, lasts) })
	if !w.failed() {
		w.ledger.linearize()
	}
	for kind, n := range w.ledger.kinds {
		w.counts["entry: "+strings.TrimPrefix(kind.String(), "*eventlog.")] = n
	}
	return w
}

// ordering says when a learner learns a round: the sale of a decision waits until a later decision without a sale is
// learned, or all that began earlier end. Two may be ahead.
type ordering struct {
	entry   map[string]uint64
	began   map[string]int64 // of the open decisions
	maximum int              // bytes that wait
	settled uint64
	ahead   []uint64
	held    []heldSale
}

type heldSale struct {
	entry uint64
	round vitrine.Round
	bytes int
}

// end notes that a decision ended at an entry, with a round that teaches or nil, and returns the rounds to learn.
func (o *ordering) end(id string, round *vitrine.Round, bytes int, at uint64) (due []vitrine.Round) {
	delete(o.began, id)
	isSale := round != nil && round.Choice > 0
	if isSale {
		o.held = append(o.held, heldSale{o.entry[id], *round, bytes})
		slices.SortFunc(o.held, func(a, b heldSale) int { return cmp.Compare(a.entry, b.entry) })
	}
	release := func() {
		for len(o.held) > 0 {
			waits := 0
			for _, h := range o.held {
				waits += h.bytes
			}
			o.ahead = slices.DeleteFunc(o.ahead, func(entry uint64) bool { return entry <= o.settled })
			switch next := o.held[0].entry; {
			case next <= o.settled:
			case len(o.ahead) < 2:
				o.ahead = append(o.ahead, next)
			case waits <= o.maximum:
				return
			}
			due, o.held = append(due, o.held[0].round), o.held[1:]
		}
	}
	if round != nil && !isSale {
		o.settled = max(o.settled, o.entry[id])
		release()
		due = append(due, *round)
	}
	first := ""
	for id, began := range o.began {
		if first == "" || began < o.began[first] || began == o.began[first] && o.entry[id] < o.entry[first] {
			first = id
		}
	}
	if first != "" {
		at = o.entry[first] - 1
	}
	o.settled = max(o.settled, at)
	release()
	return due
}
