package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/replace"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/filelog"
	"vitrine/service/host"
)

// testdata/data is a data directory of the present format, and testdata/data-0.1.0 of a release. Each has
//
//	whole/       a log from its first entry on, with a snapshot of the middle
//	cut/         the same log after retention: without its first entries, with a base and a snapshot
//	state.json   the engine's knowledge after the last entry, and the next decisions of its policies
//
// A change of the format writes it again:
//
//	go test ./cmd/vitrine -run TestDataFormat -rewrite
const dataDir = "testdata/data"

var rewrite = flag.Bool("rewrite", false, "write testdata/data again, then read the diff")

// formatPlacements cover every policy of placements, every mode, learned values and a catalogue.
var formatPlacements = map[string]string{
	"auto":      `"policy":{"name":"auto"}`, // bma-mnl, with the features of formatTrade
	"eps":       `"policy":{"name":"eps-greedy-mnl"},"mode":"explore","explore_share":0.3`,
	"feel-good": `"policy":{"name":"feel-good-ts"}`,
	"greedy":    `"policy":{"name":"greedy","warmup":3}`,
	"barrier":   `"policy":{"name":"log-barrier-mnl"}`,
	"ofu":       `"policy":{"name":"ofu-mnl-plus"},"mode":"shadow"`,
	"onl":       `"policy":{"name":"onl-mnl","warmup":3}`,
	"stocked":   `"policy":{"name":"onl-mnl","warmup":3}`,
	"trial":     `"policy":{"name":"onl-mnl","warmup":3},"mode":"experiment","experiment":{"name":"spring","variants":[{"name":"shop","show":"baseline","share":0.4},{"name":"ours","show":"policy","share":0.3},{"name":"rival","show":"policy","policy":{"name":"ts-mnl"},"share":0.3}]}`,
	"onl-mlp":   `"policy":{"name":"onl-mnl","warmup":3,"update":"mle","pilot":"map","utility":{"kind":"mlp","hidden":[2]}}`,
	"ts":        `"policy":{"name":"ts-mnl"}`,
	"small":     `"policy":{"name":"uniform"}`,
	"ucb":       `"policy":{"name":"ucb-mnl"}`,
	"uniform":   `"policy":{"name":"uniform"}`,
}

