package tractability_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/paper/study"
	"vitrine/paper/tractability"
)

// clock is a time that tests advance.
type clock struct{ now time.Duration }

func (c *clock) read() time.Duration { return c.now }

// slow takes a second per offer for each possible assortment, and a millisecond per round for each item.
type slow struct {
	*clock
	p bandit.Problem
}

func (s slow) Policy() vitrine.Policy { return s }
func (s slow) Observe(r vitrine.Round) error {
	s.now += time.Duration(r.Context.NumItems()) * time.Millisecond
	return r.Check(s.p.NumFeatures)
}
func (s slow) Offer(x *vitrine.Context, _ *rand.Rand) vitrine.Offer {
	sets, err := assortment.Enumerate(nil, s.p.Constraint, s.p.MaxShown, x.NumItems(), 1000)
	if err != nil {
		panic(err)
	}
	s.now += time.Duration(sets.Len()) * time.Second
	return vitrine.Offer{}
}

func algorithm(c *clock, limit int) tractability.Algorithm {
	return tractability.Algorithm{Policy: "slow", New: func(p bandit.Problem, _ *rand.Rand) (vitrine.Learner, error) {
		return slow{c, p}, assortment.AtMost(p.MaxShown).CheckCount(p.Items, limit)
	}}
}

var setting = tractability.Setting{
	Items: []int{4, 6}, Size: 2, Sizes: []int{1, 2, 3}, Among: 6, Features: 2,
	Rounds: 10, Offers: 3, MinOffers: 2, Passes: 2, Spend: time.Second,
}

func measure(t *testing.T, ctx context.Context, have func(string, tractability.Cell) bool,
	done func(tractability.Point) error) error {
	t.Helper()
	c := new(clock)
	return tractability.Measure(ctx, setting, []tractability.Algorithm{algorithm(c, 30)}, c.read, have, done)
}

func none(string, tractability.Cell) bool { return false }

// With a clock that the algorithm advances, offers and rounds take the stated times; a size with too many assortments
// is refused and their number reported.
func TestMeasure(t *testing.T) {
	var got []tractability.Point
	err := measure(t, t.Context(), none, func(p tractability.Point) error {
		got = append(got, p)
		return nil
	})
	fatal.If(t, err)
	cell := func(n, k int) tractability.Cell { return tractability.Cell{Items: n, Size: k} }
	want := []tractability.Point{
		{Policy: "slow", Cell: cell(4, 2), Offer: 10, Offers: 2, Round: 0.004},
		{Policy: "slow", Cell: cell(6, 2), Offer: 21, Offers: 2, Round: 0.006},
		{Policy: "slow", Cell: cell(6, 1), Offer: 6, Offers: 2, Round: 0.006},
		{Policy: "slow", Cell: cell(6, 3), Refused: "41"},
	}
	expect.Equal(t, got, want, "points")
}

// Existing points are not measured again, and survive an interruption.
func TestMeasurementsContinue(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x")
	record := tractability.Record{Experiment: "tractability", Version: "1", Machine: "this one", Setting: setting}
	s, err := tractability.Open(dir, record)
	fatal.If(t, err)
	ctx, stop := context.WithCancel(t.Context())
	keep := func(p tractability.Point) error {
		s.Points = append(s.Points, p)
		if len(s.Points) == 2 {
			stop()
		}
		return s.Write(dir)
	}
	if err := measure(t, ctx, s.Has, keep); !errors.Is(err, context.Canceled) || len(s.Points) != 2 {
		t.Fatalf("%d points, error %v", len(s.Points), err)
	}
	if s, err = tractability.Open(dir, record); err != nil || len(s.Points) != 2 {
		t.Fatalf("%v, error %v: want the two points", s, err)
	}
	if err := measure(t, t.Context(), s.Has, keep); err != nil || len(s.Points) != 4 {
		t.Fatalf("%d points, error %v", len(s.Points), err)
	}
	expect.Equal(t, fatal.Or(tractability.Read(dir))(t), s, "what was written and read")
	record.Version = "2"
	if s, err := tractability.Open(dir, record); err != nil || len(s.Points) != 0 {
		t.Errorf("%v, error %v: points of another version are not continued", s, err)
	}
}

