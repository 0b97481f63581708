package engine_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/setup"
)

// A changed snapshot of an experiment causes no panic.
func TestDamagedExperiments(t *testing.T) {
	store := unnamed{new(memlog.Store)}
	e := opened(t, engine.Options{Store: store, Build: buildFixed})
	put(t, e, "home", onTrial(fourVariants))
	newBoutique(t, e, 0.1, 0.5, 0.1).serve(60, 30)
	body := withoutSum(snapshot(t, e))
	rng := rand.New(rand.NewPCG(1, 2))
	taken := 0
	for range 300 {
		changed := slices.Clone(body)
		changed[rng.IntN(len(body))] ^= 1 << rng.IntN(8)
		e, err := engine.Open(t.Context(), engine.Options{Store: store, Build: buildFixed, Snapshot: withSum(changed)})
		if err != nil {
			continue
		}
		taken++
		if _, err := e.Experiments("home"); err != nil && !errors.Is(err, engine.ErrNotFound) { // or another name
			t.Error(err)
		}
		if again := snapshot(t, e); !bytes.Equal(again, withSum(changed)) {
			t.Error("a snapshot is written otherwise than it was read")
		}
		e.Close()
	}
	if taken == 0 {
		t.Error("no snapshot was taken")
	}
}

// isInvalid expects an error about the caller's input that begins with the place and gives the reason.
func isInvalid(t *testing.T, what string, err error, want string) {
	t.Helper()
	if err == nil || !strings.HasPrefix(err.Error(), want) || !errors.Is(err, api.ErrInvalid) {
		t.Errorf("%s:\n got %v\nwant %s", what, err, want)
	}
}

func TestBadExperiments(t *testing.T) {
	const a, b = `{"name":"a","show":"policy","share":0.5}`, `{"name":"b","show":"baseline","share":0.5}`
	of := func(fields string) string { return onTrial(`{"name":"x",` + fields + `}`) }
	for text, want := range map[string]string{
		strings.Replace(onTrial(fourVariants), `"mode":"experiment"`, `"mode":"learn"`,
			1): `/experiment: is for the mode "experiment", and the mode is "learn": leave it out`,
		`{"max_size":1,"features":[{"name":"x","kind":"number"}],"mode":"experiment"}`: `/experiment: is missing: in the mode "experiment" it says what is compared`,
		onTrial(`{"variants":[` + a + `,` + b +
			`]}`): `/experiment/name: "": must have from 1 to 100 bytes`,
		of(`"metrics":[{},{},{},{},{},{}],"variants":[` + a + `,` + b + `]`):    `/experiment/metrics: has 6 metrics: must have at most 5`,
		of(`"variants":[` + a + `]`):                                            `/experiment/variants: has 1 variants: must have from 2 to 20`,
		of(`"variants":[` + a + `,{"name":"b","show":"baseline","share":0.4}]`): `/experiment/variants: the shares sum to 0.9: must sum to 1`,
		of(`"variants":[` + a + `,{"name":"b","show":"baseline","share":0.6}]`): `/experiment/variants: the shares sum to 1.1: must sum to 1`,
		of(`"variants":[` + a + `,` + a +
			`]`): `/experiment/variants/1/name: "a" is the name of variant 0 too`,
		of(`"variants":[` + a + `,{"name":"b c","show":"baseline","share":0.5}]`):          `/experiment/variants/1/name: "b c": must have from 1 to 64 letters`,
		of(`"variants":[` + a + `,{"name":"holdout","show":"baseline","share":0.5}]`):      `/experiment/variants/1/name: "holdout": is the name of the shoppers who are held out`,
		of(`"variants":[` + a + `,{"name":"b","show":"magic","share":0.5}]`):               `/experiment/variants/1/show: "magic": unknown: must be one of policy, baseline, uniform`,
		of(`"variants":[` + a + `,{"name":"b","show":"uniform","share":-0.5}]`):            `/experiment/variants/1/share: -0.5: must be from 0 to 1, in steps of 0.0001`,
		of(`"variants":[` + a + `,{"name":"b","show":"uniform","share":0.50001}]`):         `/experiment/variants/1/share: 0.50001: must be from 0 to 1, in steps of 0.0001`,
		of(`"variants":[` + a + `,{"name":"b","show":"uniform","share":0.5,"policy":{}}]`): `/experiment/variants/1/policy: is for variants that show "policy", and this one shows "uniform"`,
		of(`"variants":[` + a + `,` + b +
			`],"control":"c"`): `/experiment/control: "c": is no variant: must be one of a, b`,
		of(`"variants":[` + a + `,` + b +
			`],"learn_from":"none"`): `/experiment/learn_from: "none": unknown: must be one of own, all`,
		onTrial(`{"name":"x","variants":[` + a + `,` + b +
			`]},"holdout_share":0.6`): `/holdout_share: 0.6: must be from 0 to 0.5, in steps of 0.0001`,
		`{"max_size":1,"features":[{"name":"x","kind":"number"}],"mode":"shadow","holdout_share":0.1}`: `/holdout_share: 0.1: in the mode "shadow" all shoppers see the baseline: leave it out`,
		of(`"variants":[` + a + `,` + b +
			`],"min_gain":-1`): `/experiment/min_gain: -1: must not be negative`,
		of(`"variants":[` + a + `,` + b +
			`],"arms":2`): `/experiment/arms: unknown key`,
	} {
		_, err := setup.Parse([]byte(text))
		isInvalid(t, text, err, want)
	}
	text := of(`"variants":[` + a + `,` + b + `],"min_gain":2e12`) // which older logs may hold
	c := fatal.Or(setup.Parse([]byte(text)))(t)
	expect.Equal(t, c.Experiment.MinGain, 2e12)
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildFixed})
	_, err := e.Put(t.Context(), "home", []byte(text), 0)
	isInvalid(t, text, err, `/experiment/min_gain: 2000000000000: must be from 0 to 1e+12; send an amount`)
}

