package load

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"vitrine"
	"vitrine/env"
	"vitrine/internal/stream"
	"vitrine/service/client"
	"vitrine/utility"
)

// offers is how many sets of candidates there are. They are encoded before the run.
const offers = 64

// world are a catalogue of four times the items of a request, sets of candidates of it, and what customers
// think of them: a linear utility that is hidden from the service. It has the mean −2 and the standard
// deviation 1 over items, by which about half of the customers buy from 5 that are drawn uniformly.
type world struct {
	seed      uint64
	utilities map[string]float64 // by item
	requests  []*client.Prepared
}

func newWorld(o *Options) (*world, error) {
	rng := stream.New(o.Seed, 0, stream.World)
	n := 4 * o.Items
	most := math.Sqrt(3 / float64(o.Features)) // of d uniform weights: their squares sum to 1 in the mean
	catalogue := &env.World{
		Items: n, Contexts: env.Gaussian{}, Revenues: env.UniformRevenue{Low: 0.5, High: 1},
		Truth: env.NewFamily(utility.NewLinear(o.Features, false), -most, most, rng),
	}
	x := catalogue.Context(rng)
	for i, v := range x.Features.RawMatrix().Data {
		x.Features.RawMatrix().Data[i] = rounded(v) // as a shop writes them
	}
	u := make([]float64, n)
	catalogue.Utilities(u, x)
	w := &world{seed: o.Seed, utilities: map[string]float64{}}
	for i := range u {
		x.Revenue[i] = rounded(x.Revenue[i])
		w.utilities[itemName(i)] = u[i] - 2
	}
	for range offers {
		items := rng.Perm(n)[:o.Items]
		slices.Sort(items)
		p, err := prepare(o, x, items)
		if err != nil {
			return nil, err
		}
		w.requests = append(w.requests, p)
	}
	return w, nil
}

func rounded(v float64) float64 { return math.Round(v*1e6) / 1e6 }

func itemName(i int) string { return "item-" + strconv.Itoa(i) }

func featureName(j int) string { return fmt.Sprintf("x%d", j) }

// prepare encodes a request for some items of the catalogue.
func prepare(o *Options, x *vitrine.Context, items []int) (*client.Prepared, error) {
	if o.Binary {
		r := client.Flat{Size: o.Size}
		for _, i := range items {
			r.Items = append(r.Items, itemName(i))
			r.Numbers = append(r.Numbers, x.Features.RawRowView(i)...)
			r.Revenues = append(r.Revenues, x.Revenue[i])
		}
		return r.Prepare(), nil
	}
	r := client.Request{Size: o.Size}
	for _, i := range items {
		item := client.Item{ID: itemName(i), Features: map[string]any{}, Revenue: &x.Revenue[i]}
		for j, v := range x.Features.RawRowView(i) {
			item.Features[featureName(j)] = v
		}
		r.Items = append(r.Items, item)
	}
	return r.Prepare()
}

// customers are those of one connection. Who comes in a round, and what they would take of
// a set, is the same in every run with the seed.
type customers struct {
	*world
	draws      stream.Stream
	utility, p []float64
}

// request returns what the customer of a round is to be offered.
func (c *customers) request(round int) *client.Prepared {
	return c.requests[c.draws.At(c.seed, round, stream.Contexts).IntN(len(c.requests))]
}

// choose returns what the customer of a round takes, "" for nothing, and whether anybody tells.
func (c *customers) choose(round int, shown []string, told float64) (item string, tell bool) {
	rng := c.draws.At(c.seed, round, stream.Customers)
	tell = rng.Float64() < told
	c.utility, c.p = c.utility[:0], append(c.p[:0], 0)
	for _, id := range shown {
		c.utility, c.p = append(c.utility, c.utilities[id]), append(c.p, 0)
	}
	vitrine.Probabilities(c.p, c.utility)
	v := rng.Float64()
	for k, p := range c.p {
		if v -= p; v < 0 {
			if k > 0 {
				item = shown[k-1]
			}
			break
		}
	}
	return item, tell
}
