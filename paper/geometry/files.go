package geometry

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"vitrine/internal/replace"
	"vitrine/paper/experiments"
)

// Mark is the file that marks the directory of a landscape: its slice.
const Mark = "loss.csv"

// Its other files.
const (
	recordFile = "run.json"
	mapFile    = "map.csv"
)

var (
	sliceColumns = []string{"position", "w1", "w2", "loss", "bound", "strong_convexity", "growth"}
	mapColumns   = []string{"w1", "w2", "loss"}
)

// Write makes dir and writes run.json, the constants; loss.csv, a row for each
// point of the slice; and map.csv, a row for each point of the map.
func (l *Landscape) Write(dir string) error {
	record, err := json.MarshalIndent(l.Constants, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", l.Experiment, err)
	}
	slice := line(nil, sliceColumns)
	for _, p := range l.Slice {
		slice = numbers(slice, p.Position, p.W[0], p.W[1], p.Loss, p.Bound, p.StrongConvexity, p.Growth)
	}
	points := line(nil, mapColumns)
	for i := range l.Map.N {
		for j := range l.Map.N {
			w := l.Map.Params(i, j)
			points = numbers(points, w[0], w[1], l.Map.At(i, j))
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, file := range []struct {
		name    string
		content []byte
	}{
		{Mark, slice},
		{mapFile, points},
		{recordFile, append(record, '\n')},
	} {
		if err := replace.File(filepath.Join(dir, file.name), file.content); err != nil {
			return err
		}
	}
	return nil
}

func line(dst []byte, words []string) []byte {
	return append(append(dst, strings.Join(words, ",")...), '\n')
}

// numbers appends a row with nine significant digits.
func numbers(dst []byte, values ...float64) []byte {
	for _, v := range values {
		dst = append(strconv.AppendFloat(dst, v, 'g', 9, 64), ',')
	}
	dst[len(dst)-1] = '\n'
	return dst
}

// Read reads what Write wrote. Errors name the file and, if there is one, the line.
func Read(dir string) (*Landscape, error) {
	l := &Landscape{}
	for _, file := range []struct {
		name   string
		decode func([]byte, *Landscape) error
	}{
		{recordFile, decodeRecord},
		{Mark, decodeSlice},
		{mapFile, decodeMap},
	} {
		path := filepath.Join(dir, file.name)
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if err := file.decode(text, l); err != nil {
			return nil, fmt.Errorf("%s: %w; run vitrine reproduce %s again", path, err, experiments.GeometricCondition)
		}
	}
	return l, nil
}

// A picture needs numbers that do not overflow when they are scaled, and axes
// with room for their ticks.
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

func decodeSlice(text []byte, l *Landscape) error {
	rows, err := decode(text, sliceColumns)
	if err != nil {
		return err
	}
	highest := 0.0
	for k, row := range rows {
		if k > 0 && !(row[0] > rows[k-1][0]) {
			return fmt.Errorf("line %d: position %v does not follow %v", k+2, row[0], rows[k-1][0])
		}
		l.Slice = append(l.Slice, Point{row[0], Params{row[1], row[2]}, row[3], row[4], row[5], row[6]})
		highest = max(highest, row[3])
	}
	if len(rows) < 2 || rows[len(rows)-1][0]-rows[0][0] < minExtent {
		return errors.New("the slice has no length")
	}
	return checkLoss(highest)
}

func decodeMap(text []byte, l *Landscape) error {
	rows, err := decode(text, mapColumns)
	if err != nil {
		return err
	}
	n := int(math.Round(math.Sqrt(float64(len(rows)))))
	if n < 2 || n*n != len(rows) {
		return fmt.Errorf("%d points are no square grid", len(rows))
	}
	l.Map = Grid{Box: l.Setting.Box, N: n}
	highest := 0.0
	for k, row := range rows {
		want := l.Map.Params(k/n, k%n)
		if distance(want, Params{row[0], row[1]}) > 1e-6*(1+math.Hypot(want[0], want[1])) {
			return fmt.Errorf("line %d: point (%v, %v), want (%.9g, %.9g)", k+2, row[0], row[1], want[0], want[1])
		}
		l.Map.Value = append(l.Map.Value, row[2])
		highest = max(highest, row[2])
	}
	return checkLoss(highest)
}

func checkLoss(highest float64) error {
	if highest < minExtent {
		return errors.New("the loss is nowhere above 0")
	}
	return nil
}

// decode reads rows of numbers under a header.
func decode(text []byte, columns []string) (rows [][]float64, err error) {
	if len(text) == 0 || text[len(text)-1] != '\n' {
		return nil, errors.New("truncated: the last line is not complete")
	}
	r := csv.NewReader(bytes.NewReader(text))
	r.FieldsPerRecord = len(columns)
	header, err := r.Read()
	if err != nil {
		return nil, err
	}
	if !slices.Equal(header, columns) {
		return nil, fmt.Errorf("the header is %q, want %q", strings.Join(header, ","), strings.Join(columns, ","))
	}
	for {
		fields, err := r.Read()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		row := make([]float64, len(fields))
		for k, field := range fields {
			v, err := strconv.ParseFloat(field, 64)
			if err != nil || !(math.Abs(v) <= maxCoordinate) {
				at, _ := r.FieldPos(k)
				return nil, fmt.Errorf("line %d: %s %q is not a finite number", at, columns[k], field)
			}
			row[k] = v
		}
		rows = append(rows, row)
	}
}
