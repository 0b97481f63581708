package geometry

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
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
	return study.Write(dir, l.Constants, study.File{Name: Mark, Content: study.Encode(l.Slice)},
		study.File{Name: mapFile, Content: study.Encode(points)})
}

// Read reads the files that Write wrote. Errors name the file and, if known, the line.
func Read(dir string) (*Landscape, error) {
	l := &Landscape{}
	decode := func(f func([]byte, *Landscape) error) func([]byte) error {
		return func(text []byte) error { return f(text, l) }
	}
	err := study.Read(dir, experiments.GeometricCondition,
		study.File{Name: study.RecordFile, Decode: decode(decodeRecord)},
		study.File{Name: Mark, Decode: decode(decodeSlice)},
		study.File{Name: mapFile, Decode: decode(decodeMap)})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// A picture needs numbers that do not overflow when scaled, and axes with room for their ticks.
const (
	maxCoordinate = 1e9
	minExtent     = 1e-9
)

func decodeRecord(text []byte, l *Landscape) error {
	if err := json.Unmarshal(text, &l.Constants); err != nil {
		return err
	}
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
	return nil
}

func decodeSlice(text []byte, l *Landscape) (err error) {
	if l.Slice, err = study.Decode[Point](text); err != nil {
		return err
	}
	highest := 0.0
	for k, p := range l.Slice {
		if k > 0 && !(p.Position > l.Slice[k-1].Position) {
			return fmt.Errorf("line %d: position %v does not follow %v", k+2, p.Position, l.Slice[k-1].Position)
		}
		highest = max(highest, p.Loss)
	}
	if n := len(l.Slice); n < 2 || l.Slice[n-1].Position-l.Slice[0].Position < minExtent {
		return errors.New("the slice has no length")
	}
	return checkLoss(highest)
}

func decodeMap(text []byte, l *Landscape) error {
	points, err := study.Decode[mapPoint](text)
	if err != nil {
		return err
	}
	n := int(math.Round(math.Sqrt(float64(len(points)))))
	if n < 2 || n*n != len(points) {
		return fmt.Errorf("%d points are no square grid", len(points))
	}
	l.Map = Grid{Box: l.Setting.Box, N: n}
	highest := 0.0
	for k, p := range points {
		want := l.Map.Params(k/n, k%n)
		if distance(want, p.W) > 1e-6*(1+math.Hypot(want[0], want[1])) {
			return fmt.Errorf("line %d: point (%v, %v), want (%.9g, %.9g)", k+2, p.W[0], p.W[1], want[0], want[1])
		}
		l.Map.Value = append(l.Map.Value, p.Loss)
		highest = max(highest, p.Loss)
	}
	return checkLoss(highest)
}

func checkLoss(highest float64) error {
	if highest < minExtent {
		return errors.New("the loss is nowhere above 0")
	}
	return nil
}
