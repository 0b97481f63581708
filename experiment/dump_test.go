package experiment_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/env"
	"vitrine/experiment"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/stream"
	"vitrine/utility"
)

// array is the content of a .npy file.
type array struct {
	dtype string
	shape []int
	data  []byte
}

func (a array) float(i int) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(a.data[8*i:]))
}
func (a array) integer(i int) int { return int(int64(binary.LittleEndian.Uint64(a.data[8*i:]))) }

var npyText = regexp.MustCompile(`^\{'descr': '(<[fi]8)', 'fortran_order': False, 'shape': \(((?:\d+,)+)\), \} *\n$`)

// readNPZ reads an archive according to NumPy's format description, NEP 1.
func readNPZ(t *testing.T, path string) map[string]array {
	t.Helper()
	archive := fatal.Or(zip.OpenReader(path))(t)
	defer archive.Close()
	arrays := map[string]array{}
	for _, f := range archive.File {
		r := fatal.Or(f.Open())(t)
		content := fatal.Or(io.ReadAll(r))(t)
		if f.Method != zip.Store || !strings.HasSuffix(f.Name, ".npy") ||
			!bytes.HasPrefix(content, []byte("\x93NUMPY\x01\x00")) {
			t.Fatalf("%s is not a stored array of NPY 1.0", f.Name)
		}
		start := 10 + int(binary.LittleEndian.Uint16(content[8:]))
		m := npyText.FindSubmatch(content[10:start])
		if m == nil || start%64 != 0 {
			t.Fatalf("%s has the header %q, and its data begins at byte %d", f.Name, content[10:start], start)
		}
		a := array{dtype: string(m[1]), data: content[start:]}
		entries := 1
		for dim := range strings.SplitSeq(strings.TrimSuffix(string(m[2]), ","), ",") {
			n, _ := strconv.Atoi(dim)
			a.shape = append(a.shape, n)
			entries *= n
		}
		if len(a.data) != 8*entries {
			t.Fatalf("%s has %d bytes for the shape %v", f.Name, len(a.data), a.shape)
		}
		arrays[strings.TrimSuffix(f.Name, ".npy")] = a
	}
	return arrays
}

func dump(t *testing.T, e *experiment.Experiment, workers int) string {
	t.Helper()
	dir := t.TempDir()
	fatal.If(t, experiment.Dump(t.Context(), e, experiment.Options{Dir: dir, Workers: workers}))
	return filepath.Join(dir, e.Name)
}

// Replaying a policy from the dump's offers, utilities, shocks and optimum gives the dump's choices and Run's regret.
func TestDumpReplaysToTheRegretOfRun(t *testing.T) {
	e := small(policy("random", random()), policy("first", first()))
	out := t.TempDir()
	run(t, e, experiment.Options{Dir: out})
	played := fatal.Or(experiment.Results(t.Context(), e, experiment.Options{Dir: out}))(t)
	dir := dump(t, e, 2)
	sizes := map[int]bool{}
	for _, p := range played {
		z := readNPZ(t, filepath.Join(dir, fmt.Sprintf("seed-%d.npz", p.Seed)))
		u, r, shock, optimum := z["utilities"], z["revenues"], z["shocks"], z["optimum"]
		offers, choices, regret := z[p.Policy+".offers"], z[p.Policy+".choices"], z[p.Policy+".regret"]
		n, m, total := u.shape[1], offers.shape[1], 0.0
		for round := range e.Rounds {
			choice, largest := 0, shock.float(round*(n+1))
			revenue, sum, size := 0.0, 1.0, 0
			for k := range m {
				i := offers.integer(round*m + k)
				if i == -1 {
					break
				}
				size++
				at := round*n + i
				if v := u.float(at) + shock.float(round*(n+1)+i+1); v > largest {
					choice, largest = k+1, v
				}
				revenue += math.Exp(u.float(at)) * r.float(at)
				sum += math.Exp(u.float(at))
			}
			sizes[size] = true
			total += optimum.float(round) - revenue/sum
			if got := choices.integer(round); got != choice {
				t.Fatalf("%s, seed %d, round %d: choice %d, and by the shocks it is %d",
					p.Policy, p.Seed, round+1, got, choice)
			}
			if math.Abs(total-p.Regret[round]) > 1e-12 || regret.float(round) != p.Regret[round] {
				t.Fatalf("%s, seed %d, round %d: regret %v by the arrays, %v in the dump, %v in Run",
					p.Policy, p.Seed, round+1, total, regret.float(round), p.Regret[round])
			}
		}
	}
	if !sizes[1] || !sizes[size] {
		t.Errorf("offers of sizes %v: the filling was not tried", sizes)
	}
}