// newReal is an engine for experiments with real policies, and the configuration of one.
func newReal(t *testing.T) (e *engine.Engine, config string) {
	return opened(t, engine.Options{Store: new(memlog.Store), Build: setup.NewLearner, Size: setup.LearnerSize}),
		strings.NewReplacer(`{"name":"0"}`, `{"name":"ucb-mnl"}`, `{"name":"1"}`,
			`{"name":"ts-mnl"}`).Replace(onTrial(fourVariants))
}

func TestBadPolicyOfAVariant(t *testing.T) {
	e, config := newReal(t)
	for from, to := range map[string]string{`{"name":"ts-mnl"}`: `{"name":"ts-mnl","lambda":-3}`,
		`"name":"ts-mnl"`: `"name":"tsmnl"`} {
		_, err := e.Put(t.Context(), "home", []byte(strings.Replace(config, from, to, 1)), 0)
		isInvalid(t, to, err, `/experiment/variants/2/policy: `)
	}
}

// A change that is forbidden while an experiment runs is named.
func TestExperimentMustNotChange(t *testing.T) {
	e, config := newReal(t)
	put(t, e, "home", config)
	const end = ` cannot change while the experiment "summer" runs: end it with another mode, or begin another one under another name`
	for from, want := range map[string][2]string{
		`"name":"rival"`: {
			`"name":"other"`, `/experiment/variants: the variants are ["shop" "own" "rival" "chance"], not ["shop" "own" "other" "chance"], and` + end},
		`"show":"uniform"`: {
			`"show":"policy"`, `/experiment/variants/3/show: is "uniform", not "policy", and` + end},
		`"policy":{"name":"ts-mnl"}`: {
			`"policy":{"name":"onl-mnl"}`, `/experiment/variants/2/policy: of variant "rival"` + end},
		`"name":"summer"`: {
			`"name":"summer","control":"own"`, `/experiment/control: is "shop", not "own", and` + end},
		`"name":"summer",`: {
			`"name":"summer","learn_from":"all",`, `/experiment/learn_from: is "own", not "all", and` + end},
		`"attribution_window":"30m"`: {
			`"attribution_window":"20m"`, `/attribution_window: is 30m0s, not 20m0s, and` + end},
		`{"name":"chance","show":"unifor`: {
			`{"name":"more","show":"baseline","share":0},{"name":"chance","show":"unifor`,
			`/experiment/variants: the variants are`},
	} {
		_, err := e.Put(t.Context(), "home", []byte(strings.Replace(config, from, want[0], 1)), 0)
		isInvalid(t, want[0], err, want[1])
	}
}

