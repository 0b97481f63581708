//go:build unix

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

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/long"
	"vitrine/service/api"
	"vitrine/service/client"
)

var (
	itemKills   = flag.Int("item-kills", 3, "how often TestKillItems kills the service during a push")
	killedItems = flag.Int("killed-items", 20_000, "how many items it pushes")
)

// pusher pushes a catalogue part by part, and at its end all of it again with the next price.
type pusher struct {
	url          atomic.Pointer[string]
	items        int
	acknowledged []atomic.Int64 // the price of each part, 0 before the first push
	parts        atomic.Int64   // that were acknowledged
}

func newPusher(items int) *pusher {
	return &pusher{items: items, acknowledged: make([]atomic.Int64, (items+client.ItemsChunk-1)/client.ItemsChunk)}
}

// push pushes until stop, which waits for the current part. It tries a part again until the service acknowledged it.
func (p *pusher) push(ctx context.Context) (stop func()) {
	pushing, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() {
		for price := int64(1); ; price++ {
			for part := range p.acknowledged {
				for p.put(pushing, part, price) != nil {
					if pushing.Err() != nil {
						return
					}
					time.Sleep(5 * time.Millisecond)
				}
			}
		}
	})
	return func() { cancel(); wait.Wait() }
}

// put pushes a part once.
func (p *pusher) put(ctx context.Context, part int, price int64) error {
	c := &client.Client{Base: *p.url.Load(), Patience: -1}
	defer c.CloseIdleConnections()
	if _, err := c.PutItems(ctx, "home", p.part(part, price)); err != nil {
		return err
	}
	p.acknowledged[part].Store(price)
	p.parts.Add(1)
	return nil
}

// at sends the pusher to the service at a URL.
func (p *pusher) at(url string) { p.url.Store(&url) }

// reaches waits for the moment of a kill: they are spread over a push and a half.
func (p *pusher) reaches(ctx context.Context, kill, kills int) {
	want := int64(max(3, 3*len(p.acknowledged)*(kill+1)/(2*kills)))
	for p.parts.Load() < want && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
}

// placement makes the catalogue's placement.
func (p *pusher) placement(ctx context.Context, t *testing.T) {
	t.Helper()
	c := &client.Client{Base: *p.url.Load()}
	fatal.Or(c.Put(ctx, "home", &api.Placement{MaxSize: 2,
		Features: []api.Feature{{Name: "x", Kind: "number", Scale: new(1e6)}},
		Policy:   map[string]any{"name": "greedy"}}))(t)
}

func (p *pusher) part(part int, price int64) (items []api.CatalogueItem) {
	for i := part * client.ItemsChunk; i < min((part+1)*client.ItemsChunk, p.items); i++ {
		items = append(items, api.CatalogueItem{ID: fmt.Sprint("sku", i),
			Features: api.Values{api.Number("x", float64(i))}, Revenue: new(float64(price))})
	}
	return items
}

// holds reports inconsistencies in the catalogue at a URL: a part with items of two prices or with missing items, or
// one older than the parts acknowledged before.
func (p *pusher) holds(ctx context.Context, t *testing.T, url string) (n int) {
	t.Helper()
	acknowledged := make([]int64, len(p.acknowledged))
	for part := range acknowledged {
		acknowledged[part] = p.acknowledged[part].Load()
	}
	prices := make([]map[int64]int, len(p.acknowledged))
	c := &client.Client{Base: url}
	defer c.CloseIdleConnections()
	for from, first := 0, true; first || from > 0; first = false {
		page := fatal.Or(c.Items(ctx, "home", from, 1000))(t)
		n, from = n+len(page.Items), page.Next
		for _, item := range page.Items {
			i := 0
			fatal.Or(fmt.Sscanf(item.ID, "sku%d", &i))(t)
			part := i / client.ItemsChunk
			if prices[part] == nil {
				prices[part] = map[int64]int{}
			}
			prices[part][int64(*item.Revenue)]++
		}
	}
	for part, of := range prices {
		whole := min(client.ItemsChunk, p.items-part*client.ItemsChunk)
		for price, n := range of {
			if n != whole || price < acknowledged[part] {
				t.Errorf("part %d of %d items: %d have the price %d, acknowledged is %d", part, whole, n, price,
					acknowledged[part])
			}
		}
		if len(of) == 0 && acknowledged[part] > 0 {
			t.Errorf("part %d was acknowledged and is lost", part)
		}
	}
	return n
}

// TestKillItems kills the service during a push of items: the catalogue must hold each part completely or not at
// all, acknowledged parts must stay, the pusher must continue where it was, and the state must equal a full replay's.
func TestKillItems(t *testing.T) {
	long.Test(t)
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patienceFor(*itemKills))
	defer cancel()
	file, data := serviceFile(t, "[snapshots]\nevery = \"200ms\"\n")
	p := newPusher(*killedItems)
	service := program.Serve(t, file)
	p.at(service.Listening())
	p.placement(ctx, t)
	stop := p.push(ctx)
	defer stop()
	rng := rand.New(rand.NewPCG(*killSeed, 7))
	n := 0
	for kill := range *itemKills {
		p.reaches(ctx, kill, *itemKills)
		time.Sleep(within(rng, 300*time.Millisecond))
		service.Kill()
		service = program.Serve(t, file)
		url := service.Listening()
		n = p.holds(ctx, t, url) // before the pusher knows the new address
		p.at(url)
		if t.Failed() {
			t.Fatal(service.Said())
		}
	}
	stop()
	expect.Equal(t, n, *killedItems, "items at the last start")
	service.Stop()
	program.Sound(t, data)
	held(t, fmt.Sprintf("seed %d: %d kills, %d parts acknowledged, none lost or in part, %d items at the last start",
		*killSeed, *itemKills, p.parts.Load(), n))
}
