package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
)

// machine drives an engine and a model of it that fits on a page: the requests, times and outcomes of all decisions.
type machine struct {
	store    *memlog.Store
	engine   *engine.Engine
	follower *engine.Engine // of the same log
	replicas uint64         // followers so far
	now      int64
	places   map[string]*modelPlace
	asked    map[modelKey]*modelDecision
	snapshot []byte // of some time, or nil
}

func (m *machine) open(t *rapid.T, snapshot []byte) {
	e := fatal.Or(engine.Open(t.Context(), engine.Options{Store: m.store, Build: buildToy, Snapshot: snapshot}))(t)
	m.engine = e
}

// follow opens an engine that follows the log.
func (m *machine) follow(t *rapid.T) {
	var err error
	m.replicas++
	m.follower, err = engine.Open(t.Context(), engine.Options{
		Store: m.store, Build: buildToy, Snapshot: m.snapshot, Follow: m.store, Replica: m.replicas,
		Propose: func(ctx context.Context, proposal []byte) ([]byte, error) {
			return m.engine.Accept(ctx, proposal, m.now), nil
		},
	})
	want(t, "following", err, nil)
}

// some returns the writing engine, or the following one once it is up to date.
func (m *machine) some(t *rapid.T) *engine.Engine {
	if rapid.Bool().Draw(t, "at the leader") {
		return m.engine
	}
	want(t, "reaching an entry", m.follower.WaitFor(t.Context(), m.engine.Sequence()), nil)
	return m.follower
}

// Follower compares the engine that follows with the one that writes.
func (m *machine) Follower(t *rapid.T) {
	want(t, "reaching an entry", m.follower.WaitFor(t.Context(), m.engine.Sequence()), nil)
	have, at, err := m.follower.Snapshot(t.Context())
	want(t, "snapshot", err, nil)
	data, upTo, err := m.engine.Snapshot(t.Context())
	want(t, "snapshot", err, nil)
	if at != upTo || string(have) != string(data) {
		t.Fatalf("the follower has another state, at entry %d of %d", at, upTo)
	}
}

// Succeed makes the follower the writer, and follows it.
func (m *machine) Succeed(t *rapid.T) {
	m.engine.Close()
	want(t, "leading", m.follower.Lead(t.Context(), nil), nil)
	m.engine = m.follower
	m.follow(t)
}

func want(t *rapid.T, what string, err, want error) {
	t.Helper()
	expect.Error(fatal.T(t), err, want, what)
}

var (
	placeNames    = []string{"home", "cart"}
	decisionNames = []string{"a", "b", "c", "d", "e", "f"}
)

func (m *machine) Put(t *rapid.T) {
	name := rapid.SampledFrom(placeNames).Draw(t, "placement")
	c := modelConfig{rapid.IntRange(0, 1).Draw(t, "seed"), rapid.IntRange(1, 3).Draw(t, "window"),
		rapid.IntRange(1, 3).Draw(t, "keep")}
	config := fmt.Sprintf(`{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{},"attribution_window":"%dm","seed":%d,"max_versions":%d}`, c.minutes, c.seed, c.keep)
	how := engine.Change{Reset: rapid.Bool().Draw(t, "reset"), Relearn: rapid.Bool().Draw(t, "relearn")}
	how.Relearn = how.Relearn && !how.Reset
	created, err := m.engine.Change(t.Context(), name, []byte(config), how, m.now)
	p := m.places[name]
	switch {
	case p == nil:
	case p.next != nil && *p.next == c:
		want(t, "put again", err, nil)
		return
	case p.next != nil && p.modelConfig == c:
		want(t, "give up", err, nil)
		p.next = nil
		return
	case p.next != nil && (!how.Reset || p.seed == c.seed):
		want(t, "put meanwhile", err, engine.ErrRelearning)
		return
	case p.seed != c.seed && how.Relearn:
		want(t, "relearn", err, nil)
		p.next = &c
		return
	}
	if p != nil && p.seed != c.seed && p.learned && !how.Reset {
		var loss *engine.LossError
		if want(t, "put", err, engine.ErrLoss); !errors.As(err, &loss) || !slices.Equal(loss.Fields, []string{"seed"}) {
			t.Fatalf("the loss %+v", loss)
		}
		return
	}
	want(t, "put", err, nil)
	expect.Equal(fatal.T(t), created, p == nil, "created")
	switch {
	case p == nil:
		p = &modelPlace{configs: map[int]modelConfig{}}
		m.places[name] = p
	case p.seed != c.seed:
		if p.learned {
			p.keepVersion(m.versions(t, name), false, 0)
		}
		p.configs[p.learner] = p.modelConfig
		p.rows++
		p.learner = len(p.configs)
		p.learned = false
		p.moves()
		defer p.trim(0)
	}
	p.next = nil
	p.modelConfig = c
	p.configs[p.learner] = c
}

