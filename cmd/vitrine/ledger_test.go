package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/filelog"
	"vitrine/service/eventlog/natslog"
)

// placements are the shoppers' placements. The placement brief runs an experiment, and its outcomes come late, or
// never.
var placements = map[string]string{
	"home": `{"max_size":3,"policy":{"name":"onl-mnl","warmup":20},"attribution_window":"8h","memory_bytes":200000000,"features":[{"name":"x","kind":"number"},{"name":"y","kind":"number"}]}`,
	"brief": `{"max_size":2,"policy":{"name":"ucb-mnl"},"mode":"experiment","attribution_window":"300ms","memory_bytes":200000000,"features":[{"name":"x","kind":"number"}],
		"experiment":{"name":"killed","learn_from":"all","variants":[{"name":"own","show":"policy","share":0.4},{"name":"rival","show":"policy","policy":{"name":"ts-mnl"},"share":0.4},{"name":"chance","show":"uniform","share":0.2}]}}`,
}

const briefWindow = 300 * time.Millisecond

// ledger records everything that services answer to their shoppers, over all restarts.
type ledger struct {
	*testing.T
	client  *http.Client
	urls    atomic.Pointer[[]string] // of the services, which are asked in turn
	key     string                   // of the services, or ""
	turn    atomic.Int64
	leaving atomic.Bool    // no new rounds
	shops   sync.WaitGroup // the shoppers
	retries atomic.Int64
	refused atomic.Int64 // with 503
	slowest atomic.Int64 // the longest wait of a shopper, milliseconds

	mu       sync.Mutex
	rounds   []*acknowledged
	twins    int
	reported int // outcomes
}

// acknowledged is the answered part of a round.
type acknowledged struct {
	placement, id, body string
	answer              string
	shown               []string
	reported            bool   // the outcome, in time
	late                bool   // or too late to be learned
	item                string // of it
}

// newLedger returns an empty ledger.
func newLedger(t *testing.T) *ledger {
	return &ledger{T: t, client: &http.Client{
		Timeout:   15 * time.Second,
		Transport: &http.Transport{MaxIdleConnsPerHost: 64},
	}}
}

// At sends shoppers to the services at the given URLs in turn.
func (l *ledger) At(urls ...string) { l.urls.Store(&urls) }

// Refused returns how many requests were answered with 503.
func (l *ledger) Refused() int64 { return l.refused.Load() }

// String says how much was acknowledged.
func (l *ledger) String() string {
	return fmt.Sprintf("%d decisions and %d outcomes acknowledged", len(l.rounds), l.reported)
}

// once asks once.
func (l *ledger) once(ctx context.Context, method, path, body string) (status int, answer string, err error) {
	urls := *l.urls.Load()
	url := urls[l.turn.Add(1)%int64(len(urls))]
	r, err := http.NewRequestWithContext(ctx, method, url+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if l.key != "" {
		r.Header.Set("Authorization", "Bearer "+l.key)
	}
	a, err := l.client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	return a.StatusCode, string(text), err
}

// ask repeats a request until the answer is not 503, or ctx ends.
func (l *ledger) ask(ctx context.Context, method, path, body string) (status int, answer string, ok bool) {
	for begin := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		status, answer, err := l.once(ctx, method, path, body)
		if err == nil && status != http.StatusServiceUnavailable {
			waited := time.Since(begin).Milliseconds()
			for maximum := l.slowest.Load(); waited > maximum && !l.slowest.CompareAndSwap(maximum,
				waited); maximum = l.slowest.Load() {
			}
			return status, answer, true
		}
		if ctx.Err() != nil {
			return 0, "", false
		}
		if l.retries.Add(1); err == nil {
			l.refused.Add(1)
		}
	}
}

// Open makes the placements.
func (l *ledger) Open(ctx context.Context) {
	l.Helper()
	for _, name := range slices.Sorted(maps.Keys(placements)) {
		if status, answer, _ := l.ask(ctx, "PUT", "/v1/placements/"+name, placements[name]); status/100 != 2 {
			l.Fatalf("placement %q: %d %s", name, status, answer)
		}
	}
}