// The arrays are the draws at the addresses that experiments use, bit for bit.
func TestDumpHasTheStreamsOfAnExperiment(t *testing.T) {
	e := small()
	e.Seeds = []uint64{3}
	z := readNPZ(t, filepath.Join(dump(t, e, 1), "seed-3.npz"))
	world := e.World(stream.New(3, 0, stream.World))
	u := make([]float64, 8)
	for round := 1; round <= e.Rounds; round++ {
		x := world.Context(stream.New(3, round, stream.Contexts))
		world.Utilities(u, x)
		customers := stream.New(3, round, stream.Customers)
		_, optimum := assortment.Maximize(nil, e.Constraint, u, x.Revenue)
		var want []float64
		want = append(want, x.Features.RawMatrix().Data...)
		want = append(append(append(want, x.Revenue...), u...), optimum)
		for range 9 {
			want = append(want, -math.Log(customers.ExpFloat64()))
		}
		var got []float64
		for _, part := range []struct {
			name string
			n    int
		}{{"features", 16}, {"revenues", 8}, {"utilities", 8}, {"optimum", 1}, {"shocks", 9}} {
			for i := range part.n {
				got = append(got, z[part.name].float((round-1)*part.n+i))
			}
		}
		expect.List(fatal.T(t), got, want, "round", round)
	}
	shapes := map[string][]int{}
	for name, a := range z {
		expect.Equal(t, a.dtype, "<f8", name, "is of")
		shapes[name] = a.shape
	}
	want := map[string][]int{"features": {120, 8, 2}, "revenues": {120, 8}, "utilities": {120, 8}, "shocks": {120, 9},
		"optimum": {120}}
	expect.Equal(t, shapes, want, "shapes")
}

// Nil revenues are written as 1 each.
func TestDumpWritesEqualRevenues(t *testing.T) {
	e := small()
	e.World = func(rng *rand.Rand) env.Environment {
		return &env.World{
			Items: 2, Contexts: env.Gaussian{}, Revenues: env.One{},
			Truth: env.NewFamily(utility.NewLinear(2, true), -1, 1, rng),
		}
	}
	r := readNPZ(t, filepath.Join(dump(t, e, 1), "seed-0.npz"))["revenues"]
	for i := range len(r.data) / 8 {
		expect.Equal(fatal.T(t), r.float(i), 1, "revenue")
	}
}

func TestDumpBytesDoNotDependOnWorkers(t *testing.T) {
	e := small(policy("random", random()))
	one, many := dump(t, e, 1), dump(t, e, 8)
	for _, name := range []string{"seed-0.npz", "seed-3.npz", "world.json"} {
		if !bytes.Equal(read(t, one, name), read(t, many, name)) {
			t.Errorf("%s differs with 8 workers", name)
		}
	}
}

func TestDumpDescribesItself(t *testing.T) {
	var got struct {
		Experiment, Version, Settings string
		Seeds                         []uint64
		Policies                      []struct{ Label, Settings string }
	}
	fatal.If(t, json.Unmarshal(read(t, dump(t, small(policy("first", first())), 1), "world.json"), &got))
	want := got
	want.Experiment, want.Version, want.Settings = "small", "1.2.3", "small"
	want.Seeds, want.Policies = []uint64{0, 1, 2, 3}, []struct{ Label, Settings string }{{"first", "first"}}
	expect.Equal(t, got, want, "world.json")
}

// shrinking loses an item in its second round.
type shrinking struct {
	planted
	round *int
}