// Exchange is called once the second learners caught up, as they do sooner or later.
func (m *machine) Exchange(t *rapid.T) {
	want(t, "wait", m.engine.Wait(t.Context()), nil)
	exchanged, ended, err := m.engine.Exchange(t.Context(), m.now)
	want(t, "exchange", err, nil)
	var due []string
	for _, name := range slices.Sorted(maps.Keys(m.places)) {
		p := m.places[name]
		if p.next == nil {
			continue
		}
		due = append(due, name)
		if p.learned {
			p.keepVersion(m.versions(t, name), false, 0)
		}
		p.learner, p.learned = len(p.configs), true
		p.modelConfig, p.next = *p.next, nil
		p.configs[p.learner] = p.modelConfig
		p.moves()
		p.trim(0)
	}
	if !slices.Equal(exchanged, due) || ended != nil {
		t.Fatalf("exchanged %q, ended %q, want %q", exchanged, ended, due)
	}
}

func (m *machine) versions(t *rapid.T, name string) []uint64 {
	s, err := m.engine.Stats(name)
	want(t, "stats", err, nil)
	return s.Versions
}

func (m *machine) Delete(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "really") > 0 {
		t.Skip("seldom")
	}
	name := rapid.SampledFrom(placeNames).Draw(t, "placement")
	err := m.engine.Delete(t.Context(), name, nil, m.now)
	if m.places[name] == nil {
		want(t, "delete", err, engine.ErrNotFound)
		return
	}
	want(t, "delete", err, nil)
	delete(m.places, name)
	maps.DeleteFunc(m.asked, func(_ modelKey, d *modelDecision) bool { return d.place == name })
}

func (m *machine) Decide(t *rapid.T) {
	name := rapid.SampledFrom(placeNames).Draw(t, "placement")
	id := rapid.SampledFrom(decisionNames).Draw(t, "id")
	items := rapid.SliceOfN(rapid.SampledFrom([]float64{0, 1, 2, poison, sour}), 1, 3).Draw(t, "items")
	r := &api.Request{Decision: id, Defer: rapid.IntRange(0, 2).Draw(t, "defer") == 0}
	for i, x := range items {
		r.Items = append(r.Items, api.Item{ID: itemID(i), Features: api.Values{api.Number("x", x)}})
	}
	a, err := m.some(t).Decide(t.Context(), name, r, m.now)
	d, p := m.asked[modelKey{name, id}], m.places[name]
	switch {
	case d != nil && (!slices.Equal(d.items, items) || d.defers != r.Defer):
		want(t, "decide", err, engine.ErrConflict)
	case d != nil:
		want(t, "decide", err, nil)
		if !a.Decoded || !slices.Equal(a.IDs(), d.shown) {
			t.Fatalf("answer %+v, it was %v", a, d.shown)
		}
	case p == nil:
		want(t, "decide", err, engine.ErrNotFound)
	default:
		want(t, "decide", err, nil)
		if a.Decoded || len(a.IDs()) != min(2, len(items)) {
			t.Fatalf("answer %+v", a)
		}
		m.asked[modelKey{name, id}] = &modelDecision{place: name, items: items, defers: r.Defer, rows: p.rows,
			shown: a.IDs(), time: m.now, status: "open"}
		if r.Defer {
			m.asked[modelKey{name, id}].status = "deferred"
		}
		p.decided++
	}
}

