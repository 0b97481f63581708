package demo

import "math"

// A point of a curve begins with a width in shoppers, which doubles when there are too many points.
const (
	firstWidth = 20
	maxPoints  = 100
)

// record sums what the windows of all shoppers were worth.
type record struct {
	first  int // the round of the first shopper
	width  int // shoppers of a point
	points []point
	totals []total // in the order of names
}

// point sums the expected revenues of the windows of consecutive shoppers.
type point struct {
	shoppers int
	optimum  float64
	worth    [3]float64 // in the order of names
}

// total sums the shoppers of a placement.
type total struct {
	Placement string  `json:"placement"`
	Shoppers  int     `json:"shoppers"`
	Sales     int     `json:"sales"`
	Earned    float64 `json:"earned"`
	Estimated float64 `json:"estimated"` // revenue from shoppers with a prediction
	Predicted float64 `json:"predicted"` // the predicted revenue
	More      float64 `json:"more"`      // Σ (earned − earned by chance from the same shopper)
	Squares   float64 `json:"squares"`   // Σ (earned − earned by chance from the same shopper)²
}

// newRecord begins after a number of shoppers.
func newRecord(met int) record {
	r := record{first: met + 1, width: firstWidth, totals: make([]total, len(names))}
	for i, name := range names {
		r.totals[i].Placement = name
	}
	return r
}

func (r *record) add(v *visited) {
	k := (v.Round - r.first) / r.width
	for ; k >= maxPoints; k /= 2 {
		r.merge()
	}
	for len(r.points) <= k {
		r.points = append(r.points, point{})
	}
	at := &r.points[k]
	at.shoppers++
	at.optimum += v.optimum
	chance := v.Windows[len(v.Windows)-1].earned
	for i, w := range v.Windows {
		at.worth[i] += w.worth
		t := &r.totals[i]
		t.Shoppers++
		t.Earned += w.earned
		if w.Taken != "" {
			t.Sales++
		}
		if w.predicted != nil {
			t.Estimated += w.earned
			t.Predicted += *w.predicted
		}
		more := w.earned - chance
		t.More += more
		t.Squares += more * more
	}
}

// merge joins each two points.
func (r *record) merge() {
	half := make([]point, (len(r.points)+1)/2)
	for i, p := range r.points {
		h := &half[i/2]
		h.shoppers += p.shoppers
		h.optimum += p.optimum
		for k := range p.worth {
			h.worth[k] += p.worth[k]
		}
	}
	r.points, r.width = half, 2*r.width
}

// curves are the windows' average values, by the true tastes.
type curves struct {
	Width   int         `json:"width"`  // shoppers of a point
	Rounds  []int       `json:"rounds"` // the last of each point
	Optimum []float64   `json:"optimum"`
	Worth   [][]float64 `json:"worth"` // in the order of the totals
}

// curves leaves out points at which less than half of the shoppers were served.
func (r *record) curves() curves {
	c := curves{Width: r.width, Rounds: []int{}, Optimum: []float64{}, Worth: make([][]float64, len(names))}
	for k := range c.Worth {
		c.Worth[k] = []float64{}
	}
	for i, p := range r.points {
		if 2*p.shoppers < r.width {
			continue
		}
		mean := func(sum float64) float64 { return math.Round(1000*sum/float64(p.shoppers)) / 1000 }
		c.Rounds = append(c.Rounds, r.first-1+(i+1)*r.width)
		c.Optimum = append(c.Optimum, mean(p.optimum))
		for k := range c.Worth {
			c.Worth[k] = append(c.Worth[k], mean(p.worth[k]))
		}
	}
	return c
}
