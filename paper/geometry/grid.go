package geometry

import "context"

// Box is a rectangle in the parameter plane, edges included.
type Box struct {
	Low  Params `json:"low"`
	High Params `json:"high"`
}

func (b Box) contains(w Params) bool {
	return b.Low[0] <= w[0] && w[0] <= b.High[0] && b.Low[1] <= w[1] && w[1] <= b.High[1]
}

// Grid holds a function's values on n×n evenly spaced points of a box, including the corners.
type Grid struct {
	Box   Box       `json:"box"`
	N     int       `json:"n"`
	Value []float64 `json:"value"` // N·N, starting with the points with the smallest w_1
}

// sample evaluates f on a grid. If ctx ends, it stops early with the cause.
func sample(ctx context.Context, f func(Params) float64, box Box, n int) (Grid, error) {
	g := Grid{box, n, make([]float64, n*n)}
	for i := range n {
		if ctx.Err() != nil {
			return Grid{}, context.Cause(ctx)
		}
		for j := range n {
			g.Value[i*n+j] = f(g.Params(i, j))
		}
	}
	return g, nil
}

// Params returns point (i, j), 0 ≤ i, j < N.
func (g Grid) Params(i, j int) Params {
	along := func(axis, k int) float64 {
		t := float64(k) / float64(g.N-1)
		return (1-t)*g.Box.Low[axis] + t*g.Box.High[axis]
	}
	return Params{along(0, i), along(1, j)}
}

// At returns the value of point (i, j).
func (g Grid) At(i, j int) float64 { return g.Value[i*g.N+j] }

// thin keeps every k-th point; k must divide N − 1.
func (g Grid) thin(k int) Grid {
	t := Grid{Box: g.Box, N: (g.N-1)/k + 1}
	for i := range t.N {
		for j := range t.N {
			t.Value = append(t.Value, g.At(i*k, j*k))
		}
	}
	return t
}

// lowest returns the points without a lower neighbour.
func (g Grid) lowest() (found [][2]int) {
	for i := range g.N {
		for j := range g.N {
			if g.isLowest(i, j) {
				found = append(found, [2]int{i, j})
			}
		}
	}
	return found
}

func (g Grid) isLowest(i, j int) bool {
	for a := max(i-1, 0); a <= min(i+1, g.N-1); a++ {
		for b := max(j-1, 0); b <= min(j+1, g.N-1); b++ {
			if g.At(a, b) < g.At(i, j) {
				return false
			}
		}
	}
	return true
}