func (m *machine) Outcome(t *rapid.T) {
	place, id, d := m.named(t)
	choices := rapid.SampledFrom([][]api.Choice{
		nil, {{Item: "sku0"}}, {{Item: "sku1"}}, {{Item: "sku2"}}, {{Item: "sku99"}},
		{{Item: "sku1", Quantity: new(1), Value: new(1.0)}},
		{{Item: "sku0", Quantity: new(3)}}, {{Item: "sku1", Value: new(0.5)}, {Item: "sku0"}},
		{{Item: "sku1"}, {Item: "sku2", Quantity: new(2), Value: new(0.0)}},
	}).Draw(t, "choices")
	err := m.some(t).Choose(t.Context(), place, id, choices, m.now)
	has := func(list []string) bool {
		return slices.ContainsFunc(choices, func(c api.Choice) bool { return slices.Contains(list, c.Item) })
	}
	switch {
	case d == nil:
		want(t, "outcome", err, engine.ErrNotFound)
		return
	case len(d.order(choices)) < len(choices):
		want(t, "outcome", err, engine.ErrNotShown)
		return
	}
	taken := d.order(choices)
	switch {
	case d.waits() && has(d.passed):
		want(t, "outcome", err, engine.ErrConflict)
		return
	case m.late(d):
		m.expire(d)
	}
	switch {
	case d.waits():
		want(t, "outcome", err, nil)
		m.close(d, "chosen", taken)
	case d.status == "expired" || d.status == "withdrawn":
		want(t, "outcome", err, engine.ErrLate)
		p := m.places[d.place]
		p.late++
		if d.status == "withdrawn" {
			p.counted++
		}
		d.status, d.taken = "late", taken
	case !cmp.Equal(d.taken, taken):
		want(t, "outcome", err, engine.ErrConflict)
	case d.status == "late":
		want(t, "outcome", err, engine.ErrLate)
	default:
		want(t, "outcome", err, nil)
	}
}

func (m *machine) Correct(t *rapid.T) {
	place, id, d := m.named(t)
	c := api.Correction{ID: rapid.SampledFrom([]string{"refund", "return"}).Draw(t, "correction")}
	c.Item = rapid.SampledFrom([]string{"sku0", "sku1", "sku2", "sku99"}).Draw(t, "item")
	if v := rapid.SampledFrom([]float64{0, -0.5, -1, 0.25}).Draw(t, "value"); v != 0 {
		c.Value = &v
	}
	err := m.some(t).Correct(t.Context(), place, id, c, m.now)
	if d == nil {
		want(t, "correct", err, engine.ErrNotFound)
		return
	}
	at := slices.IndexFunc(d.corrections, func(other api.Correction) bool { return other.ID == c.ID })
	_, taken := d.of(c.Item)
	before := slices.ContainsFunc(d.corrections, func(other api.Correction) bool { return other.Item == c.Item })
	adds := (d.status == "chosen" || d.status == "late") && !before && c.Value != nil && *c.Value > 0
	switch {
	case !slices.Contains(d.shown, c.Item):
		want(t, "correct", err, engine.ErrNotShown)
	case at >= 0 && cmp.Equal(d.corrections[at], c):
		want(t, "correct", err, nil)
	case at >= 0 || !taken && !adds:
		want(t, "correct", err, engine.ErrConflict)
	default:
		want(t, "correct", err, nil)
		d.corrections = append(d.corrections, c)
		m.places[d.place].corrected++
	}
}

// named draws a decision by its placement and its id.
func (m *machine) named(t *rapid.T) (place, id string, d *modelDecision) {
	id = rapid.SampledFrom(decisionNames).Draw(t, "id")
	place = rapid.SampledFrom([]string{"home", "cart"}).Draw(t, "placement")
	return place, id, m.asked[modelKey{place, id}]
}

func (m *machine) late(d *modelDecision) bool {
	return d.waits() && m.now-d.time > m.places[d.place].window()
}

func (m *machine) expire(d *modelDecision) {
	if d.status == "deferred" {
		d.status = "withdrawn"
		m.places[d.place].withdrawn++
		return
	}
	m.close(d, "expired", nil)
}

func (m *machine) Activate(t *rapid.T) {
	place, id, d := m.named(t)
	err := m.some(t).Activate(t.Context(), place, id, m.now)
	if d == nil {
		want(t, "activate", err, engine.ErrNotFound)
		return
	}
	if d.status == "deferred" && m.late(d) {
		m.expire(d)
	}
	switch d.status {
	case "withdrawn":
		want(t, "activate", err, engine.ErrWithdrawn)
		return
	case "deferred":
		d.status = "open"
	}
	want(t, "activate", err, nil)
}

