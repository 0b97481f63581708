package geometry

import (
	"context"
	"fmt"
	"math"

	"vitrine/env"
	"vitrine/paper/experiments"
)

// Title is the title of the figure.
const Title = "A non-convex loss under the generalized geometric condition"

// Setting is a world with one feature, the box of parameters, and the choices for [Fit].
type Setting struct {
	Items    int        `json:"items"`    // N
	Size     int        `json:"size"`     // K
	Contexts [2]float64 `json:"contexts"` // x ~ U[low, high]
	Truth    Params     `json:"truth"`    // w*
	Box      Box        `json:"box"`      // 𝒲, at most one period of w_2 high
	Gamma    float64    `json:"gamma"`
	Share    float64    `json:"share"` // μ as a share of the curvature at W*
}

// Figure is the setting for the paper's figure: its N, K and uniform contexts at d = 1, and frequencies up to 5, for
// which the loss has spurious minima on both sides of w*.
var Figure = Setting{
	Items:    100,
	Size:     5,
	Contexts: [2]float64{-3, 3},
	Truth:    Params{3, 0.5},
	Box:      Box{Params{-5, -math.Pi / 2}, Params{5, 3 * math.Pi / 2}},
	Gamma:    1,
	Share:    0.5,
}

// Constants is the content of run.json.
type Constants struct {
	Experiment   string    `json:"experiment"`
	Title        string    `json:"title"`
	Utility      string    `json:"utility"`
	Setting      Setting   `json:"setting"`
	ExpectedSize float64   `json:"expected_size"` // E|S|
	Condition    Condition `json:"condition"`
	Tight        Params    `json:"tight"`    // where τ is tight
	Global       []Params  `json:"global"`   // W*, two points
	Spurious     []Minimum `json:"spurious"` // other local minima, lowest first
}

// Point is a row in loss.csv, on the line through two global minima.
type Point struct {
	Position        float64 `json:"position"` // along the line, from half way between the minima
	W               Params  `json:"w"`
	Loss            float64 `json:"loss"`             // ℓ_sq(w)
	Bound           float64 `json:"bound"`            // smaller of the two terms
	StrongConvexity float64 `json:"strong_convexity"` // μ/2 dist(w, W*)²
	Growth          float64 `json:"growth"`           // τ/2 dist(w, W*)^γ
}

// Landscape is the loss and its lower bound as drawn.
type Landscape struct {
	Constants
	Slice []Point `json:"slice"`
	Map   Grid    `json:"map"`
}

// Numbers of points: on the grid for finding constants and minima, on the part of it that is kept, and on the slice.
const (
	fine    = 481
	thinned = 4 // 121 points per axis
	along   = 401
)

// Survey computes a setting's landscape. It stops early when ctx ends. It is an error if the minima found at loss 0 are
// not exactly the two that [Equivalents] returns, or if [Fit] fails.
func Survey(ctx context.Context, s Setting) (*Landscape, error) {
	size := ExpectedSize(s.Items, s.Size)
	l := NewLoss(s.Truth, env.Uniform{Low: s.Contexts[0], High: s.Contexts[1]}, size)
	g, err := sample(ctx, l.At, s.Box, fine)
	if err != nil {
		return nil, err
	}
	minima, err := Minima(ctx, l, g)
	if err != nil {
		return nil, err
	}
	global := Equivalents(s.Truth, s.Box)
	spurious, err := separate(minima, global)
	if err != nil {
		return nil, err
	}
	condition, tight, err := Fit(ctx, l, g, global, s.Gamma, s.Share)
	if err != nil {
		return nil, err
	}
	return &Landscape{
		Constants: Constants{
			Experiment: experiments.GeometricCondition, Title: Title, Utility: "sin(w_1 x + w_2)",
			Setting: s, ExpectedSize: size, Condition: condition,
			Tight: tight.decimals(), Global: global, Spurious: spurious,
		},
		Slice: slice(l, condition, s.Box, global),
		Map:   g.thin(thinned),
	}, nil
}

// separate returns the minima that are not global, and checks that the minima with loss 0 are exactly W*.
func separate(minima []Minimum, global []Params) (spurious []Minimum, err error) {
	found := 0
	for _, m := range minima {
		switch {
		case m.Loss > 0:
			spurious = append(spurious, m)
		case Distance(m.W, global) < spacing:
			found++
		default:
			return nil, fmt.Errorf("geometry: the loss is %.2g at %.4g, which is no symmetry of w*", m.Loss, m.W)
		}
	}
	if len(global) != 2 || found != 2 {
		return nil, fmt.Errorf("geometry: symmetry has %d global minima in the box and a search %d, want 2",
			len(global), found)
	}
	return spurious, nil
}

// slice follows the line through the two global minima from one edge of the box to the other.
func slice(l *Loss, c Condition, box Box, global []Params) []Point {
	var middle, direction Params
	r := distance(global[0], global[1])
	for axis := range middle {
		middle[axis] = (global[0][axis] + global[1][axis]) / 2
		direction[axis] = (global[0][axis] - global[1][axis]) / r
	}
	first, last := math.Inf(-1), math.Inf(1)
	for axis, d := range direction {
		if d == 0 {
			continue
		}
		low, high := (box.Low[axis]-middle[axis])/d, (box.High[axis]-middle[axis])/d
		first, last = max(first, min(low, high)), min(last, max(low, high))
	}
	points := make([]Point, along)
	for k := range points {
		p := &points[k]
		p.Position = first + (last-first)*float64(k)/(along-1)
		for axis := range p.W {
			p.W[axis] = middle[axis] + p.Position*direction[axis]
		}
		r := Distance(p.W, global)
		p.Loss, p.Bound = l.At(p.W), c.Bound(r)
		p.StrongConvexity, p.Growth = c.StrongConvexity(r), c.Growth(r)
	}
	return points
}
