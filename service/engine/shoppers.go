package engine

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"sync"

	"vitrine/service/api"
	"vitrine/service/page"
	"vitrine/service/setup"
	"vitrine/service/shoppers"
)

// flights counts the decisions that use a key and are not in the log yet.
type flights struct {
	mu   sync.Mutex
	keys map[shoppers.Key]int
}

// add counts one more decision, or one less.
func (f *flights) add(k shoppers.Key, n int) {
	if k == (shoppers.Key{}) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keys[k] += n; f.keys[k] == 0 {
		delete(f.keys, k)
	}
}

func (f *flights) use(k shoppers.Key) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.keys[k] > 0
}

// recognize returns a request with the name of its shopper in place of the id, if the placement remembers shoppers, and
// the shopper's past. So the log holds no id, not even in the hash of an experiment's unit. A new
// shopper gets a name for the placement drawsFor, and stays unknown if that is "".
func (e *Engine) recognize(ctx context.Context, v *page.View, r *api.Request, now int64,
	drawsFor string) (_ *api.Request, _ page.Shopper, key shoppers.Key, err error) {
	if v.Config.ShopperHistory == nil || r.ShopperID == "" {
		return r, page.Shopper{}, key, nil
	}
	if err := setup.CheckShopper(r.ShopperID); err != nil {
		return nil, page.Shopper{}, key, err
	}
	if e.shoppers == nil {
		return nil, page.Shopper{}, key, api.Fieldf("/shopper_id", "this program has no keys of shoppers: ask "+
			"the service, or leave the shopper out")
	}
	if key, err = e.shoppers.Key(ctx, r.ShopperID, drawsFor); err != nil {
		return nil, page.Shopper{}, key, keysError(ctx, err)
	}
	known := *r
	if known.ShopperID = ""; key == (shoppers.Key{}) {
		return &known, page.Shopper{}, key, nil
	}
	s := page.Shopper{Name: key.Name(v.Name)}
	known.ShopperID = hex.EncodeToString([]byte(s.Name))
	e.mu.RLock()
	defer e.mu.RUnlock()
	s.Past = e.state.PastOf(v.Name, s.Name, now)
	return &known, s, key, nil
}

// EraseShopper erases a shopper for good: nobody can say any more which names in the log, the state and the backups were
// the shopper's. A later visit is a new shopper's.
func (e *Engine) EraseShopper(ctx context.Context, id string) error {
	if err := setup.CheckShopper(id); err != nil || e.shoppers == nil {
		return err
	}
	return keysError(ctx, e.shoppers.Erase(ctx, id))
}

// Remembered returns the number of shoppers that the placements remember.
func (e *Engine) Remembered() int {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.state.Remembered()
}

func keysError(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("%w: %w", ErrKeys, err)
}

// SweepShoppers deletes the keys of shoppers whom no placement remembers. A follower leaves that to the leader: its own
// state may lack the last visits.
func (e *Engine) SweepShoppers(ctx context.Context) error {
	if e.shoppers == nil || e.isFollower.Load() {
		return nil
	}
	// This process may have been paused for so long that another one leads, whose visits its state lacks.
	behind := sync.OnceValue(func() error { return e.CatchUp(ctx) })
	err := e.shoppers.Sweep(ctx, func(k shoppers.Key) bool {
		if behind() != nil || e.isFollower.Load() || e.flights.use(k) { // before the state: a decision lands there
			return true
		}
		e.mu.RLock()
		defer e.mu.RUnlock()
		return e.state.Remembers(k)
	})
	return cmp.Or(err, behind())
}