// formatTrade is the work of a service. It calls half and late on the way.
func formatTrade(ctx context.Context, e *engine.Engine, half, late func() error) error {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	const features = `"features":[{"name":"a","kind":"number"},{"name":"b","kind":"category","values":["x","y"],"allow_other":true},{"name":"u","kind":"number","from":"shopper"}]`
	names := []string{"gone"}
	for name := range formatPlacements {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		policy := formatPlacements[name]
		if name == "gone" {
			policy = `"policy":{"name":"uniform"}`
		}
		features := features
		if name == "auto" { // b learns its values
			features = strings.Replace(features, `,"values":["x","y"],"allow_other":true`, "", 1)
		}
		size := `"max_size":2,"log_items":"all"`
		if name == "small" { // its memory holds some seventy decisions
			size = `"max_size":1,"memory_bytes":12500`
		}
		if _, err := e.Put(ctx, name, fmt.Appendf(nil, `{%s,"max_request_items":4,"horizon":1000,"seed":%d,%s,%s}`,
			size, i, features, policy), now); err != nil {
			return err
		}
	}
	var stock []api.CatalogueItem
	for _, item := range formatRequest("", rand.New(rand.NewPCG(13, 4))).Items {
		stock = append(stock, api.CatalogueItem{ID: item.ID, Features: item.Features, Revenue: item.Revenue})
	}
	if _, err := e.PutItems(ctx, "stocked", stock, now); err != nil {
		return err
	}
	const rounds = 24
	rng := rand.New(rand.NewPCG(13, 1))
	for i := range rounds {
		for _, name := range names {
			now += int64(time.Second)
			if name == "gone" && i >= rounds/4 {
				continue
			}
			id := fmt.Sprint(name, "-", i)
			r := formatRequest(name, rng)
			r.Decision, r.Defer = id, i%8 == 5
			a, err := e.Decide(ctx, name, r, now)
			if err != nil {
				return err
			}
			item := append(a.IDs(), "")[rng.IntN(len(a.IDs())+1)]
			switch {
			case i%8 == 5 && name != "onl": // onl's are withdrawn
				err = e.Activate(ctx, name, id, now)
			case i%8 == 6:
				err = e.Reward(ctx, name, id, []api.Reward{{Item: a.IDs()[0], Value: 0}}, now)
			case i%8 != 7: // these expire
				err = e.Outcome(ctx, name, id, item, now)
			}
			for k := range 100 {
				if err != nil || name != "small" || i%8 != 3 {
					break
				}
				now += int64(time.Second)
				r := formatRequest(name, rng)
				r.Decision = fmt.Sprint(id, "-", k)
				_, err = e.Decide(ctx, name, r, now)
				err = errors.Join(err, e.Wait(ctx))
			}
			if err := errors.Join(err, e.Wait(ctx)); err != nil { // so that all runs make the same log
				return err
			}
		}
		now += int64(6 * time.Minute)
		_, err := e.Expire(ctx, now)
		err = errors.Join(err, e.Wait(ctx))
		switch i {
		case rounds / 4:
			err = errors.Join(err, e.Delete(ctx, "gone", nil, now))
			names = slices.DeleteFunc(names, func(name string) bool { return name == "gone" })
		case rounds / 3, rounds - 3:
			for _, name := range names {
				_, kept := e.Keep(ctx, name, "", now)
				err = errors.Join(err, kept)
			}
		case rounds / 2:
			err = errors.Join(err, half())
		case rounds * 5 / 8:
			s, failed := e.Stats("onl")
			err = errors.Join(err, failed, e.RollBack(ctx, "onl", s.Versions[0], nil, now))
		case rounds * 3 / 4:
			err = errors.Join(err, late())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func formatRequest(placement string, rng *rand.Rand) *api.Request {
	r := &api.Request{User: api.Values{api.Number("u", rng.NormFloat64())}}
	for k := range 4 {
		r.Items = append(r.Items, api.Item{ID: fmt.Sprint("i", k), Features: api.Values{
			api.Number("a", rng.NormFloat64()), api.Text("b", []string{"x", "y", "z"}[rng.IntN(3)]),
		}, Revenue: new(1 + float64(rng.IntN(3)))})
	}
	switch placement {
	case "ofu":
		r.Baseline = []string{"i2", "i0"}
	case "trial":
		r.Baseline, r.ShopperID = []string{"i2", "i0"}, fmt.Sprint("unit-", rng.IntN(9))
	case "stocked":
		r.Items = nil
	}
	return r
}

// formatData makes the data directory of a service.
func formatData(ctx context.Context, data string, cut bool) error {
	return withEngine(data, func(ctx context.Context, e *engine.Engine, store *filelog.Store) error {
		snapshot := func() (upTo uint64, err error) {
			bytes, upTo, err := e.Snapshot(ctx)
			return upTo, errors.Join(err, replace.File(filepath.Join(data, host.SnapshotFile), bytes))
		}
		half := func() error {
			upTo, err := snapshot()
			if err != nil || !cut {
				return err
			}
			limits := host.Retention{Size: 1 << 16, Log: store, Data: data}
			removed, err := limits.Apply(ctx, upTo, time.Time{})
			if err == nil && removed.To < removed.From {
				err = errors.New("nothing was removed")
			}
			return err
		}
		late := func() error {
			if !cut {
				return nil
			}
			_, err := snapshot()
			return err
		}
		return formatTrade(ctx, e, half, late)
	})
}

// knowledge is an engine's knowledge of a placement and its next decision.
type knowledge struct {
	Decisions, Outcomes, Expired, ExpiredEarly, Withdrawn, Learned, Skipped, Stale uint64
	Pending                                                                        int
	PolicyEntry                                                                    uint64
	Versions                                                                       []uint64
	Problem                                                                        string
	Revenue, Agreements                                                            []float64
	Decided                                                                        [][]string
	Probability                                                                    [][]float64
}

func knowledgeOf(ctx context.Context, e *engine.Engine) (map[string]knowledge, error) {
	all := map[string]knowledge{}
	for _, name := range e.Placements() {
		if err := e.Wait(ctx); err != nil {
			return nil, err
		}
		s, err := e.Stats(name)
		if err != nil {
			return nil, err
		}
		k := knowledge{
			s.Decisions, s.Outcomes, s.Expired, s.ExpiredEarly, s.Withdrawn, s.Learned, s.Skipped, s.Stale, s.Pending,
			s.PolicyEntry, s.Versions, s.Problem,
			[]float64{s.ByPolicy.Revenue, s.ByChance.Revenue, s.ByBaseline.Revenue, s.Calibration.Revenue,
				s.Calibration.Predicted},
			[]float64{float64(s.Shadow.Rounds), float64(s.Shadow.Agreements), s.Shadow.Policy, s.Shadow.Baseline}, nil,
			nil,
		}
		rng := rand.New(rand.NewPCG(13, 2))
		for range 3 {
			a, err := e.Decide(ctx, name, formatRequest(name, rng), time.Date(2026, 2, 1, 0, 0, 0, 0,
				time.UTC).UnixNano())
			if err != nil {
				return nil, err
			}
			k.Decided = append(k.Decided, a.IDs())
			k.Probability = append(k.Probability, append(a.Probability, a.Outside, a.Expected, a.Propensity))
		}
		all[name] = k
	}
	return all, nil
}

// reopen opens the engine of a data directory as serve does.
func reopen(ctx context.Context, data string, logger *slog.Logger, f func(*engine.Engine) error) (err error) {
	store, err := filelog.Open(ctx, filelog.Options{Dir: filepath.Join(data, host.LogDir), Logger: logger})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	e, err := host.OpenEngine(ctx, data, engine.Options{Store: store}, logger)
	if err != nil {
		return err
	}
	defer e.Close()
	return f(e)
}

func rewriteDataFormat(t *testing.T) {
	dir := dataDir
	fatal.If(t, os.RemoveAll(dir))
	for _, name := range []string{"whole", "cut"} {
		fatal.If(t, formatData(t.Context(), filepath.Join(dir, name), name == "cut"))
	}
	// Useless files, or files that git does not keep: empty directories, locks and the server's summaries.
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && slices.Contains([]string{"index.db", "lock", "hold"}, d.Name()) {
			err = os.Remove(path)
		}
		return err
	})
	fatal.If(t, err)
	data := copyOf(t, filepath.Join(dir, "whole"))
	err = reopen(t.Context(), data, slog.New(slog.DiscardHandler), func(e *engine.Engine) error {
		known, err := knowledgeOf(t.Context(), e)
		if err != nil {
			return err
		}
		text, err := json.MarshalIndent(known, "", "\t")
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, "state.json"), append(text, '\n'), 0o644)
	})
	fatal.If(t, err)
}

