package experiment

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

func TestUnitRoundTrip(t *testing.T) {
	u := &unit{Fingerprint: "f", Policy: "p", Seed: 1<<63 + 1, Seconds: 0.25,
		Diagnostics: map[string]float64{"kappa": 1e-9}, Regret: []float64{0, 0.1, 1.0 / 3}}
	line := fatal.Or(encodeUnit(u))(t)
	got := fatal.Or(decodeUnit(bytes.TrimSuffix(line, []byte("\n"))))(t)
	expect.Equal(t, got, u, cmp.AllowUnexported(unit{}), cmpopts.IgnoreFields(unit{}, "policy"))
}

// After a failed append, later ones fail too, so that no unit follows a torn one.
func TestJournalStopsAtAFailedAppend(t *testing.T) {
	dir := t.TempDir()
	j, err := openJournal(dir, func(string) {})
	fatal.If(t, err)
	defer j.close()
	whole := j.file
	path := filepath.Join(dir, "runs.jsonl")
	if j.file, err = os.Open(path); err != nil { // read-only: appending fails
		t.Fatal(err)
	}
	first := j.append(&unit{Policy: "p"})
	if first == nil || !strings.Contains(first.Error(), path) {
		t.Errorf("error %v, want one that names %s", first, path)
	}
	j.file.Close()
	j.file = whole
	expect.Error(t, j.append(&unit{Policy: "p"}), first)
}

// regret.csv is written piece by piece: a long experiment does not need its text in memory.
func TestRegretIsNotHeldAsText(t *testing.T) {
	u := &unit{Policy: "p", Regret: make([]float64, 200_000)}
	for i := range u.Regret {
		u.Regret[i] = math.Sqrt(float64(i))
	}
	e := &Experiment{Name: "e", Rounds: len(u.Regret), Seeds: []uint64{0}, Policies: []Policy{{Label: "p"}}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fatal.Or(e.write(t.TempDir(), []*unit{u}, nil))(t)
	runtime.ReadMemStats(&after)
	if a := (after.TotalAlloc - before.TotalAlloc) / uint64(e.Rounds); a > 8 {
		t.Errorf("writing allocated %d bytes a round", a)
	}
}

// Reading never panics, and never accepts a damaged line.
func FuzzReadJournal(f *testing.F) {
	line := fatal.Or(encodeUnit(&unit{Fingerprint: "f", Policy: "p", Regret: []float64{1, 2}}))(f)
	f.Add(line)
	f.Add(append(bytes.Repeat(line, 2), line[:10]...))
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		damaged := 0
		var sound []byte
		fatal.If(t, scanJournal(bytes.NewReader(data), func(u *unit, line []byte) error {
			fatal.Or(encodeUnit(u))(t)
			sound = append(sound, line...)
			return nil
		}, func(int, string) { damaged++ }))
		if damaged == 0 && !bytes.Equal(sound, data) || len(sound) > 0 && sound[len(sound)-1] != '\n' {
			t.Fatalf("%d sound bytes of %d, %d damaged lines", len(sound), len(data), damaged)
		}
	})
}
