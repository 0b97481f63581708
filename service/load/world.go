package load

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"vitrine"
	"vitrine/env"
	"vitrine/internal/scratch"
	"vitrine/internal/stream"
	"vitrine/service/api"
	"vitrine/service/client"
	"vitrine/utility"
)

// numSets is the number of sets of candidates. They are encoded before the run.
const numSets = 64

// world is a catalogue with four times the items of a request, sets of candidates drawn from it, and the shoppers'
// utilities, which are linear in the features and hidden from the service. Over items their mean is −2 and their
// standard deviation 1, so that about half of the shoppers buy if they see 5 items drawn uniformly.
type world struct {
	seed      uint64
	items     *vitrine.Context
	utilities []float64 // of the items
	sets      []candidates
}

// candidates is a request for some of the items.
type candidates struct {
	request *client.Prepared
	shift   float64 // of the utilities, by the user
}

func newWorld(o *Options) (*world, error) {
	rng := stream.New(o.Seed, 0, stream.World)
	n := 4 * o.Items
	if o.Catalogue {
		n = o.Items
	}
	bound := math.Sqrt(3 / float64(o.Features)) // d weights uniform in ±bound: E Σ w² = 1
	catalogue := &env.World{
		Items: n, Contexts: env.Gaussian{}, Revenues: env.UniformRevenue{Low: 0.5, High: 1},
		Truth: env.NewFamily(utility.NewLinear(o.Features, false), -bound, bound, rng),
	}
	x := catalogue.Context(rng)
	for i, v := range x.Features.RawMatrix().Data {
		x.Features.RawMatrix().Data[i] = rounded(v) // shops send few digits
	}
	u := make([]float64, n)
	catalogue.Utilities(u, x)
	for i := range u {
		x.Revenue[i] = rounded(x.Revenue[i])
	}
	w := &world{seed: o.Seed, items: x, utilities: u}
	if o.Catalogue {
		return w, w.stock(o, rng)
	}
	for range numSets {
		items := rng.Perm(n)[:o.Items]
		slices.Sort(items)
		p, err := prepare(o, x, items)
		if err != nil {
			return nil, err
		}
		w.sets = append(w.sets, candidates{p, meanUtility})
	}
	return w, nil
}

// meanUtility is the mean of the utilities over the items.
const meanUtility = -2

func rounded(v float64) float64 { return math.Round(v*1e6) / 1e6 }

const itemPrefix = "item-"

func itemName(i int) string { return itemPrefix + strconv.Itoa(i) }

func featureName(j int) string { return fmt.Sprintf("x%d", j) }

// prepare encodes a request for some items of the catalogue.
func prepare(o *Options, x *vitrine.Context, items []int) (*client.Prepared, error) {
	r := api.Request{MaxSize: o.Size}
	for _, i := range items {
		item := api.Item{ID: itemName(i), Revenue: &x.Revenue[i]}
		for j, v := range x.Features.RawRowView(i) {
			item.Features = append(item.Features, api.Number(featureName(j), v))
		}
		r.Items = append(r.Items, item)
	}
	return client.Prepare(&r)
}

// shoppers are the shoppers of one connection. The shopper of a round and its choices are the same in
// every run with the same seed.
type shoppers struct {
	*world
	draws   stream.Stream
	shopper env.Shopper
	places  vitrine.Assortment
}

func (c *shoppers) candidates(round int) *candidates {
	return &c.sets[c.draws.At(c.seed, round, stream.Contexts).IntN(len(c.sets))]
}

// choose returns the item that the shopper of a round takes from those shown, or "", and whether the outcome is
// reported, with the given probability.
func (c *shoppers) choose(round int, shown []string, reported float64) (item string, report bool) {
	set, rng := c.candidates(round), c.draws.At(c.seed, round, stream.Customers)
	report = rng.Float64() < reported
	u := scratch.Grow(c.shopper.Utilities, len(shown))
	c.places = c.places[:0]
	for k, id := range shown {
		i, err := strconv.Atoi(strings.TrimPrefix(id, itemPrefix))
		if err != nil || i < 0 || i >= len(c.utilities) {
			return "", report // an item put by another caller
		}
		u[k] = c.utilities[i] + set.shift
		c.places = append(c.places, k)
	}
	c.shopper.Utilities = u
	c.shopper.Draw(len(shown), rng)
	if k := c.shopper.Choose(c.places); k != vitrine.Outside {
		item = shown[c.places[k-1]]
	}
	return item, report
}

// stock makes the requests of a world with items in the service's catalogue: they carry a user's features.
func (w *world) stock(o *Options, rng *rand.Rand) error {
	weights := make([]float64, o.User)
	for j := range weights {
		weights[j] = 0.5 * rng.NormFloat64() / math.Sqrt(float64(o.User))
	}
	for range numSets {
		set := candidates{shift: meanUtility}
		r := &api.Request{MaxSize: o.Size}
		for j, weight := range weights {
			v := rounded(rng.NormFloat64())
			r.User = append(r.User, api.Number(userName(j), v))
			set.shift += weight * v
		}
		var err error
		if set.request, err = client.Prepare(r); err != nil {
			return err
		}
		w.sets = append(w.sets, set)
	}
	return nil
}

func userName(j int) string { return fmt.Sprintf("u%d", j) }

// push puts the items into the catalogue, unless it already holds as many. If it holds more, push returns an error: the
// service would show these too, and the shoppers take only items that they know.
func (w *world) push(ctx context.Context, c *client.Client, o *Options) error {
	stats, err := c.Stats(ctx, o.Placement)
	if err != nil || stats.Items == o.Items {
		return err
	}
	if stats.Items > o.Items {
		return fmt.Errorf("placement %q: %w: its catalogue holds %d items, and the shoppers know only %d", o.Placement,
			ErrPlacement, stats.Items, o.Items)
	}
	if o.Note != nil {
		o.Note(fmt.Sprintf("putting %d items into the catalogue of %q", o.Items, o.Placement))
	}
	items := make([]api.CatalogueItem, 0, client.ItemsChunk)
	for i := range o.Items {
		item := api.CatalogueItem{ID: itemName(i), Revenue: &w.items.Revenue[i]}
		for j, v := range w.items.Features.RawRowView(i) {
			item.Features = append(item.Features, api.Number(featureName(j), v))
		}
		if items = append(items, item); len(items) == cap(items) || i == o.Items-1 {
			if _, err := c.PutItems(ctx, o.Placement, items); err != nil {
				return fmt.Errorf("the items cannot be put into the catalogue of %q: %w", o.Placement, err)
			}
			items = items[:0]
		}
	}
	return nil
}