// Reward tells rewards of 0 and 1, which are exact.
func (m *machine) Reward(t *rapid.T) {
	place, id, d := m.named(t)
	var rewards []api.Reward
	for _, item := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"sku0", "sku1", "sku2"}), 0, 2,
		rapid.ID[string]).Draw(t, "items") {
		rewards = append(rewards, api.Reward{Item: item, Value: float64(rapid.IntRange(0, 3).Draw(t, "value") / 3)})
	}
	err := m.some(t).Reward(t.Context(), place, id, rewards, m.now)
	if d == nil {
		want(t, "reward", err, engine.ErrNotFound)
		return
	}
	rewards = slices.DeleteFunc(rewards, func(r api.Reward) bool { return slices.Contains(d.passed, r.Item) })
	for _, r := range rewards {
		if !slices.Contains(d.shown, r.Item) {
			want(t, "reward", err, engine.ErrNotShown)
			return
		}
	}
	want(t, "reward", err, nil)
	switch {
	case !d.waits() || len(rewards) == 0:
		return
	case m.late(d):
		m.expire(d)
		return
	}
	var taken []string
	for _, r := range rewards {
		if r.Value == 1 {
			taken = append(taken, r.Item)
		}
	}
	for _, r := range rewards {
		d.passed = append(d.passed, r.Item)
	}
	switch {
	case len(taken) > 0:
		have, err := m.engine.Decision(t.Context(), place, id)
		want(t, "decision", err, nil)
		if !slices.Contains(taken, have.Choice) {
			t.Fatalf("%s was chosen, with rewards of %v", have.Choice, rewards)
		}
		m.close(d, "chosen", d.order([]api.Choice{{Item: have.Choice}}))
	case len(d.passed) == len(d.shown):
		m.close(d, "chosen", nil)
	default:
		d.status = "open"
	}
}

func (m *machine) close(d *modelDecision, status string, taken []api.Choice) {
	d.status, d.taken = status, taken
	p := m.places[d.place]
	p.closed++
	if d.rows != p.rows {
		p.stale++
		return
	}
	p.learned = true
	p.moves()
}

func (m *machine) Expire(t *rapid.T) {
	m.now += rapid.Int64Range(0, 2*minute).Draw(t, "later")
	n, err := m.engine.Expire(t.Context(), m.now)
	want(t, "expire", err, nil)
	due := 0
	for _, d := range m.asked {
		if m.late(d) {
			m.expire(d)
			due++
		}
	}
	expect.Equal(fatal.T(t), n, due, "expired")
}

func (m *machine) Keep(t *rapid.T) {
	name := rapid.SampledFrom(placeNames).Draw(t, "placement")
	note := rapid.SampledFrom([]string{"", "before the sale"}).Draw(t, "note")
	version, err := m.engine.Keep(t.Context(), name, note, m.now)
	p := m.places[name]
	if p == nil {
		want(t, "keep", err, engine.ErrNotFound)
		return
	}
	want(t, "keep", err, nil)
	p.keepVersion([]uint64{version}, note == "", 0)
	if !slices.ContainsFunc(p.kept, func(v modelVersion) bool { return v.now && v.number == version }) {
		t.Fatalf("version %d of %+v", version, p.kept)
	}
}

func (m *machine) RollBack(t *rapid.T) {
	name := rapid.SampledFrom(placeNames).Draw(t, "placement")
	p := m.places[name]
	if p == nil || len(p.kept) == 0 {
		want(t, "roll back", m.engine.RollBack(t.Context(), name, 1<<40, nil, m.now), engine.ErrNotFound)
		return
	}
	v := rapid.SampledFrom(p.kept).Draw(t, "version")
	err := m.engine.RollBack(t.Context(), name, v.number, nil, m.now)
	if p.next != nil && !v.now {
		want(t, "roll back meanwhile", err, engine.ErrRelearning)
		return
	}
	want(t, "roll back", err, nil)
	if v.now {
		return
	}
	if p.learned {
		p.keepVersion(m.versions(t, name), false, v.number)
	}
	p.modelConfig = p.configs[v.learner]
	p.learner, p.learned = v.learner, true
	p.moves()
	for i := range p.kept {
		p.kept[i].now = p.kept[i].number == v.number
	}
	p.trim(v.number)
}