// Shop sends shoppers until Leave. Those that wait for an answer get it first, unless ctx ends.
func (l *ledger) Shop(ctx context.Context, shoppers int, seed uint64) {
	l.leaving.Store(false)
	for n := range shoppers {
		l.shops.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(n)))
			for i := 0; !l.leaving.Load() && ctx.Err() == nil; i++ {
				l.round(ctx, fmt.Sprintf("%d-%d-%d", seed, n, i), rng)
				time.Sleep(within(rng, 4*time.Millisecond))
			}
		})
	}
}

// Leave sends the shoppers away, and waits until they are gone.
func (l *ledger) Leave() {
	l.leaving.Store(true)
	l.shops.Wait()
}

// round is one decision and its fate.
func (l *ledger) round(ctx context.Context, id string, rng *rand.Rand) {
	a := &acknowledged{placement: "home", id: id}
	if rng.IntN(4) == 0 {
		a.placement = "brief"
	}
	a.body = fmt.Sprintf(`{"decision_id":%q,"shopper_id":"shopper-%d","items":[`, id, rng.IntN(50))
	for i := range 4 {
		if i > 0 {
			a.body += ","
		}
		y := ""
		if a.placement == "home" {
			y = fmt.Sprintf(`,"y":%.3f`, rng.Float64())
		}
		a.body += fmt.Sprintf(`{"id":"i%d","features":{"x":%.3f%s}}`, i, rng.Float64(), y)
	}
	a.body += "]}"
	twin := make(chan string, 1)
	if rng.IntN(8) > 0 {
		twin = nil
	} else {
		go func() {
			_, answer, _ := l.ask(ctx, "POST", "/v1/placements/"+a.placement+"/decisions", a.body)
			twin <- answer
		}()
	}
	status, answer, ok := l.ask(ctx, "POST", "/v1/placements/"+a.placement+"/decisions", a.body)
	if !ok {
		return
	}
	if status != 201 && status != 200 {
		l.Errorf("decision %s: %d %s", id, status, answer)
		return
	}
	a.answer, a.shown = answer, shownIn(l.T, answer)
	l.mu.Lock()
	l.rounds = append(l.rounds, a)
	l.mu.Unlock()
	if twin != nil {
		if other := <-twin; other != answer && ctx.Err() == nil {
			l.Errorf("decision %s: %s and %s", id, answer, other)
		}
		l.mu.Lock()
		l.twins++
		l.mu.Unlock()
	}
	l.outcome(ctx, a, rng)
}

func shownIn(t *testing.T, answer string) (ids []string) {
	var document struct{ Assortment []struct{ ID string } }
	expect.Error(t, json.Unmarshal([]byte(answer), &document), nil, answer)
	for _, i := range document.Assortment {
		ids = append(ids, i.ID)
	}
	return ids
}

// Flows waits until rounds that begin now are acknowledged.
func (l *ledger) Flows(ctx context.Context) { l.Helper(); l.grows(ctx, 20) }

// grows waits until n more rounds are acknowledged.
func (l *ledger) grows(ctx context.Context, n int) {
	l.Helper()
	for n += len(l.all()); len(l.all()) < n; time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			l.Fatal("nothing is acknowledged any more")
		}
	}
}

// outcome reports the outcome of a decision, or not: some are late, repeated, or different.
func (l *ledger) outcome(ctx context.Context, a *acknowledged, rng *rand.Rand) {
	fate := rng.IntN(10)
	item := append(slices.Clone(a.shown), "")[rng.IntN(len(a.shown)+1)]
	switch {
	case fate == 0:
		return
	case fate == 1 && a.placement == "brief":
		time.Sleep(briefWindow * 5 / 4)
	}
	if !l.tell(ctx, a, item) {
		return
	}
	if fate == 2 { // again
		l.tell(ctx, a, item)
	}
	if fate == 3 && len(a.shown) > 0 {
		other := a.shown[0]
		if item == other {
			other = ""
		}
		if status, answer, ok := l.ask(ctx, "POST", api.DecisionPath(a.placement, a.id)+"/outcome", outcomeOf(other)); ok &&
			status != 409 {
			l.Errorf("outcome %q of %s after %q: %d %s", other, a.id, item, status, answer)
		}
	}
}

func outcomeOf(item string) string {
	if item == "" {
		return `{"choice":null}`
	}
	return fmt.Sprintf(`{"choice":%q}`, item)
}

