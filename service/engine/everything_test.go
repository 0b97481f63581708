package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"vitrine/service/api"
	"vitrine/service/engine"
)

// Everything at once, on little memory and with callers that give up, leads to the log's state, from its beginning and
// from any snapshot taken meanwhile.
func TestEverythingAtOnce(t *testing.T) {
	store := &faultyStore{fails: func(int64) error { time.Sleep(20 * time.Microsecond); return nil }}
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	names := []string{"a", "b", "c"}
	place := func(rng *rand.Rand) []byte {
		mode := []string{api.Learn, api.Explore, api.Shadow}[rng.IntN(3)]
		return fmt.Appendf(nil, `{"max_size":%d,"max_request_items":8,"features":[{"name":"x","kind":"number"}],"policy":{},"mode":%q,"memory_bytes":%d,"max_versions":%d,"seed":%d,"attribution_window":"%dns"}`,
			1+rng.IntN(3), mode, 60_000+rng.IntN(50_000), 1+rng.IntN(3), rng.IntN(2), 10+rng.IntN(1000))
	}
	var mu sync.Mutex
	snapshots := [][]byte{nil}
	enough := func() bool { // the more callers give up, the less is done
		mu.Lock()
		defer mu.Unlock()
		return e.Sequence() >= 500 && len(snapshots) >= 3
	}
	var wg sync.WaitGroup
	for c := range 8 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(c)))
			for i := int64(0); i < 150 || !enough() && i < 100_000; i++ {
				ctx, cancel := context.WithCancel(t.Context())
				if rng.IntN(10) == 0 {
					time.AfterFunc(time.Duration(rng.IntN(60))*time.Microsecond, cancel)
				}
				name := names[rng.IntN(len(names))]
				switch rng.IntN(40) { // errors are part of it
				case 0:
					_, _ = e.Change(ctx, name, place(rng), engine.Change{Reset: rng.IntN(3) > 0,
						Relearn: rng.IntN(2) > 0}, i)
				case 1:
					_ = e.Delete(ctx, name, nil, i)
				case 2:
					_, _ = e.Keep(ctx, name, "", i)
				case 3:
					if s, err := e.Stats(name); err == nil && len(s.Versions) > 0 {
						_ = e.RollBack(ctx, name, s.Versions[rng.IntN(len(s.Versions))], nil, i)
					}
				case 4:
					_, _ = e.Expire(ctx, i)
					_, _, _ = e.Exchange(ctx, i)
				case 5:
					data, _, err := e.Snapshot(ctx)
					if rng.IntN(2) == 0 {
						var w bytes.Buffer
						_, _, err = e.WriteSnapshot(ctx, &w, 0)
						data = w.Bytes()
					}
					if err == nil && rng.IntN(4) == 0 {
						mu.Lock()
						snapshots = append(snapshots, data)
						mu.Unlock()
					}
				default:
					r := stock([]string{"", fmt.Sprint(rng.IntN(60))}[rng.IntN(2)], 3+rng.IntN(4))
					if config, err := e.Config(name); err != nil {
						_, _ = e.Put(ctx, name, place(rng), i)
					} else if config.Mode == api.Shadow {
						r.Baseline = []string{"sku1"}
					}
					if rng.IntN(9) == 0 {
						r.Items[0].Features[0] = api.Number("x", []float64{poison, sour}[rng.IntN(2)])
					}
					a, err := e.Decide(ctx, name, r, i)
					if err == nil && rng.IntN(3) > 0 {
						_ = e.Outcome(ctx, name, a.Decision, append(a.IDs(), "")[rng.IntN(len(a.IDs())+1)],
							i+rng.Int64N(2000))
					}
					if err == nil && len(a.IDs()) > 0 && rng.IntN(3) == 0 {
						_ = e.Correct(ctx, name, a.Decision, api.Correction{ID: fmt.Sprint(rng.IntN(9)),
							Item: a.IDs()[0], Value: new(float64(rng.IntN(9) - 6))}, i)
					}
				}
				cancel()
			}
		})
	}
	wg.Wait()
	live := snapshot(t, e)
	for i, from := range append(snapshots, live) {
		if string(replayed(t, engine.Options{Store: store, Build: buildToy, Snapshot: from})) != string(live) {
			t.Errorf("snapshot %d of %d gives another state", i, len(snapshots))
		}
	}
	if !enough() {
		t.Errorf("%d entries and %d snapshots prove nothing", e.Sequence(), len(snapshots))
	}
}
