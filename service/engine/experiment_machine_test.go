package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	_ "vitrine/internal/rapidseed"
	"vitrine/service/api"
	"vitrine/service/earnings/abtest"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
)

// trials drives an engine through experiments: they begin, change and end, learners are adopted and roll back, requests
// come and their outcomes, late and never, and the process begins again.
type trials struct {
	store    *memlog.Store
	engine   *engine.Engine
	now      int64
	next     int
	open     []string // decisions
	shown    map[string]string
	variants map[string]string // of each unit, in the present phase
	snapshot []byte
}

const trialPlacement = `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"%d"},"attribution_window":"5m","memory_bytes":6000000,"max_versions":2%s}`

func (m *trials) start(t *rapid.T, from []byte) {
	e, err := engine.Open(t.Context(), engine.Options{Store: m.store, Build: buildFixed, Snapshot: from})
	want(t, "open", err, nil)
	m.engine = e
}

func (m *trials) Put(t *rapid.T) {
	policy := rapid.IntRange(0, 2).Draw(t, "policy")
	mode := `,"mode":"` + rapid.SampledFrom([]string{"learn", "shadow"}).Draw(t, "mode") + `"`
	if held := rapid.SampledFrom([]float64{0, 0.25, 0.5}).Draw(t, "holdout"); held > 0 &&
		!strings.Contains(mode, "shadow") {
		mode += fmt.Sprintf(`,"holdout_share":%v`, held)
	}
	if rapid.IntRange(0, 3).Draw(t, "experiment") > 0 {
		first := rapid.IntRange(0, 100).Draw(t, "first")
		second := rapid.IntRange(0, 100-first).Draw(t, "second")
		mode = fmt.Sprintf(`,"mode":"experiment","experiment":{"name":"%s","learn_from":"%s","variants":[{"name":"shop","show":"baseline","share":%v},{"name":"own","show":"policy","share":%v},{"name":"rival","show":"policy","policy":{"name":"%d"},"share":%v}]}`,
			rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"), rapid.SampledFrom([]string{"own", "all"}).Draw(t,
				"learn"),
			float64(first)/100, float64(second)/100, rapid.IntRange(0, 2).Draw(t, "rival"),
			float64(100-first-second)/100)
	}
	how := engine.Change{Reset: rapid.Bool().Draw(t, "reset")}
	_, err := m.engine.Change(t.Context(), "home", fmt.Appendf(nil, trialPlacement, policy, mode), how, m.now)
	switch {
	case err == nil:
		m.variants = map[string]string{}
	case errors.Is(err, engine.ErrLoss) && !how.Reset:
	case errors.Is(err, api.ErrInvalid): // of a change that an experiment does not allow
		c, _ := m.engine.Config("home")
		expect.Equal(fatal.T(t), c.Mode, api.Experimenting, err)
	default:
		t.Fatal(err)
	}
}

func (m *trials) Decide(t *rapid.T) {
	m.next++
	r := stock(fmt.Sprint("d", m.next), 3)
	r.ShopperID, r.Defer = fmt.Sprint("u", rapid.IntRange(0, 9).Draw(t, "unit")),
		rapid.IntRange(0, 3).Draw(t, "defer") == 0
	c, err := m.engine.Config("home")
	want(t, "config", err, nil)
	if c.Mode != api.Learn || c.Holdout > 0 {
		r.Baseline = []string{"sku2"}
	}
	a, err := m.engine.Decide(t.Context(), "home", r, m.now)
	want(t, "decide", err, nil)
	held := float64(abtest.Bucket(abtest.Unit("home", r.ShopperID), 0)) >= abtest.Buckets*(1-c.Holdout)
	if before := m.variants[r.ShopperID]; held != (a.Variant == api.Holdout) ||
		(a.Variant == "") != (c.Mode != api.Experimenting && !held) || before != "" && before != a.Variant {
		t.Fatalf("%s is shown %q after %q in the mode %q", r.ShopperID, a.Variant, before, c.Mode)
	}
	m.variants[r.ShopperID] = a.Variant
	m.open = append(m.open, a.Decision)
	m.shown[a.Decision] = a.IDs()[0]
}