func TestMeasureReportsFailures(t *testing.T) {
	bad := tractability.Algorithm{Policy: "bad", New: func(bandit.Problem, *rand.Rand) (vitrine.Learner, error) {
		return nil, errors.New("no luck")
	}}
	c := new(clock)
	expect.Message(tractability.Measure(t.Context(), setting, []tractability.Algorithm{bad}, c.read, none,
		func(tractability.Point) error { return nil }))(t, "bad of N = 4, K = 2: no luck")
	full := errors.New("the disk is full")
	expect.Error(t, measure(t, t.Context(), none, func(tractability.Point) error { return full }), full)
}

// Every algorithm supports the figure's smallest size, and only the log barrier refuses the largest.
func TestAlgorithms(t *testing.T) {
	for _, a := range tractability.Algorithms() {
		for _, c := range []struct {
			items, size int
			refused     bool
		}{{5, 3, false}, {2000, 3, a.Policy == "log-barrier-mnl"}} {
			p := bandit.Problem{NumFeatures: 3, Items: c.items, MaxShown: c.size, Rounds: 1000,
				Constraint: assortment.AtMost(c.size)}
			_, err := a.New(p, rand.New(rand.NewPCG(1, 1)))
			if _, many := errors.AsType[*assortment.TooManyError](err); many != c.refused || err != nil && !many {
				t.Errorf("%s of %d items: error %v", a.Policy, c.items, err)
			}
		}
	}
}

func TestDamagedFilesAreNamed(t *testing.T) {
	dir := t.TempDir()
	s := fatal.Or(tractability.Open(dir, tractability.Record{Setting: setting}))(t)
	s.Points = []tractability.Point{{Policy: "a", Cell: tractability.Cell{Items: 3, Size: 2}, Offer: 1e-6, Offers: 9,
		Round: 1e-3}}
	fatal.If(t, s.Write(dir))
	file := filepath.Join(dir, study.RecordFile)
	whole := string(fatal.Or(os.ReadFile(file))(t))
	for _, c := range []struct{ old, new, want string }{
		{"0.000001", "-1", "a point without a policy"},
		{`"items": 3`, `"items": 0`, "a point without a policy"},
		{`"items": 3`, `"items": "three"`, "json"},
		{"0.001", "1e300", "1e+300 is too large to be drawn"},
		{whole, "", "unexpected end of JSON input; run vitrine reproduce tractability again"},
	} {
		fatal.If(t, os.WriteFile(file, []byte(strings.Replace(whole, c.old, c.new, 1)), 0o644))
		expect.Part(tractability.Read(dir))(t, file)
		expect.Part(tractability.Read(dir))(t, c.want)
	}
	fatal.If(t, os.Remove(file))
	expect.Fails(tractability.Read(dir))(t, os.ErrNotExist)
}

// A survey that can be read can be written and read again.
func FuzzRead(f *testing.F) {
	f.Add(`{"points": [{"policy": "a", "items": 3, "size": 2, "offer_seconds": 1e-6, "offers": 9, "round_seconds": 0.001}]}`)
	f.Add(`{"points": [{"policy": "a\nb", "items": 3, "size": 2, "offer_seconds": 1e300, "refused": "1,2"}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		dir := t.TempDir()
		fatal.If(t, os.WriteFile(filepath.Join(dir, study.RecordFile), []byte(text), 0o644))
		s, err := tractability.Read(dir)
		if err != nil {
			return
		}
		fatal.If(t, s.Write(dir))
		again, err := tractability.Read(dir)
		if err != nil || len(again.Points) != len(s.Points) {
			t.Errorf("%v, error %v, want %v", again, err, s)
		}
	})
}
