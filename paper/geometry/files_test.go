package geometry

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/paper/study"
)

// small returns a landscape with few points.
func small() *Landscape {
	box := Box{Params{-2, -1}, Params{2, 1}}
	return &Landscape{
		Constants: Constants{
			Experiment: "geometric-condition", Title: "A title", Utility: "f",
			Setting: Setting{Items: 3, Size: 2, Contexts: [2]float64{-3, 3}, Truth: Params{1, 0}, Box: box,
				Gamma: 1.5, Share: 0.5},
			ExpectedSize: 1.5,
			Condition:    Condition{Mu: 2, Tau: 0.5, Gamma: 1.5},
			Tight:        Params{0.25, 0.5},
			Global:       []Params{{1, 0}, {-1, 0}},
			Spurious:     []Minimum{{Params{0, 0.5}, 0.125}},
		},
		Slice: []Point{
			{-2, Params{-2, 0}, 3, 0.5, 1, 0.5},
			{-1, Params{-1, 0}, 0, 0, 0, 0},
			{2, Params{2, 0}, 0.123456789, 0.5, 1, 0.5},
		},
		Map: Grid{Box: box, N: 2, Value: []float64{0, 1, 2, 3}},
	}
}

// written returns a directory with the small landscape's files.
func written(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a", "b")
	fatal.If(t, small().Write(dir))
	return dir
}

func TestReadIsWhatWriteWrote(t *testing.T) {
	dir := written(t)
	expect.Equal(t, fatal.Or(Read(dir))(t), small())
}

func TestReadErrors(t *testing.T) {
	whole := fatal.Or(json.Marshal(small()))(t)
	for want, damage := range map[string]func(*Landscape){
		"a box of parameters from [0 0] to [0 0] cannot be drawn":    func(l *Landscape) { l.Setting.Box = Box{} },
		"a box of parameters from [-2 -1] to [2 1e+300] cannot be":   func(l *Landscape) { l.Setting.Box.High[1] = 1e300 },
		"0 global minima, want 2":                                    func(l *Landscape) { l.Global = nil },
		"the minimum [0 2] is outside of the box of parameters":      func(l *Landscape) { l.Spurious[0].W = Params{0, 2} },
		"the slice has no length":                                    func(l *Landscape) { l.Slice = l.Slice[:1] },
		"1e+300 is too large to be drawn":                            func(l *Landscape) { l.Slice[2].Position = 1e300 },
		"-1e+300 is too large to be drawn":                           func(l *Landscape) { l.Slice[0].Bound = -1e300 },
		"1e+299 is too large to be drawn":                            func(l *Landscape) { l.Slice[0].Loss = 1e299 },
		"1e+298 is too large to be drawn":                            func(l *Landscape) { l.Map.Value[2] = 1e298 },
		"position -2 does not follow -2":                             func(l *Landscape) { l.Slice[1].Position = -2 },
		"the loss is nowhere above 0":                                func(l *Landscape) { l.Slice[0].Loss, l.Slice[2].Loss = 0, 0 },
		"the loss is nowhere above 0; run vitrine reproduce":         func(l *Landscape) { clear(l.Map.Value) },
		"the map's 3 points are no square grid in the box":           func(l *Landscape) { l.Map.Value = l.Map.Value[1:] },
		"the map's 1 points are no square grid in the box":           func(l *Landscape) { l.Map.N, l.Map.Value = 1, l.Map.Value[:1] },
		"the map's 4 points are no square grid in the box; run vitr": func(l *Landscape) { l.Map.Box = Box{} },
	} {
		l, dir := new(Landscape), t.TempDir()
		fatal.If(t, json.Unmarshal(whole, l))
		damage(l)
		fatal.If(t, study.Write(dir, l))
		expect.Part(Read(dir))(t, filepath.Join(dir, study.RecordFile)+": "+want)
	}
	dir := written(t)
	path := filepath.Join(dir, study.RecordFile)
	fatal.If(t, os.WriteFile(path, []byte("{"), 0o644))
	expect.Message(Read(dir))(t, path+": unexpected end of JSON input; run vitrine reproduce geometric-condition again")
	fatal.If(t, os.Remove(path))
	expect.Part(Read(dir))(t, study.RecordFile)
}

func TestWriteNamesThePathThatItCannotWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	fatal.If(t, os.WriteFile(path, nil, 0o644))
	expect.Part(small().Write(path))(t, path)
}

// For any bytes, reading returns an error or a landscape that can be drawn.
func FuzzRead(f *testing.F) {
	text := fatal.Or(json.Marshal(small()))(f)
	f.Add(text)
	f.Add(text[:60])
	f.Fuzz(func(t *testing.T, text []byte) {
		l := &Landscape{}
		if json.Unmarshal(text, l) != nil || l.check() != nil {
			return
		}
		for axis, low := range l.Setting.Box.Low {
			if !(l.Setting.Box.High[axis] > low) {
				t.Fatalf("box %v", l.Setting.Box)
			}
		}
		expect.Equal(fatal.T(t), len(l.Global), 2, "global minima", l.Global)
		if !(l.Slice[len(l.Slice)-1].Position > l.Slice[0].Position) {
			t.Errorf("slice %v", l.Slice)
		}
		if l.Map.N < 2 || len(l.Map.Value) != l.Map.N*l.Map.N {
			t.Errorf("map %v", l.Map)
		}
	})
}