func (m *machine) Snapshot(t *rapid.T) {
	data, upTo, err := m.engine.Snapshot(t.Context())
	if rapid.Bool().Draw(t, "without waiting") {
		var w bytes.Buffer
		upTo, _, err = m.engine.WriteSnapshot(t.Context(), &w, 0)
		data = w.Bytes()
	}
	want(t, "snapshot", err, nil)
	if upTo != m.engine.Sequence() {
		t.Fatalf("a snapshot up to %d, at %d", upTo, m.engine.Sequence())
	}
	m.snapshot = data
}

// Restart goes on from the log, whole or after the last snapshot.
func (m *machine) Restart(t *rapid.T) {
	m.engine.Close()
	var from []byte
	if rapid.Bool().Draw(t, "from snapshot") {
		from = m.snapshot
	}
	m.open(t, from)
}

// Check compares all that can be seen.
func (m *machine) Check(t *rapid.T) {
	for key, d := range m.asked {
		have, err := m.engine.Decision(t.Context(), key.place, key.id)
		want(t, "decision", err, nil)
		earned, _ := d.earned()
		if have.Status != d.status || have.Choice != d.choice() || have.Time != d.time || have.Earned != earned ||
			!cmp.Equal(have.Corrections, d.corrections) || !cmp.Equal(have.Choices, d.basket()) {
			t.Fatalf("decision %v is %+v, want %+v", key, have, d)
		}
	}
	expect.List(fatal.T(t), m.engine.Placements(), slices.Sorted(maps.Keys(m.places)), "placements")
	for name, p := range m.places {
		rounds, purchases, revenue, squares := p.closed+p.counted, 0, 0.0, 0.0
		for _, d := range m.asked {
			if d.place == name {
				earned, sold := d.earned()
				if revenue += earned; sold {
					purchases++
				}
				squares += earned * earned
			}
		}
		s, err := m.engine.Stats(name)
		if g := s.ByPolicy; int(g.Rounds) != rounds || int(g.Purchases) != purchases || g.Revenue != revenue ||
			g.Squares != squares || int(s.Late) != p.late || int(s.Corrected) != p.corrected {
			t.Fatalf("%s: %+v, late %d, corrected %d, want %d rounds, %d purchases, revenue %v, squares %v of %+v",
				name, g, s.Late, s.Corrected, rounds, purchases, revenue, squares, p)
		}
		want(t, "stats", err, nil)
		if int(s.Decisions) != p.decided || int(s.Outcomes+s.Expired) != p.closed ||
			s.Pending != p.decided-p.closed-p.withdrawn || int(s.Withdrawn) != p.withdrawn || int(s.Stale) != p.stale ||
			!slices.Equal(s.Versions, p.numbers()) {
			t.Fatalf("%s: %+v, want %+v", name, s, p)
		}
	}
}

// After any events the engine agrees with the model, no round is learned twice, and a snapshot with the tail of the log
// gives the same state as the whole log, which is the live one.
func TestMachine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{store: new(memlog.Store), places: map[string]*modelPlace{}, asked: map[modelKey]*modelDecision{}}
		m.open(t, nil)
		m.follow(t)
		defer func() { m.engine.Close(); m.follower.Close() }()
		m.Put(t)
		actions := rapid.StateMachineActions(m)
		actions["More"], actions["Most"], actions["Again"] = m.Decide, m.Outcome, m.Correct
		t.Repeat(actions)

		m.Follower(t)
		live, _, err := m.engine.Snapshot(t.Context())
		want(t, "snapshot", err, nil)
		audit, err := engine.NewAudit(buildToy, nil)
		want(t, "audit", err, nil)
		defer audit.Close()
		for entry, err := range m.store.Entries(t.Context(), 1) {
			want(t, "entries", err, nil)
			_, err = audit.Entry(entry)
			want(t, "an entry", err, nil)
		}
		for what, from := range map[string][]byte{"the whole log": nil, "a snapshot and the tail": m.snapshot,
			"the last snapshot": live} {
			m.engine.Close()
			m.open(t, from)
			again, _, err := m.engine.Snapshot(t.Context())
			want(t, "snapshot", err, nil)
			if string(again) != string(live) {
				t.Fatalf("%s gives another state", what)
			}
		}
	})
}
