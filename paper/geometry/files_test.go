package geometry

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/paper/study"
)

// small returns a landscape with few points, and numbers with nine digits.
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
	expect.Equal(t, fatal.Or(Read(dir))(t), small(), cmpopts.EquateApprox(1e-8, 0))
}

func TestReadErrors(t *testing.T) {
	const (
		slice = "position,w1,w2,loss,bound,strong_convexity,growth\n"
		plane = "w1,w2,loss\n"
	)
	for _, c := range []struct{ name, file, text, want string }{
		{"no JSON", "run.json", "{", "unexpected end of JSON input"},
		{"no box", "run.json", "{}", "a box of parameters from [0 0] to [0 0] cannot be drawn"},
		{"a huge box", "run.json", `{"setting":{"box":{"low":[0,0],"high":[1,1e300]}}}`,
			"a box of parameters from [0 0] to [1 1e+300] cannot be drawn"},
		{"no minima", "run.json", `{"setting":{"box":{"high":[1,1]}}}`, "0 global minima, want 2"},
		{
			"a minimum elsewhere", "run.json",
			`{"setting":{"box":{"high":[1,1]}},"global":[[0,0],[1,1]],"spurious":[{"w":[0,2]}]}`,
			"the minimum [0 2] is outside of the box of parameters",
		},
		{"an empty slice", "loss.csv", "", "truncated: the last line is not complete"},
		{"a slice cut short", "loss.csv", slice + "0,0,0,0,0,0,0\n1,1", "truncated: the last line is not complete"},
		{"only a header", "loss.csv", slice, "the slice has no length"},
		{"another header", "loss.csv", "a,b,c,d,e,f,g\n",
			`the header is "a,b,c,d,e,f,g", want "` + strings.TrimSpace(slice) + `"`},
		{"a short row", "loss.csv", slice + "0,0,0\n", "record on line 2: wrong number of fields"},
		{"no number", "loss.csv", slice + "0,0,0,much,0,0,0\n", `line 2: loss "much" is not a finite number`},
		{"NaN", "loss.csv", slice + "0,0,0,0,NaN,0,0\n", `line 2: bound "NaN" is not a finite number`},
		{"infinity", "loss.csv", slice + "0,0,0,0,0,0,0\n1,0,0,0,0,0,Inf\n",
			`line 3: growth "Inf" is not a finite number`},
		{"a number beyond all measure", "loss.csv", slice + "1e300,0,0,0,0,0,0\n",
			`line 2: position "1e300" is not a finite number`},
		{"a step back", "loss.csv", slice + "1,0,0,1,0,0,0\n1,0,0,1,0,0,0\n", "line 3: position 1 does not follow 1"},
		{"no loss", "loss.csv", slice + "0,0,0,0,0,0,0\n1,0,0,0,0,0,0\n", "the loss is nowhere above 0"},
		{"no square", "map.csv", plane + "-2,-1,0\n-2,1,1\n", "2 points are no square grid"},
		{"one point", "map.csv", plane + "-2,-1,0\n", "1 points are no square grid"},
		{"a point elsewhere", "map.csv", plane + "-2,-1,0\n-2,1,1\n2,-1,2\n2,0.5,3\n",
			"line 5: point (2, 0.5), want (2, 1)"},
		{"a flat map", "map.csv", plane + "-2,-1,0\n-2,1,0\n2,-1,0\n2,1,0\n", "the loss is nowhere above 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := written(t)
			path := filepath.Join(dir, c.file)
			fatal.If(t, os.WriteFile(path, []byte(c.text), 0o644))
			want := path + ": " + c.want + "; run vitrine reproduce geometric-condition again"
			expect.Message(Read(dir))(t, want)
		})
	}
}

func TestReadNamesAMissingFile(t *testing.T) {
	for _, name := range []string{"run.json", "loss.csv", "map.csv"} {
		dir := written(t)
		fatal.If(t, os.Remove(filepath.Join(dir, name)))
		expect.Part(Read(dir))(t, name)
	}
}

func TestWriteNamesThePathThatItCannotWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	fatal.If(t, os.WriteFile(path, nil, 0o644))
	expect.Part(small().Write(path))(t, path)
}

// For any bytes, decoding returns an error or a landscape that can be drawn.
func FuzzDecode(f *testing.F) {
	dir := f.TempDir()
	fatal.If(f, small().Write(dir))
	var texts [3]string
	for k, name := range []string{study.RecordFile, Mark, mapFile} {
		text := fatal.Or(os.ReadFile(filepath.Join(dir, name)))(f)
		texts[k] = string(text)
	}
	f.Add(texts[0], texts[1], texts[2])
	f.Add(texts[0][:20], texts[1][:60], texts[2][:30])
	f.Fuzz(func(t *testing.T, record, slice, plane string) {
		l := &Landscape{}
		if decodeRecord([]byte(record), l) != nil {
			return
		}
		for axis, low := range l.Setting.Box.Low {
			if !(l.Setting.Box.High[axis] > low) {
				t.Fatalf("box %v", l.Setting.Box)
			}
		}
		expect.Equal(fatal.T(t), len(l.Global), 2, "global minima", l.Global)
		if decodeSlice([]byte(slice), l) == nil && !(l.Slice[len(l.Slice)-1].Position > l.Slice[0].Position) {
			t.Errorf("slice %v", l.Slice)
		}
		if decodeMap([]byte(plane), l) == nil && (l.Map.N < 2 || len(l.Map.Value) != l.Map.N*l.Map.N) {
			t.Errorf("map %v", l.Map)
		}
	})
}
