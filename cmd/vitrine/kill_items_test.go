package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"vitrine/internal/long"
	"vitrine/service/api"
	"vitrine/service/client"
)

var (
	itemKills   = flag.Int("item-kills", 3, "how often TestKillItems kills the service during a push")
	killedItems = flag.Int("killed-items", 20_000, "how many items TestKillItems pushes")
)

// pusher pushes a catalogue part by part, and all of it again with the next price when it has come to the end.
type pusher struct {
	pausing      sync.Mutex // held while a part is pushed
	url          atomic.Pointer[string]
	items        int
	acknowledged []atomic.Int64 // the price of each part, 0 before the first push
	parts        atomic.Int64   // that were acknowledged
}

func newPusher(items int) *pusher {
	return &pusher{items: items, acknowledged: make([]atomic.Int64, (items+client.ItemsChunk-1)/client.ItemsChunk)}
}

// push pushes until its context ends. It tries a part again until the service has acknowledged it.
func (p *pusher) push(ctx context.Context) {
	for price := int64(1); ; price++ {
		for part := range p.acknowledged {
			for {
				if ctx.Err() != nil {
					return
				}
				if p.put(ctx, part, price) == nil {
					break
				}
				time.Sleep(5 * time.Millisecond)
			}
		}
	}
}

// put pushes a part once.
func (p *pusher) put(ctx context.Context, part int, price int64) error {
	p.pausing.Lock()
	defer p.pausing.Unlock()
	c := &client.Client{Base: *p.url.Load(), Patience: -1}
	defer c.CloseIdleConnections()
	if _, err := c.PutItems(ctx, "home", p.part(part, price)); err != nil {
		return err
	}
	p.acknowledged[part].Store(price)
	p.parts.Add(1)
	return nil
}

// reaches waits for the moment of a kill: they are spread over a push and a half.
func (p *pusher) reaches(ctx context.Context, kill, kills int) {
	want := int64(max(3, 3*len(p.acknowledged)*(kill+1)/(2*kills)))
	for p.parts.Load() < want && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
}

// placement makes the placement that has the catalogue.
func (p *pusher) placement(ctx context.Context, t *testing.T) {
	t.Helper()
	c := &client.Client{Base: *p.url.Load()}
	if _, err := c.Put(ctx, "home", &api.Placement{MaxSize: 2, Features: []api.Feature{{Name: "x", Kind: "number", Scale: 1e6}}, Policy: map[string]any{"name": "greedy"}}); err != nil {
		t.Fatal(err)
	}
}

func (p *pusher) part(part int, price int64) (items []api.CatalogueItem) {
	for i := part * client.ItemsChunk; i < min((part+1)*client.ItemsChunk, p.items); i++ {
		items = append(items, api.CatalogueItem{ID: fmt.Sprint("sku", i), Features: api.Values{api.Number("x", float64(i))}, Revenue: new(float64(price))})
	}
	return items
}

// holds reports what a service must not have: a part with items of two prices or with some of its items only, or one that is
// older than what was acknowledged before the service was asked.
func (p *pusher) holds(ctx context.Context, t *testing.T) (n int) {
	t.Helper()
	acknowledged := make([]int64, len(p.acknowledged))
	for part := range acknowledged {
		acknowledged[part] = p.acknowledged[part].Load()
	}
	prices := make([]map[int64]int, len(p.acknowledged))
	c := &client.Client{Base: *p.url.Load()}
	defer c.CloseIdleConnections()
	_, err := eachPage(ctx, c, "home", func(items []api.CatalogueItem) error {
		n += len(items)
		for _, item := range items {
			i := 0
			if _, err := fmt.Sscanf(item.ID, "sku%d", &i); err != nil {
				return err
			}
			part := i / client.ItemsChunk
			if prices[part] == nil {
				prices[part] = map[int64]int{}
			}
			prices[part][int64(*item.Revenue)]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for part, of := range prices {
		whole := min(client.ItemsChunk, p.items-part*client.ItemsChunk)
		for price, n := range of {
			if n != whole || price < acknowledged[part] {
				t.Errorf("part %d of %d items: %d have the price %d, acknowledged is %d", part, whole, n, price, acknowledged[part])
			}
		}
		if len(of) == 0 && acknowledged[part] > 0 {
			t.Errorf("part %d was acknowledged and is lost", part)
		}
	}
	return n
}

// A push survives SIGKILL of the service: a part is in the catalogue as a whole or not at all, what was acknowledged stays,
// and the pusher goes on where it was. The state is that of a replay from zero.
func TestKillItems(t *testing.T) {
	long.Test(t)
	t.Parallel()
	file, data := serviceFile(t, "[snapshots]\nevery = \"200ms\"\n")
	ctx, cancel := context.WithTimeout(t.Context(), patience+time.Duration(*itemKills)*time.Minute)
	defer cancel()
	p := newPusher(*killedItems)
	service := serve(t, file)
	url := service.listening(t)
	p.url.Store(&url)
	p.placement(ctx, t)
	pushing, stop := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() { p.push(pushing) })
	rng := rand.New(rand.NewPCG(*killSeed, 7))
	n := 0
	for kill := range *itemKills {
		p.reaches(ctx, kill, *itemKills)
		time.Sleep(within(rng, 300*time.Millisecond))
		service.kill()
		service = serve(t, file)
		url := service.listening(t)
		// Asked before the pusher knows the new address.
		asked := &pusher{items: p.items, acknowledged: p.acknowledged}
		asked.url.Store(&url)
		n = asked.holds(ctx, t)
		p.url.Store(&url)
		if t.Failed() {
			t.Fatal(service.said())
		}
	}
	stop()
	wait.Wait()
	if n != *killedItems {
		t.Errorf("%d items at the last start, want %d", n, *killedItems)
	}
	service.stop(t)
	sound(t, data)
	t.Logf("verdict: -kill-seed %d: %d kills, %d parts acknowledged, none lost or in part, %d items at the last start", *killSeed, *itemKills, p.parts.Load(), n)
}
