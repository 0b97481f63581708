package geometry

import (
	"errors"
	"fmt"
	"slices"

	"vitrine/paper/experiments"
	"vitrine/paper/study"
)

// Mark is the file that marks a landscape's directory: its slice.
const Mark = "loss.csv"

const mapFile = "map.csv"

// mapPoint is a row in map.csv.
type mapPoint struct {
	W    Params  `json:"w"`
	Loss float64 `json:"loss"`
}

// Write makes dir and writes run.json with the constants; loss.csv with a row per point of the slice; and map.csv with
// a row per point of the map.
func (l *Landscape) Write(dir string) error {
	var points []mapPoint
	for i := range l.Map.N {
		for j := range l.Map.N {
			points = append(points, mapPoint{l.Map.Params(i, j), l.Map.At(i, j)})
		}
	}
	return study.Write(dir, l, study.File{Name: Mark, Content: study.Encode(l.Slice)},
		study.File{Name: mapFile, Content: study.Encode(points)})
}

// Read reads run.json. Errors name the file.
func Read(dir string) (*Landscape, error) {
	l := &Landscape{}
	if err := study.Read(dir, experiments.GeometricCondition, l, l.check); err != nil {
		return nil, err
	}
	return l, nil
}

// A picture needs numbers that do not overflow when scaled, and axes with room for their ticks.
const (
	maxCoordinate = 1e9
	minExtent     = 1e-9
)

// check returns an error if the landscape cannot be drawn.
func (l *Landscape) check() error {
	box := l.Setting.Box
	for axis, low := range box.Low {
		if high := box.High[axis]; high-low < minExtent || max(-low, high) > maxCoordinate {
			return fmt.Errorf("a box of parameters from %v to %v cannot be drawn", box.Low, box.High)
		}
	}
	if len(l.Global) != 2 {
		return fmt.Errorf("%d global minima, want 2", len(l.Global))
	}
	minima := slices.Clone(l.Global)
	for _, m := range l.Spurious {
		minima = append(minima, m.W)
	}
	for _, w := range minima {
		if !box.contains(w) {
			return fmt.Errorf("the minimum %v is outside of the box of parameters", w)
		}
	}
	if n := l.Map.N; n < 2 || n > len(l.Map.Value) || n*n != len(l.Map.Value) || l.Map.Box != box {
		return fmt.Errorf("the map's %d points are no square grid in the box", len(l.Map.Value))
	}
	var losses []float64
	for k, p := range l.Slice {
		if k > 0 && !(p.Position > l.Slice[k-1].Position) {
			return fmt.Errorf("position %v does not follow %v", p.Position, l.Slice[k-1].Position)
		}
		if err := study.Drawable(p.Position, p.Bound, p.StrongConvexity, p.Growth); err != nil {
			return err
		}
		losses = append(losses, p.Loss)
	}
	if n := len(l.Slice); n < 2 || l.Slice[n-1].Position-l.Slice[0].Position < minExtent {
		return errors.New("the slice has no length")
	}
	if min(slices.Max(losses), slices.Max(l.Map.Value)) < minExtent {
		return errors.New("the loss is nowhere above 0")
	}
	return study.Drawable(append(losses, l.Map.Value...)...)
}
