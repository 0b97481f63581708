package bandit

import (
	"encoding"
	"math/rand/v2"
	"strings"
	"testing"

	"vitrine/assortment"
	"vitrine/internal/state"
	"vitrine/utility"
)

// reads reports whether a learner reads snapshots of a text.
func (id identity) reads(text string) bool {
	_, err := id.match(text)
	return err == nil
}

// What snapshots are called on disks, and what they were called by the programs before.
func TestIdentities(t *testing.T) {
	p := Problem{Features: 3, Items: 4, Size: 2, Rounds: 1000, Constraint: assortment.AtMost(2)}
	rng := rand.New(rand.NewPCG(1, 1))
	m := utility.NewLinear(3, true)
	const regression = "RegressionOptions:{Oracle:offline Rate:0.0001 Steps:2000 Restart:false Lambda:1 Step:1}}"
	onl, err := NewONL(p, m, DefaultONLOptions(), rng)
	sets := DefaultEpsGreedyOptions()
	sets.Explore = "set"
	eps, err1 := NewEpsGreedy(p, m, sets, rng)
	barrier, err2 := NewLogBarrier(p, m, DefaultLogBarrierOptions(), rng)
	log := DefaultFeelGoodOptions()
	log.Loss = "log"
	feel, err3 := NewFeelGood(p, m, log, rng)
	ts, err4 := NewTS(p, DefaultTSOptions())
	bma, err5 := NewBMA(p, DefaultExperts(3)[:3], DefaultBMAOptions(), rng)
	uniform, err6 := NewUniform(p)
	for _, err := range []error{err, err1, err2, err3, err4, err5, err6} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		learner       encoding.BinaryMarshaler
		id            identity
		want, earlier string
	}{
		{
			onl, onl.identity,
			"onl-mnl version=1 features=3 size=2 rounds=1000 utility=linear with intercept warmup=50 lambda=10 pilot=adam pilot_rate=0.0001 pilot_steps=2000 pilot_ridge=1 update=mle step=1 tolerance=1e-06 beta=10 curvature=0 ball=0 schedule=configured kappa=0 mu=0 delta=0.05 utility_bound=1 gradient_bound=1",
			"onl-mnl d=3 K=2 T=1000 linear with intercept {FitOptions:{Warmup:50 Lambda:10 Pilot:adam PilotRate:0.0001 PilotSteps:2000 PilotRidge:1 Update:mle Step:1 Tolerance:1e-06} Beta:10 Curvature:0 Schedule:configured Kappa:0 Mu:0 Delta:0.05 UtilityBound:1 GradientBound:1}",
		},
		{
			eps, eps.identity,
			"eps-greedy-mnl version=1 features=3 size=2 rounds=1000 utility=linear with intercept explore=set schedule=configured epsilon=0.1 decay=0.995 floor=0.001 err_constant=1 err_rate=1 oracle=offline rate=0.0001 steps=2000 restart=false lambda=1 step=1",
			"eps-greedy-mnl d=3 K=2 T=1000 linear with intercept {Epsilon:0.1 Decay:0.995 Floor:0.001 " + regression,
		},
		{
			barrier, barrier.identity,
			"log-barrier-mnl version=1 features=3 size=2 rounds=1000 utility=linear with intercept constants=tuned gamma=10 limit=100000 err_constant=1 err_rate=1 oracle=offline rate=0.0001 steps=2000 restart=false lambda=1 step=1",
			"log-barrier-mnl d=3 K=2 T=1000 linear with intercept {Gamma:10 Limit:100000 " + regression,
		},
		{
			feel, feel.identity,
			"feel-good-ts version=1 features=3 size=2 rounds=1000 utility=linear with intercept loss=log ridge=1 eta=1 feel_good=0.1 moves=10",
			"feel-good-ts d=3 K=2 T=1000 linear with intercept {Ridge:1 Eta:1 FeelGood:0.1 Moves:10}",
		},
		{
			ts, ts.identity,
			"ts-mnl version=1 features=3 size=2 rounds=1000 utility=linear constants=theory radius=0 intercept=false lambda=1 samples=9",
			"ts-mnl d=3 K=2 T=1000 linear {LinearOptions:{Constants:theory Radius:0 Intercept:false Lambda:1} Samples:9}",
		},
		{
			bma, bma.identity,
			"bma-mnl version=9 features=3 size=2 rounds=1000 utility=linear with intercept linear with intercept of memory 200 radial 3-1 width=0.3 anneal=60 growth=1.2 candidates=150 sample=150",
			"",
		},
		{
			uniform, uniform.identity(),
			"uniform version=1 features=3 size=2 rounds=1000",
			"uniform d=3 K=2 T=1000",
		},
	} {
		data, err := c.learner.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		have, _, err := state.Read(data)
		if err != nil {
			t.Fatal(err)
		}
		if flat := strings.ReplaceAll(have, "\n", " "); flat != c.want {
			t.Errorf("snapshots are called\n%s, want\n%s", flat, c.want)
		}
		if version, err := c.id.match(have); err != nil || version != c.id.version {
			t.Errorf("%s does not read its own: version %d, %v", have, version, err)
		}
		// Options that came later are not in the texts of before.
		if _, err := c.id.match(c.earlier); err != nil && c.earlier != "" {
			t.Errorf("%s does not read %q: %v", have, c.earlier, err)
		}
	}
}

