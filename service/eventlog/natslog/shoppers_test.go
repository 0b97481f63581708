package natslog_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/eventlog/natslog"
	"vitrine/service/eventlog/natslog/natstest"
	"vitrine/service/shoppers"
)

// All processes on a log share the keys of shoppers, even if they ask at once. An erased key is gone from the servers.
func TestShoppers(t *testing.T) {
	url := natstest.URL(t)
	leads := connect(t, natslog.Options{URL: url})
	follows := connect(t, natslog.Options{URL: url, Standby: true})
	stores := []shoppers.Store{leads.Shoppers(), follows.Shoppers()}
	key := func(s shoppers.Store, id, drawsFor string) shoppers.Key {
		t.Helper()
		return fatal.Or(s.Key(t.Context(), id, drawsFor))(t)
	}
	if key(stores[1], "anna", "") != (shoppers.Key{}) {
		t.Error("an unknown shopper has a key")
	}
	keys := make([]map[string]shoppers.Key, 8)
	var all sync.WaitGroup
	for i := range keys {
		keys[i] = map[string]shoppers.Key{}
		all.Go(func() {
			for k := range 20 {
				id := fmt.Sprint("shopper ", k)
				keys[i][id], _ = stores[i%2].Key(t.Context(), id, "home")
			}
		})
	}
	all.Wait()
	distinct := map[shoppers.Key]bool{}
	for id, k := range keys[0] {
		distinct[k] = true
		for i := range keys {
			if keys[i][id] != k || k == (shoppers.Key{}) {
				t.Errorf("%s has the keys %x and %x", id, k, keys[i][id])
			}
		}
	}
	expect.Equal(t, len(distinct), 20, "keys of 20 shoppers")
	for _, s := range stores { // again is no error
		fatal.If(t, s.Erase(t.Context(), "shopper 0"))
	}
	if k := key(stores[1], "shopper 0", ""); k != (shoppers.Key{}) {
		t.Errorf("an erased shopper has the key %x", k)
	}
	info := fatal.Or(natstest.JetStream(t, url).StreamInfo("vitrine-shoppers"))(t)
	expect.Equal(t, info.State.Msgs, 19, "the servers hold n keys")
	if k := key(stores[0], "shopper 0", "home"); k == keys[0]["shopper 0"] || k != key(stores[1], "shopper 0", "") {
		t.Errorf("the next key of the shopper is %x", k)
	}
}

// Keys can be asked for while the owner is told that their stream was missing.
func TestMissingShoppers(t *testing.T) {
	var s *natslog.Store
	told := 0
	s = connect(t, natslog.Options{URL: natstest.URL(t), MadeKeys: func() {
		told++
		done := make(chan error)
		go func() {
			_, err := s.Shoppers().Key(t.Context(), "anna", "")
			done <- err
		}()
		select {
		case err := <-done:
			expect.Error(t, err, nil)
		case <-time.After(10 * time.Second):
			t.Fatal("the key waits")
		}
	}})
	for range 2 {
		fatal.If(t, s.MakeKeys(t.Context()))
	}
	expect.Equal(t, told, 1, "told n times")
}

// A sweep deletes the keys that are not used, unless they are fresh.
func TestSweepOfShoppers(t *testing.T) {
	url := natstest.URL(t)
	store := connect(t, natslog.Options{URL: url})
	keys := store.Shoppers()
	fatal.If(t, keys.Sweep(t.Context(), func(shoppers.Key) bool { return false }))
	var all []shoppers.Key
	for k := range 30 {
		all = append(all, fatal.Or(keys.Key(t.Context(), fmt.Sprint(k), "home"))(t))
	}
	natslog.NobodyHears(store)
	for _, fresh := range []time.Duration{time.Hour, 0} {
		natslog.SetFreshKey(t, fresh)
		fatal.If(t, keys.Sweep(t.Context(), func(k shoppers.Key) bool { return k == all[7] }))
		for k := range all {
			has := fatal.Or(keys.Key(t.Context(), fmt.Sprint(k), ""))(t) == all[k]
			expect.Equal(t, has, fresh > 0 || k == 7, "fresh for", fresh, "shopper", k, "has a key")
		}
	}
	fatal.If(t, keys.Sweep(t.Context(), func(k shoppers.Key) bool {
		if again := fatal.Or(keys.Key(t.Context(), "7", "home"))(t); again != k {
			t.Errorf("shopper 7 has the key %x, after %x", again, k)
		}
		return false
	}))
	if k := fatal.Or(keys.Key(t.Context(), "7", ""))(t); k != all[7] {
		t.Errorf("the key %x of shopper 7 was asked for during a sweep, which deleted it", k)
	}
	// A server overwrites deleted messages, but not those that a limit evicts: all must be deleted.
	info := fatal.Or(natstest.JetStream(t, url).StreamInfo("vitrine-shoppers"))(t)
	if info.State.Msgs != 1 || info.Config.MaxMsgsPerSubject > 0 {
		t.Errorf("the servers hold %d messages of one key, at most %d", info.State.Msgs, info.Config.MaxMsgsPerSubject)
	}
}