func TestBadRequestsInAnExperiment(t *testing.T) {
	e, config := newReal(t)
	put(t, e, "home", config)
	for name, c := range map[string]struct {
		change func(*api.Request)
		want   string
	}{
		"no unit": {func(r *api.Request) {
			r.ShopperID = ""
		}, `/shopper_id: is missing: the mode "experiment" shows each shopper the same variant`},
		"a long unit": {func(r *api.Request) {
			r.ShopperID = strings.Repeat("u", 201)
		}, `/shopper_id: must have at most 200 bytes of UTF-8`},
		"no UTF-8": {func(r *api.Request) {
			r.ShopperID = "\xff"
		}, `/shopper_id: must have at most 200 bytes of UTF-8`},
		"no baseline": {func(r *api.Request) {
			r.Baseline = nil
		}, `/baseline: is missing: the experiment shows your own page to some shoppers`},
	} {
		r := stock("", 3)
		r.ShopperID, r.Baseline = "u", []string{"sku1"}
		c.change(r)
		_, err := e.Decide(t.Context(), "home", r, 0)
		isInvalid(t, name, err, c.want)
	}
	expect.Fails(e.Experiments("cart"))(t, engine.ErrNotFound, "an unknown placement")
}

// Modes that do not decide by the unit ignore it.
func TestUnitsElsewhere(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildToy})
	put(t, e, "home", toys)
	r := stock("d", 3)
	for i, unit := range []string{"ann", "ann", "ben"} {
		r.ShopperID = unit
		if a, err := e.Decide(t.Context(), "home", r, 0); err != nil || a.Decoded != (i > 0) || a.Variant != "" {
			t.Errorf("%+v, %v", a, err)
		}
	}
}

// An offer of a variant that is not its unit's is invalid, as is an offer of a variant without an experiment.
func TestOffersOfOtherVariants(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildFixed})
	put(t, e, "home", onTrial(fourVariants))
	newBoutique(t, e, 0, 0, 0).serve(40, 40)
	for want, change := range map[string]string{
		"and its unit is shown": strings.NewReplacer(`"share":0.4`, `"share":0.1`, `"share":0.1`,
			`"share":0.4`).Replace(onTrial(fourVariants)),
		"and there is no experiment": `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"0"},"attribution_window":"30m"}`,
	} {
		c := fatal.Or(setup.Parse([]byte(change)))(t)
		changed := new(memlog.Store)
		for entry, err := range store.Entries(t.Context(), 1) {
			fatal.If(t, err)
			event, err := eventlog.Decode(entry)
			fatal.If(t, err)
			if p, ok := event.Body.(*eventlog.PlacementPut); ok {
				p.Config = c.Canonical()
				if entry, err = event.Encode(nil); err != nil {
					t.Fatal(err)
				}
			}
			fatal.Or(changed.Append(t.Context(), entry))(t)
		}
		a := fatal.Or(engine.NewAudit(buildFixed, nil))(t)
		if faults := audited(t, a, changed); len(faults) == 0 || !strings.Contains(faults[0], want) {
			t.Errorf("%q, want %s", faults, want)
		}
		a.Close()
	}
}
