package engine

import (
	"context"
	"encoding/hex"

	"vitrine/service/api"
	"vitrine/service/page"
	"vitrine/service/setup"
	"vitrine/service/shoppers"
)

// recognize returns a request with the name of its shopper in place of the id, if the placement remembers shoppers, and
// the shopper's past. So the log holds no id, not even in the hash of the request or of an experiment's unit. A new
// shopper gets a name if draws is set, and otherwise stays unknown.
func (e *Engine) recognize(ctx context.Context, v *page.View, r *api.Request, now int64,
	draws bool) (*api.Request, page.Shopper, error) {
	if v.Config.ShopperHistory == nil || r.ShopperID == "" {
		return r, page.Shopper{}, nil
	}
	if err := setup.CheckShopper(r.ShopperID); err != nil {
		return nil, page.Shopper{}, err
	}
	if e.shoppers == nil {
		return nil, page.Shopper{}, api.Fieldf("/shopper_id", "this program has no keys of shoppers: ask the "+
			"service, or leave the shopper out")
	}
	key, err := e.shoppers.Key(ctx, r.ShopperID, draws)
	if err != nil {
		return nil, page.Shopper{}, err
	}
	known := *r
	if known.ShopperID = ""; key == (shoppers.Key{}) {
		return &known, page.Shopper{}, nil
	}
	s := page.Shopper{Name: key.Name(v.Name)}
	known.ShopperID = hex.EncodeToString([]byte(s.Name))
	e.mu.RLock()
	defer e.mu.RUnlock()
	s.Past = e.state.PastOf(v.Name, s.Name, now)
	return &known, s, nil
}

// EraseShopper erases a shopper for good: nobody can say any more which names in the log, the state and the backups were
// the shopper's. A later visit is a new shopper's.
func (e *Engine) EraseShopper(ctx context.Context, id string) error {
	if err := setup.CheckShopper(id); err != nil || e.shoppers == nil {
		return err
	}
	return e.shoppers.Erase(ctx, id)
}

// SweepShoppers deletes the keys of shoppers whom no placement remembers. A follower leaves that to the leader: its own
// state may lack the last visits.
func (e *Engine) SweepShoppers(ctx context.Context) error {
	if e.shoppers == nil || e.isFollower.Load() {
		return nil
	}
	return e.shoppers.Sweep(ctx, func(k shoppers.Key) bool {
		e.mu.RLock()
		defer e.mu.RUnlock()
		return e.state.Remembers(k)
	})
}
