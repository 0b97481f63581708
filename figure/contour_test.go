package figure

import (
	"math"
	"testing"

	"gonum.org/v1/plot/vg"
	"pgregory.net/rapid"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	_ "vitrine/internal/rapidseed"
	"vitrine/paper/geometry"
)

func place(i, j float64) vg.Point { return vg.Point{X: vg.Length(i), Y: vg.Length(j)} }

// loops returns the closed paths in a path, without their last point.
func loops(t interface{ Fatalf(string, ...any) }, path vg.Path) (all [][]vg.Point) {
	open := false
	for _, c := range path {
		switch {
		case c.Type == vg.MoveComp && !open:
			all = append(all, nil)
			open = true
			fallthrough
		case c.Type == vg.LineComp && open:
			all[len(all)-1] = append(all[len(all)-1], c.Pos)
		case c.Type == vg.CloseComp && open:
			open = false
		default:
			t.Fatalf("component %v where the path is open: %v", c.Type, open)
		}
	}
	if open {
		t.Fatalf("the last path is open")
	}
	return all
}

// winding returns how often the loops go around pt, counter-clockwise.
func winding(all [][]vg.Point, pt vg.Point) int {
	turns := 0.0
	for _, loop := range all {
		for k, p := range loop {
			p, q := p.Sub(pt), loop[(k+1)%len(loop)].Sub(pt)
			turns += math.Atan2(float64(p.X*q.Y-p.Y*q.X), float64(p.X*q.X+p.Y*q.Y))
		}
	}
	return int(math.Round(turns / (2 * math.Pi)))
}

// The paths go once around every point of the region, and around no other point: filling by winding numbers gives the
// region, with its holes.
func TestContourGoesAroundTheRegion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(3, 7).Draw(t, "points")
		g := geometry.Grid{N: n}
		for range n * n {
			g.Value = append(g.Value, rapid.Float64Range(0, 1).Draw(t, "value"))
		}
		all := loops(t, contour(g, 0.5, place))
		for i := 1; i < n-1; i++ { // paths run through points on the border
			for j := 1; j < n-1; j++ {
				if math.Abs(g.At(i, j)-0.5) < 1e-6 {
					continue
				}
				want := 0
				if g.At(i, j) >= 0.5 {
					want = 1
				}
				if got := winding(all, place(float64(i), float64(j))); got != want {
					t.Fatalf("the contour goes %d times around (%d, %d), where the value is %v", got, i, j, g.At(i, j))
				}
			}
		}
	})
}

// A ring gives an outer and an inner circle, with the area between them.
func TestContourOfARing(t *testing.T) {
	const n, outer, inner = 101, 40., 20.
	g := geometry.Grid{N: n}
	for k := range n * n {
		r := math.Hypot(float64(k/n-50), float64(k%n-50))
		g.Value = append(g.Value, -math.Abs(r-(outer+inner)/2))
	}
	all := loops(t, contour(g, -(outer-inner)/2, place))
	expect.Equal(fatal.T(t), len(all), 2, "paths")
	area := 0.0
	for _, loop := range all {
		for k, p := range loop {
			q := loop[(k+1)%len(loop)]
			area += float64(p.X*q.Y-p.Y*q.X) / 2
			if r := math.Hypot(float64(p.X-50), float64(p.Y-50)); math.Abs(r-outer) > 0.02 && math.Abs(r-inner) > 0.02 {
				t.Errorf("a point at distance %v, want %v or %v", r, outer, inner)
			}
		}
	}
	if want := math.Pi * (outer*outer - inner*inner); math.Abs(area/want-1) > 1e-3 {
		t.Errorf("area %v, want %v", area, want)
	}
}

func TestContourOfEverythingAndNothing(t *testing.T) {
	g := geometry.Grid{N: 3, Value: []float64{1, 2, 3, 4, 5, 6, 7, 8, 9}}
	expect.Equal(t, len(loops(t, contour(g, 10, place))), 0, "paths around")
	all := loops(t, contour(g, 0, place))
	if len(all) != 1 || winding(all, place(1, 1)) != 1 {
		t.Errorf("paths %v, want one around the grid", all)
	}
}