// tell reports an outcome and notes the answer.
func (l *ledger) tell(ctx context.Context, a *acknowledged, item string) bool {
	status, answer, ok := l.ask(ctx, "POST", api.DecisionPath(a.placement, a.id)+"/outcome", outcomeOf(item))
	if !ok {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case status == 204 && !a.late:
		if !a.reported {
			l.reported++
		}
		a.reported, a.item = true, item
	case status == 200 && a.placement == "brief" && !a.reported:
		a.late, a.item = true, item
	default:
		l.Errorf("outcome %q of %s: %d %s; told %v, late %v", item, a.id, status, answer, a.reported, a.late)
	}
	return true
}

// all returns the rounds so far.
func (l *ledger) all() []*acknowledged {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.rounds)
}

// Holds repeats all answered requests.
func (l *ledger) Holds(ctx context.Context) { l.Helper(); l.holds(ctx, l.all()) }

// holds repeats the requests of some rounds.
func (l *ledger) holds(ctx context.Context, rounds []*acknowledged) {
	l.Helper()
	var asking sync.WaitGroup
	next := make(chan *acknowledged)
	for range 8 {
		asking.Go(func() {
			for a := range next {
				status, answer, ok := l.ask(ctx, "POST", "/v1/placements/"+a.placement+"/decisions", a.body)
				if ok && (status != 200 || answer != a.answer) {
					l.Errorf("decision %s: %d %s, was %s", a.id, status, answer, a.answer)
				}
				l.mu.Lock()
				reported, late, item := a.reported, a.late, a.item
				l.mu.Unlock()
				if !reported && !late {
					continue
				}
				want := map[bool]int{false: 204, true: 200}[late]
				if status, answer, ok := l.ask(ctx, "POST", api.DecisionPath(a.placement, a.id)+"/outcome", outcomeOf(item)); ok &&
					status != want {
					l.Errorf("outcome %q of %s: %d %s", item, a.id, status, answer)
				}
			}
		})
	}
	for _, a := range rounds {
		next <- a
	}
	close(next)
	asking.Wait()
	l.hangUp()
}

// hangUp closes idle connections. A service that ends waits 5 s for a connection that was opened and never
// used, and http.Transport opens some.
func (l *ledger) hangUp() { l.client.CloseIdleConnections() }

// inLog holds the entries of a decision in the log.
type inLog struct {
	placement string
	entry     uint64 // of the offer
	closed    uint64 // of the outcome
	offered   int
	shown     []string
	outcomes  int
	choice    string
	expired   bool
	late      int // outcomes that came too late
}

// tally counts the entries of a placement.
type tally struct{ Decisions, Outcomes, Expired uint64 }

// readLog reads the entries of all decisions of a log, which must not be open elsewhere: of a directory or of servers
// at a URL.
func readLog(t *testing.T, where string) (decisions map[string]*inLog, of map[string]tally) {
	t.Helper()
	var store eventlog.Log
	var err error
	if strings.Contains(where, "://") {
		store, err = natslog.Open(t.Context(), natslog.Options{ReadOnly: true, URL: where})
	} else {
		store, err = filelog.Open(t.Context(), filelog.Options{ReadOnly: true, Dir: where})
	}
	fatal.If(t, err)
	defer store.Close()
	decisions, of = map[string]*inLog{}, map[string]tally{}
	sequence := uint64(0)
	for entry, err := range store.Entries(t.Context(), 1) {
		fatal.If(t, err)
		sequence++
		e := fatal.Or(eventlog.Decode(entry))(t)
		n := of[e.Placement]
		switch b := e.Body.(type) {
		case *eventlog.Offered:
			n.Decisions++
			d := decisions[b.Decision]
			if d == nil {
				d = &inLog{entry: sequence, placement: e.Placement}
				decisions[b.Decision] = d
			}
			d.offered++
			for _, i := range b.Shown {
				d.shown = append(d.shown, b.ItemIDs[i])
			}
		case *eventlog.Chosen:
			n.Outcomes++
			d := decisions[b.Decision]
			d.closed = sequence
			if d.outcomes++; b.Choice > 0 {
				d.choice = d.shown[b.Choice-1]
			}
		case *eventlog.Expired:
			n.Expired++
			d := decisions[b.Decision]
			d.outcomes++
			d.closed, d.expired = sequence, true
		case *eventlog.Corrected:
			d := decisions[b.Decision]
			if d.late++; b.Choice > 0 {
				d.choice = d.shown[b.Choice-1]
			}
		}
		of[e.Placement] = n
	}
	return decisions, of
}