// A snapshot that does not know an option is read if the option has its default or is zero. One that
// differs is refused with the first fact that does.
func TestIdentityReadsEarlierOptions(t *testing.T) {
	type Inner struct {
		A    int     `toml:"a"`
		Name string  `toml:"name"`
		NewC float64 `toml:"new_c"`
	}
	type options struct {
		Inner
		New  string  `toml:"new"`
		D    float64 `toml:"d"`
		Last bool    `toml:"last"`
	}
	p := Problem{Features: 3, Size: 2, Rounds: 10}
	standard := options{Inner: Inner{1, "x", 2}, D: 3}
	with := func(change func(*options)) identity {
		o := standard
		change(&o)
		id := p.identify("toy", 2, "big {family}\nand more", o, standard)
		id.oldest = 1
		return id
	}
	same := func(*options) {}
	const (
		before = "toy d=3 K=2 T=10 big {family} and more {Inner:{A:1 Name:x} D:3}"
		now    = "toy\nversion=2\nfeatures=3\nsize=2\nrounds=10\nutility=big {family} and more\na=1\nname=x\nnew_c=2\nnew=\nd=3\nlast=false"
	)
	if have := with(same).String(); have != now {
		t.Errorf("the text is\n%s\nwant\n%s", have, now)
	}
	edit := func(text, old, new string) string {
		t.Helper()
		if !strings.Contains(text, old) {
			t.Fatalf("%q has no %q", text, old)
		}
		return strings.Replace(text, old, new, 1)
	}
	for name, c := range map[string]struct {
		change func(*options)
		text   string
		want   string // the error
	}{
		"before":            {same, before, ""},
		"before, version 2": {same, edit(before, "toy", "toy v2"), ""},
		"now":               {same, now, ""},
		"first version":     {same, edit(now, "version=2", "version=1"), ""},
		"zero":              {func(o *options) { o.NewC = 0 }, before, ""},
		"set":               {func(o *options) { o.NewC = 4 }, before, "snapshot was made before there was new_c, want new_c = 4"},
		"set word":          {func(o *options) { o.New = "w" }, before, "snapshot was made before there was new, want new = w"},
		"set last":          {func(o *options) { o.Last = true }, before, "snapshot was made before there was last, want last = true"},
		"another":           {func(o *options) { o.A = 11 }, now, "snapshot is of a = 1, want 11"},
		"another before":    {same, edit(before, "A:1", "A:11"), "snapshot is of a = 11, want 1"},
		"another family":    {same, edit(before, "more", "less"), "snapshot is of utility = big {family} and less, want big {family} and more"},
		"unknown":           {same, edit(before, "D:3", "D:3 E:4"), "snapshot is of e = 4, which this program does not know"},
		"no family":         {same, edit(before, " big {family} and more", ""), "snapshot was made before there was utility, want utility = big {family} and more"},
		"features":          {same, edit(now, "features=3", "features=4"), "snapshot is of features = 4, want 3"},
		"size":              {same, edit(before, "K=2", "K=3"), "snapshot is of size = 3, want 2"},
		"rounds":            {same, edit(before, "T=10", "T=11"), "snapshot is of rounds = 11, want 10"},
		"learner":           {same, edit(now, "toy", "boy"), "snapshot is of boy, want toy"},
		"later version":     {same, edit(now, "version=2", "version=3"), "snapshot is of version 3 of toy, and this program reads 1 to 2"},
		"version 0":         {same, edit(now, "version=2", "version=0"), "snapshot is of version 0 of toy, and this program reads 1 to 2"},
		"no version":        {same, edit(now, "version=2\n", ""), `snapshot of toy: version = "": must be a number`},
		"torn":              {same, before[:20], "snapshot is of utility = big, want big {family} and more"},
		"something else":    {same, "imdb 1", `snapshot is of "imdb 1", want that of a learner`},
	} {
		_, err := with(c.change).match(c.text)
		if have := errText(err); c.want == "" && have != "" || !strings.HasPrefix(have, c.want) {
			t.Errorf("%s: error %q, want %q", name, have, c.want)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