func copyOf(t *testing.T, dir string) string {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	fatal.If(t, os.CopyFS(data, os.DirFS(dir)))
	return data
}

// The data directory opens with the recorded state, with its snapshots and without.
func TestDataFormat(t *testing.T) {
	if *rewrite {
		rewriteDataFormat(t)
	}
	dirs := fatal.Or(filepath.Glob(dataDir + "*"))(t) // of releases, too: data-0.1.0
	for _, dir := range dirs {
		testDataFormat(t, dir)
	}
}

func testDataFormat(t *testing.T, dir string) {
	text := fatal.Or(os.ReadFile(filepath.Join(dir, "state.json")))(t)
	var want map[string]any
	fatal.If(t, json.Unmarshal(text, &want))
	for _, c := range []struct{ data, without string }{
		{"whole", ""}, {"whole", host.SnapshotFile}, {"cut", ""}, {"cut", host.SnapshotFile}, {"cut", host.BasesDir},
	} {
		t.Run(fmt.Sprintf("%s %s without %q", filepath.Base(dir), c.data, c.without), func(t *testing.T) {
			data := copyOf(t, filepath.Join(dir, c.data))
			if c.without != "" {
				fatal.If(t, os.RemoveAll(filepath.Join(data, c.without)))
			}
			run1(t, "check", data)
			out, _, code := vitrineRun(t, "replay", data)
			wantReplayed(t, c.without == "", code, out)
			log := &watchedLog{more: make(chan struct{}, 1)}
			err := reopen(t.Context(), data, slog.New(slog.NewJSONHandler(log, nil)), func(e *engine.Engine) error {
				known, err := knowledgeOf(t.Context(), e)
				if err != nil {
					return err
				}
				text, err := json.Marshal(known)
				if err != nil {
					return err
				}
				var have any
				if err := json.Unmarshal(text, &have); err != nil {
					return err
				}
				wantAlike(t, "", have, want)
				return nil
			})
			expect.Error(t, err, nil)
			if text := log.text.String(); strings.Contains(text, `"WARN"`) || strings.Contains(text, `"ERROR"`) {
				t.Errorf("the service complains: %s", text)
			}
			if slices.Contains([]string{host.SnapshotFile, host.BasesDir}, c.without) {
				return
			}
			// And it serves: earlier decisions are known, and its writer goes on.
			s := newService(t)
			s.Data = data
			url, _, stop := serving(t, s)
			ask(t, 200, "GET", url+"/v1/placements/onl/decisions/onl-12", "")
			ask(t, 204, "POST", url+"/v1/placements/ucb/decisions/ucb-22/outcome", `{"choice":null}`)
			expect.Error(t, stop(), nil)
			run1(t, "check", data)
		})
	}
}