func (s shrinking) Context(rng *rand.Rand) *vitrine.Context {
	*s.round++
	x := s.planted.Context(rng)
	if *s.round == 2 {
		n, d := x.Features.Dims()
		x.Features, x.Revenue = mat.DenseCopyOf(x.Features.Slice(0, n-1, 0, d)), x.Revenue[1:]
	}
	return x
}

func (s shrinking) Utilities(dst []float64, _ *vitrine.Context) { clear(dst) }

// widening gains a feature in every round.
type widening struct{ shrinking }

func (w widening) Context(*rand.Rand) *vitrine.Context {
	*w.round++
	return &vitrine.Context{Features: mat.NewDense(2, *w.round, nil)}
}

// sold is a world without items.
type sold struct{}

func (sold) Context(*rand.Rand) *vitrine.Context   { return new(vitrine.Context) }
func (sold) Utilities([]float64, *vitrine.Context) {}

// A failed dump says where it failed, and leaves no world.json, not even an earlier one.
func TestDumpErrors(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for want, c := range map[string]struct {
		ctx    context.Context
		change func(e *experiment.Experiment)
	}{
		"small: seed 0, round 1: the true utility of item 0 is NaN: it must be finite": {t.Context(),
			func(e *experiment.Experiment) {
				e.World = func(*rand.Rand) env.Environment { return planted{utility: math.NaN()} }
			}},
		"small: seed 0, round 1: the true utility of item 0 is -Inf: it must be finite": {t.Context(),
			func(e *experiment.Experiment) {
				e.World = func(*rand.Rand) env.Environment { return planted{utility: math.Inf(-1)} }
			}},
		"small: seed 0, round 2: the context is 2×2, that of round 1 was 2×1: a dump needs one shape": {t.Context(),
			func(e *experiment.Experiment) {
				e.World = func(*rand.Rand) env.Environment { return widening{shrinking{round: new(int)}} }
			}},
		"small: seed 0, round 2: the context is 1×1, that of round 1 was 2×1: a dump needs one shape": {t.Context(),
			func(e *experiment.Experiment) {
				e.World = func(*rand.Rand) env.Environment { return shrinking{round: new(int)} }
			}},
		"small: seed 0, round 1: the context has no items, and a dump needs some": {t.Context(),
			func(e *experiment.Experiment) { e.World = func(*rand.Rand) env.Environment { return sold{} } }},
		"small: seed 0: the world is nil": {t.Context(), func(e *experiment.Experiment) {
			e.World = func(*rand.Rand) env.Environment { return nil }
		}},
		"small: seed 0: panic: no paper": {t.Context(), func(e *experiment.Experiment) {
			e.World = func(*rand.Rand) env.Environment { panic("no paper") }
		}},
		"small: policy bad, seed 0, round 1: infeasible offer: ": {t.Context(), func(e *experiment.Experiment) {
			bad := rule{offer: func(*vitrine.Context, *rand.Rand) vitrine.Assortment { return vitrine.Assortment{99} }}
			e.Policies = []experiment.Policy{policy("bad", bad)}
		}},
		"small: interrupted: the dump is not complete": {cancelled, func(*experiment.Experiment) {}},
	} {
		e := small()
		e.Seeds = e.Seeds[:1]
		dir := t.TempDir()
		fatal.If(t, experiment.Dump(t.Context(), e, experiment.Options{Dir: dir}))
		c.change(e)
		expect.Prefix(experiment.Dump(c.ctx, e, experiment.Options{Dir: dir}))(t, want)
		if _, err := os.Stat(filepath.Join(dir, "small", "world.json")); !os.IsNotExist(err) {
			t.Errorf("%s: a world.json is left", want)
		}
	}
	twice := small()
	twice.Seeds = []uint64{1, 1}
	expect.Part(experiment.Dump(t.Context(), twice, experiment.Options{Dir: t.TempDir()}))(t,
		"seed 1 is a duplicate", "a seed twice")
	file := filepath.Join(t.TempDir(), "file")
	fatal.If(t, os.WriteFile(file, nil, 0o644))
	expect.Part(experiment.Dump(t.Context(), small(), experiment.Options{Dir: file}))(t,
		file, "a file in the place of the directory")
}
