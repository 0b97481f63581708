package figure

import (
	"math"

	"gonum.org/v1/plot/vg"

	"vitrine/paper/geometry"
)

// contour returns the edges of {w : f(w) ≥ level} as closed paths with the region on their left, by marching squares: f
// is treated as linear along a cell edge that leaves the region. Points outside the grid never belong to the region, so
// a path that meets the border follows it. place maps grid coordinates to the page.
func contour(g geometry.Grid, level float64, place func(i, j float64) vg.Point) (path vg.Path) {
	m := marching{g, level, map[crossing]crossing{}}
	var starts []crossing
	for i := -1; i < g.N; i++ {
		for j := -1; j < g.N; j++ {
			starts = append(starts, m.cell(i, j)...)
		}
	}
	for _, start := range starts {
		if _, open := m.next[start]; !open {
			continue
		}
		for at := start; ; {
			pt := place(m.where(at))
			if at == start {
				path.Move(pt)
			} else {
				path.Line(pt)
			}
			next := m.next[at]
			delete(m.next, at)
			if at = next; at == start {
				break
			}
		}
		path.Close()
	}
	return path
}

// marching is a contour under construction. It maps each crossing of a grid edge to the path's next crossing.
type marching struct {
	geometry.Grid
	level float64
	next  map[crossing]crossing
}

// crossing is the edge between two neighbouring points; the first one is in the region.
type crossing struct{ in, out [2]int }

func (m marching) inside(p [2]int) bool {
	i, j := p[0], p[1]
	return i >= 0 && j >= 0 && i < m.N && j < m.N && m.At(i, j) >= m.level
}

// cell links the crossings of the cell with lower corner (i, j) and returns the ones at which a path enters it.
// Counter-clockwise around the cell, a path enters where the region begins and leaves where it next ends. This
// separates two opposite corners.
func (m marching) cell(i, j int) (entries []crossing) {
	corners := [4][2]int{{i, j}, {i + 1, j}, {i + 1, j + 1}, {i, j + 1}}
	for k, p := range corners {
		q := corners[(k+1)%4]
		if !m.inside(p) || m.inside(q) {
			continue
		}
		entry := crossing{p, q}
		for back := 3; ; back-- { // back to where the region around p begins
			p, q := corners[(k+back)%4], corners[(k+back+1)%4]
			if !m.inside(p) {
				m.next[entry] = crossing{q, p}
				break
			}
		}
		entries = append(entries, entry)
	}
	return entries
}

// where returns the grid coordinates of a crossing.
func (m marching) where(c crossing) (i, j float64) {
	p, q := c.in, c.out
	if min(q[0], q[1]) < 0 || max(q[0], q[1]) >= m.N {
		return float64(p[0]), float64(p[1])
	}
	a, b := m.At(p[0], p[1]), m.At(q[0], q[1])
	t := 0.0
	if a > b && !math.IsInf(a-b, 1) {
		t = (a - m.level) / (a - b)
	}
	return float64(p[0]) + t*float64(q[0]-p[0]), float64(p[1]) + t*float64(q[1]-p[1])
}