// wantReplayed checks what a replay says of the snapshots: they are equal. On other machines than those that wrote them
// the last digits differ.
func wantReplayed(t *testing.T, compares bool, code int, said string) {
	t.Helper()
	switch {
	case code == 0 && (!compares || strings.Contains(said, ": equal, at entry")):
	case runtime.GOARCH != "amd64" && strings.Contains(said, "is another one"):
	default:
		t.Errorf("replay: exit status %d: %s", code, said)
	}
}

// A service that went on from a snapshot reaches the state of a replay of its log.
func TestReplayOfData(t *testing.T) {
	for _, name := range []string{"whole", "cut"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := copyOf(t, filepath.Join(dataDir, name))
			err := reopen(t.Context(), data, slog.New(slog.DiscardHandler), func(e *engine.Engine) error {
				if err := laterTrade(t.Context(), e); err != nil {
					return err
				}
				bytes, _, err := e.Snapshot(t.Context())
				return errors.Join(err, replace.File(filepath.Join(data, host.SnapshotFile), bytes))
			})
			fatal.If(t, err)
			said, code := command(t, "replay", data)
			wantReplayed(t, true, code, said)
		})
	}
}

// laterTrade is the work of a service after formatTrade: open decisions get their outcomes or expire, others are made,
// and one placement's fill its memory.
func laterTrade(ctx context.Context, e *engine.Engine) error {
	now := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC).UnixNano()
	rng := rand.New(rand.NewPCG(13, 3))
	for _, name := range e.Placements() {
		err := e.Outcome(ctx, name, name+"-22", "", now) // a reward was reported
		if err != nil && !errors.Is(err, engine.ErrNotFound) && !errors.Is(err, engine.ErrConflict) &&
			!errors.Is(err, engine.ErrLate) {
			return err
		}
		n := 4
		if name == "small" {
			n = 120
		}
		for i := range n {
			now += int64(time.Second)
			r := formatRequest(name, rng)
			r.Decision = fmt.Sprint(name, "-later-", i)
			a, err := e.Decide(ctx, name, r, now)
			if err == nil && i%2 == 0 {
				err = e.Outcome(ctx, name, r.Decision, a.IDs()[0], now)
			}
			if err := errors.Join(err, e.Wait(ctx)); err != nil {
				return err
			}
		}
	}
	return nil
}

// The kinds of events that a service writes every day are in the log.
func TestDataFormatIsWhole(t *testing.T) {
	out := run1(t, "check", dataDir+"/whole")
	for _, kind := range []string{
		"PlacementPut", "PlacementDeleted", "Offered", "Chosen", "Expired", "VersionSaved", "LearnerRolledBack",
		"Activated", "ItemsDeclined", "Evicted", "ItemsChanged", "CategoryValuesAdded",
	} {
		mentions(t, out, "\n"+kind+" ")
	}
}

// wantAlike compares JSON values. The last digits of learned numbers may differ from machine to
// machine.
func wantAlike(t *testing.T, at string, have, want any) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		have, _ := have.(map[string]any)
		for key := range want {
			wantAlike(t, at+"/"+key, have[key], want[key])
		}
	case []any:
		have, _ := have.([]any)
		if len(have) != len(want) {
			t.Errorf("%s: %v, want %v", at, have, want)
			return
		}
		for i := range want {
			wantAlike(t, fmt.Sprint(at, "/", i), have[i], want[i])
		}
	case float64:
		if have, ok := have.(float64); !ok || math.Abs(have-want) > 1e-6*max(1, math.Abs(want)) {
			t.Errorf("%s: %v, want %v", at, have, want)
		}
	default:
		if have != want {
			t.Errorf("%s: %v, want %v", at, have, want)
		}
	}
}