func (m *trials) Close(t *rapid.T) {
	if len(m.open) == 0 {
		t.Skip("none is open")
	}
	at := rapid.IntRange(0, len(m.open)-1).Draw(t, "decision")
	id := m.open[at]
	m.open = append(m.open[:at:at], m.open[at+1:]...)
	item := ""
	if rapid.Bool().Draw(t, "sold") {
		item = m.shown[id]
	}
	if err := m.engine.Outcome(t.Context(), "home", id, item, m.now); err != nil && !errors.Is(err, engine.ErrLate) &&
		!errors.Is(err, engine.ErrNotFound) {
		t.Fatal(err)
	}
}

func (m *trials) Pass(t *rapid.T) {
	m.now += int64(rapid.IntRange(0, 400).Draw(t, "seconds")) * 1e9
	_, err := m.engine.Expire(t.Context(), m.now)
	want(t, "expire", err, nil)
}

func (m *trials) Keep(t *rapid.T) {
	_, err := m.engine.Keep(t.Context(), "home", rapid.SampledFrom([]string{"", "note"}).Draw(t, "note"), m.now)
	want(t, "keep", err, nil)
}

func (m *trials) RollBack(t *rapid.T) {
	versions, err := m.engine.Versions("home", 0)
	want(t, "versions", err, nil)
	if len(versions) == 0 {
		t.Skip("no versions")
	}
	v := versions[rapid.IntRange(0, len(versions)-1).Draw(t, "version")]
	c, _ := m.engine.Config("home")
	err = m.engine.RollBack(t.Context(), "home", v.Version, nil, m.now)
	if v.OtherLearner && c.Mode == api.Experimenting {
		want(t, "roll back", err, engine.ErrExperiment)
		return
	}
	want(t, "roll back", err, nil)
	m.variants = map[string]string{}
}

func (m *trials) Restart(t *rapid.T) {
	data, _, err := m.engine.Snapshot(t.Context())
	want(t, "snapshot", err, nil)
	m.engine.Close()
	from := rapid.SampledFrom([][]byte{nil, m.snapshot, data}).Draw(t, "from")
	m.start(t, from)
	again, _, err := m.engine.Snapshot(t.Context())
	want(t, "snapshot", err, nil)
	if !bytes.Equal(data, again) {
		t.Fatal("after a restart the state is another one")
	}
	m.snapshot = data
}

// Check holds after every step: the report is one, and the log is lawful.
func (m *trials) Check(t *rapid.T) {
	all, err := m.engine.Experiments("home")
	want(t, "experiments", err, nil)
	for _, r := range append(all.Past, *withDefault(all.Experiment)) {
		sum := 0.0
		for _, v := range r.Variants {
			sum += v.Share
			if v.Group.Rounds > v.Made || v.Units > v.Made || v.Group.Rounds > 0 &&
				!(v.Mean.Low <= v.Mean.Estimate && v.Mean.Estimate <= v.Mean.High) {
				t.Fatalf("%+v", v)
			}
		}
		if len(r.Variants) > 0 && (sum < 0.999999 || sum > 1.000001) {
			t.Fatalf("shares sum to %v", sum)
		}
	}
}

func withDefault(r *api.ExperimentReport) *api.ExperimentReport {
	if r == nil {
		return new(api.ExperimentReport)
	}
	return r
}

// After any events in any order the state is a function of the log, and the log is valid.
func TestExperimentMachine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &trials{store: new(memlog.Store), now: 1e18, shown: map[string]string{}, variants: map[string]string{}}
		m.start(t, nil)
		defer func() { m.engine.Close() }()
		_, err := m.engine.Put(t.Context(), "home", fmt.Appendf(nil, trialPlacement, 0, ""), m.now)
		want(t, "put", err, nil)
		t.Repeat(map[string]func(*rapid.T){
			"": m.Check, "put": m.Put, "decide": m.Decide, "decide again": m.Decide, "decide more": m.Decide,
			"close": m.Close, "close again": m.Close, "pass": m.Pass,
			"keep": m.Keep, "roll back": m.RollBack, "restart": m.Restart,
		})
		m.Restart(t)
		a, err := engine.NewAudit(buildFixed, nil)
		want(t, "audit", err, nil)
		defer a.Close()
		for entry, err := range m.store.Entries(t.Context(), 1) {
			want(t, "entries", err, nil)
			fatal.Or(a.Entry(entry))(t)
		}
	})
}
