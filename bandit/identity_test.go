package bandit

import (
	"encoding"
	"math/rand/v2"
	"strings"
	"testing"

	"vitrine/assortment"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/fields"
	"vitrine/utility"
)

// Each learner's snapshots name their state.
func TestIdentities(t *testing.T) {
	p := Problem{NumFeatures: 3, Items: 4, MaxShown: 2, Rounds: 1000, Constraint: assortment.AtMost(2)}
	rng := rand.New(rand.NewPCG(1, 1))
	m := utility.NewLinear(3, true)
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
		fatal.If(t, err)
	}
	for _, c := range []struct {
		learner encoding.BinaryMarshaler
		id      identity
		want    string
	}{
		{
			onl, onl.identity,
			"onl-mnl version=1 features=3 size=2 rounds=1000 utility=linear with intercept warmup=50 lambda=10 " +
				"pilot=adam pilot_rate=0.0001 pilot_steps=2000 pilot_ridge=1 update=mle step=1 tolerance=1e-06 " +
				"beta=10 curvature=0 ball=0 schedule=configured kappa=0 mu=0 delta=0.05 utility_bound=1 " +
				"gradient_bound=1",
		},
		{
			eps, eps.identity,
			"eps-greedy-mnl version=1 features=3 size=2 rounds=1000 utility=linear with intercept explore=set " +
				"schedule=configured epsilon=0.1 decay=0.995 floor=0.001 err_constant=1 err_rate=1 oracle=offline " +
				"rate=0.0001 steps=2000 restart=false lambda=1 step=1",
		},
		{
			barrier, barrier.identity,
			"log-barrier-mnl version=1 features=3 size=2 rounds=1000 utility=linear with intercept " +
				"constants=tuned gamma=10 limit=100000 err_constant=1 err_rate=1 oracle=offline rate=0.0001 " +
				"steps=2000 restart=false lambda=1 step=1",
		},
		{
			feel, feel.identity,
			"feel-good-ts version=1 features=3 size=2 rounds=1000 utility=linear with intercept loss=log ridge=1 " +
				"eta=1 feel_good=0.1 moves=10",
		},
		{
			ts, ts.identity,
			"ts-mnl version=1 features=3 size=2 rounds=1000 utility=linear constants=theory radius=0 " +
				"intercept=false lambda=1 samples=9",
		},
		{
			bma, bma.identity,
			"bma-mnl version=2 features=3 size=2 rounds=1000 utility=linear with intercept linear with intercept " +
				"of memory 200 radial 3-1 width=0.3 anneal=60 growth=1.2 candidates=150 sample=150",
		},
		{
			uniform, uniform.identity(),
			"uniform version=1 features=3 size=2 rounds=1000",
		},
	} {
		data := fatal.Or(c.learner.MarshalBinary())(t)
		have, _, err := fields.Open(data)
		fatal.If(t, err)
		expect.Equal(t, strings.ReplaceAll(have, "\n", " "), c.want, "snapshots are called")
		expect.Error(t, c.id.match(have), nil, have, "does not read its own")
	}
}

// A snapshot of another identity is refused with the first fact that differs.
func TestIdentityNamesWhatDiffers(t *testing.T) {
	type Inner struct {
		A    int    `toml:"a"`
		Name string `toml:"name"`
	}
	type options struct {
		Inner
		D    float64 `toml:"d"`
		Last bool    `toml:"last"`
	}
	id := Problem{NumFeatures: 3, MaxShown: 2, Rounds: 10}.identify("toy", 2, "big {family}\nand more",
		options{Inner{1, "x"}, 3, false})
	const now = "toy\nversion=2\nfeatures=3\nsize=2\nrounds=10\nutility=big {family} and " +
		"more\na=1\nname=x\nd=3\nlast=false"
	expect.Equal(t, id.String(), now, "the text is")
	edit := func(old, new string) string {
		t.Helper()
		expect.Contains(fatal.T(t), now, old)
		return strings.Replace(now, old, new, 1)
	}
	for name, c := range map[string]struct{ text, want string }{
		"its own":        {now, ""},
		"another option": {edit("a=1", "a=11"), "snapshot is of a = 11, want 1"},
		"another family": {edit("more", "less"), "snapshot is of utility = big {family} and less, want big " +
			"{family} and more"},
		"an unknown one": {now + "\ne=4", "snapshot is of e = 4, which this program does not know"},
		"a missing one":  {edit("\nname=x", ""), "snapshot of toy does not name name, want name = x"},
		"no family": {edit("\nutility=big {family} and more", ""), "snapshot of toy does not name utility, " +
			"want utility = big {family} and more"},
		"features": {edit("features=3", "features=4"), "snapshot is of features = 4, want 3"},
		"size":     {edit("size=2", "size=3"), "snapshot is of size = 3, want 2"},
		"rounds":   {edit("rounds=10", "rounds=11"), "snapshot is of rounds = 11, want 10"},
		"learner":  {edit("toy", "boy"), `snapshot is of "boy", want toy`},
		"version": {edit("version=2", "version=3"), "snapshot of toy is in format 3, and this program " +
			"reads format 2: use the release of vitrine that wrote it"},
		"no version":     {edit("version=2\n", ""), "snapshot of toy does not name version, want version = 2"},
		"another order":  {edit("a=1\nname=x", "name=x\na=1"), "snapshot of toy names its facts in another order"},
		"torn":           {now[:20], "snapshot of toy does not name features, want features = 3"},
		"something else": {"imdb 1", `snapshot is of "imdb 1", want toy`},
	} {
		expect.Equal(t, errText(id.match(c.text)), c.want, name, "error")
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