// isIn compares a round with the log.
func (a *acknowledged) isIn(decisions map[string]*inLog) error {
	d := decisions[a.id]
	switch {
	case d == nil:
		return errors.New("is not in the log")
	case d.offered != 1:
		return fmt.Errorf("is %d times in the log", d.offered)
	case !slices.Equal(d.shown, a.shown):
		return fmt.Errorf("shows %v in the log, was answered with %v", d.shown, a.shown)
	case d.outcomes > 1 || d.late > 1:
		return fmt.Errorf("has %d outcomes in the log, and %d late ones", d.outcomes, d.late)
	case a.reported && (d.outcomes != 1 || d.choice != a.item):
		return fmt.Errorf("has %d outcomes in the log, %q, and %q was told", d.outcomes, d.choice, a.item)
	case a.reported && d.expired, a.late && (!d.expired || d.late != 1 || d.choice != a.item):
		return fmt.Errorf("has expired in the log: %v, with %d late outcomes, %q, and was told %v, late %v, %q",
			d.expired, d.late, d.choice, a.reported, a.late, a.item)
	}
	return nil
}

// IsIn compares all acknowledged rounds with a log, in a directory or on servers at a URL. It returns the log's counts
// and the sales that wait, by placement.
func (l *ledger) IsIn(where string) (of map[string]tally, waits map[string]uint64) {
	l.Helper()
	decisions, of := readLog(l.T, where)
	for _, a := range l.all() {
		if err := a.isIn(decisions); err != nil {
			l.Errorf("decision %s %v", a.id, err)
		}
	}
	if len(decisions) != len(l.rounds) {
		l.Errorf("the log has %d decisions, %d were acknowledged, and all were asked for until they were",
			len(decisions), len(l.rounds))
	}
	return of, waiting(decisions)
}

// learning holds the counters of a placement.
type learning struct {
	tally
	Learned, Skipped, Stale uint64

	Pending      uint64 `json:"open"`
	Lag          uint64 `json:"lag_rounds"`
	ExpiredEarly uint64 `json:"expired_early"`
}

// once checks that all outcomes in the log were learned once, but for the sales that wait.
func (l learning) once(t *testing.T, placement string, log tally, waiting uint64) {
	t.Helper()
	if l.tally != log || l.Learned+waiting != l.Outcomes+l.Expired || l.Skipped+l.Stale != 0 {
		t.Errorf("%s: the service has %+v, the log %+v, and %d sales wait", placement, l, log, waiting)
	}
}

// waiting counts the sales that learners do not know yet, by placement: all but two of those after the first open
// decision and the last one without a sale (docs/adr/0120-sales-wait.md).
func waiting(decisions map[string]*inLog) map[string]uint64 {
	settled, open, waits := map[string]uint64{}, map[string]uint64{}, map[string]uint64{}
	for _, d := range decisions {
		switch p := d.placement; {
		case d.outcomes == 0 && (open[p] == 0 || d.entry < open[p]):
			open[p] = d.entry
		case d.outcomes > 0 && !d.isSale():
			settled[p] = max(settled[p], d.entry)
		}
	}
	for _, d := range decisions {
		if first := open[d.placement]; d.isSale() && first > 0 && d.entry > max(first, settled[d.placement]) {
			waits[d.placement]++
		}
	}
	for p, n := range waits {
		waits[p] = max(n, 2) - 2
	}
	return waits
}

func (d *inLog) isSale() bool { return d.outcomes > 0 && !d.expired && d.choice != "" }

// settled waits until all rounds are learned, and returns the counters of a placement.
func (l *ledger) settled(ctx context.Context, placement string) (s learning) {
	l.Helper()
	for {
		s = l.Stats(ctx, placement)
		if s.Lag == 0 && s.Decisions == s.Outcomes+s.Expired+s.Pending && (placement != "brief" || s.Pending == 0) {
			l.hangUp()
			return s
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Stats returns the counters of a placement.
func (l *ledger) Stats(ctx context.Context, placement string) (s learning) {
	l.Helper()
	_, answer, _ := l.ask(ctx, "GET", "/v1/placements/"+placement+"/stats", "")
	if err := json.Unmarshal([]byte(answer), &s); err != nil {
		l.Fatalf("%q: %v", answer, err)
	}
	return s
}

// within draws a time below d.
func within(rng *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(rng.Int64N(int64(d)))
}
