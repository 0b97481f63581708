package browsertest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
)

// fill types a value into the field with a label.
func (b *tab) fill(label, value string) {
	b.Helper()
	field := `[...document.querySelectorAll("main label")].find((l) => l.innerText.trim().startsWith(` + quote(label) +
		`))?.control`
	b.on(field, `(Object.getOwnPropertyDescriptor(Object.getPrototypeOf(e), "value").set.call(e, `+quote(value)+
		`), e.dispatchEvent(new Event("input", { bubbles: true })), e.dispatchEvent(new Event("change", { bubbles: true })))`)
}

// reads waits until the view shows a text.
func (b *tab) reads(text string) {
	b.Helper()
	b.wait(`document.querySelector("main").innerText.includes(` + quote(text) + `)`)
}

// sell makes decisions of a placement with the feature price, and reports that the first item was taken. baseline is
// the shop's own page, if the placement needs it.
func (s *served) sell(t *testing.T, name, prefix string, n int, baseline ...string) {
	t.Helper()
	for k := range n {
		r := &api.Request{Decision: fmt.Sprintf("%s-%d", prefix, k), ShopperID: fmt.Sprintf("shopper-%d", k),
			Baseline: baseline}
		for i, id := range []string{"a", "b", "c", "d"} {
			r.Items = append(r.Items, api.Item{ID: id, Features: api.Values{api.Number("price", float64((i+k)%5))}})
		}
		answer := fatal.Or(s.Decide(t.Context(), name, r))(t)
		fatal.If(t, s.Outcome(t.Context(), name, answer.Decision, answer.Items()[0]))
	}
}

// A placement is created, a change that would lose what was learned says so before it is made, and a version brings the
// placement back.
func TestPlacementsLife(t *testing.T) {
	s := serve(t, nil)
	b := open(t, s.base)
	size := func() int {
		t.Helper()
		p := fatal.Or(s.Placement(t.Context(), "window"))(t)
		return p.MaxSize
	}

	b.visit("/new")
	b.fill("Name", "window")
	b.press("See what this does")
	b.reads("This makes the placement")
	if names, err := s.Placements(t.Context()); len(names) > 0 || err != nil {
		t.Fatalf("the preview made %q, %v", names, err)
	}
	b.press("Create the placement")
	b.wait(`location.hash.startsWith("#/placements/window")`)
	expect.Equal(fatal.T(t), size(), 3, "size")

	s.sell(t, "window", "first", 6)
	b.visit("/placements/window/versions")
	b.fill("Keep today's state", "before the change of min_size")
	b.press("Keep")
	b.reads("Before the change of min_size.")
	versions, err := s.Versions(t.Context(), "window")
	if err != nil || len(versions) == 0 {
		t.Fatalf("%v, %v", versions, err)
	}
	b.visit("/placements/window/settings")
	b.fill("At most", "0")
	b.wait(`document.querySelector("main form:invalid")`)
	b.fill("At most", "4")
	b.press("See what this does")
	b.reads("would forget what it has learned from 6 visits")
	expect.Equal(fatal.T(t), size(), 3, "the preview made the size")
	b.on(`[...document.querySelectorAll("main label")].find((l) => l.innerText.trim().startsWith("Vitrine begins again")).control`, "e.click()")
	b.press("Make the change")
	b.reads("The change is made")
	expect.Equal(fatal.T(t), size(), 4, "size n after the change")

	b.on(`[...document.querySelectorAll("main a")].find((a) => a.innerText === "You can undo it.")`, "e.click()")
	b.reads("Items to show at most: 3 → 4")
	b.reads("Undo in versions") // the settings alone would not bring back what was learned
	b.on(`document.querySelector("main .changes a")`, "e.click()")
	b.wait(`location.hash === "#/placements/window/versions"`)
	b.press("Go back to this…")
	b.reads("One setting changes")
	b.reads("Items to show at most")
	expect.Equal(fatal.T(t), size(), 4, "looking at a version made the size")
	b.on(button("Go back"), "(e.click(), e.click())") // which sends one request
	b.reads("“window” is back at")
	expect.Equal(t, size(), 3, "size n after the way back")

	// A running experiment ends before a version of another learner comes back.
	s.sell(t, "window", "last", 1)
	b.reads("1 visit since, which earned 1.\n")
	p := fatal.Or(s.Placement(t.Context(), "window"))(t)
	p.Notes, p.Warnings, p.Explore, p.ExploreShare, p.MaxSize = nil, nil, "", nil, 4
	p.Mode, p.Experiment = api.Experimenting, &api.Experiment{Name: "summer", Variants: []api.Variant{
		{Name: "shop", Show: api.ShowBaseline, Share: 0.5}, {Name: "ours", Show: api.ShowPolicy, Share: 0.5}}}
	s.ask(t, "PUT", "v1/placements/window?reset=true", p, nil)
	b.visit("/placements/window/versions")
	b.on(`[...document.querySelectorAll("main .timeline li")].find((l) => l.innerText.includes("With other settings than today.")).querySelector("button")`, "e.click()")
	b.reads("An experiment runs. End it first.")
	isBarred := func() {
		t.Helper()
		if eval[bool](b, "!!"+button("Go back")) {
			t.Error("the page offers a way back that the service refuses")
		}
	}
	isBarred()

	// So does a second learner, and callers must send again what the earlier settings require.
	s.sell(t, "window", "again", 1, "a")
	p.Mode, p.Experiment, p.MaxSize, p.Holdout = "", nil, 3, 0.1
	s.ask(t, "PUT", "v1/placements/window?reset=true", p, nil)
	s.sell(t, "window", "held", 1, "a")
	p.MaxSize, p.Holdout = 4, 0
	s.ask(t, "PUT", "v1/placements/window?reset=true", p, nil)
	s.sell(t, "window", "plain", 9) // more than the second learner may learn
	p.MaxSize = 2
	s.ask(t, "PUT", "v1/placements/window?relearn=log", p, nil)
	b.visit("/placements/window/versions")
	b.on(`document.querySelector("main .timeline li button")`, "e.click()")
	b.reads("check your callers before you make this change: each request to /decisions must contain baseline and shopper_id")
	b.reads("Vitrine learns a change from the log. Make the change now or cancel it first.")
	isBarred()
}

// An experiment is begun, and read when its first decisions count.
func TestExperiment(t *testing.T) {
	s := serve(t, nil)
	b := open(t, s.base)
	config := &api.Placement{MaxSize: 1, Features: []api.Feature{{Name: "price", Kind: "number"}},
		AttributionWindow: "5s", Currency: "EUR"}
	fatal.Or(s.Put(t.Context(), "window", config))(t)
	b.visit("/placements/window/experiments")
	b.reads("No experiment runs")
	b.fill("Name of the experiment", "summer")
	b.on(`[...document.querySelectorAll("main summary")].find((s) => s.innerText === "Advanced")`, "e.click()")
	b.press("Add a measure")
	b.press("Begin")
	b.reads("The experiment has begun")
	if p, err := s.Placement(t.Context(), "window"); err != nil || p.Mode != "experiment" {
		t.Fatalf("mode %v, %v", p, err)
	}
	s.sell(t, "window", "summer", 30, "a")
	time.Sleep(400 * time.Millisecond) // longer than a cohort, a sixteenth of the window; a decision after it closes it
	s.sell(t, "window", "later", 1, "a")
	b.wait(`/[1-9][0-9]* of [0-9]+ visits counted so far/.test(document.querySelector("main").innerText)`)
	b.reads("our-page (compared with)")
	b.reads("reported for 0 visits")
	b.reads("Too early to tell")
	b.wait(`/earns between −?€[0-9.]+ and €[0-9.]+ more per visit/.test(document.querySelector("main").innerText)`)
	b.on(`[...document.querySelectorAll("main a")].find((a) => a.innerText.startsWith("Report to print"))`, "e.removeAttribute('target'), e.click()")
	b.wait(`document.querySelector("main .verdict")`)
	b.dress(phone, "light")
	b.axe("the report", "")
	b.dress(1280, "light")

	// The feed begins with the last decisions, which are not of the last second.
	b.visit("/placements/window/decisions")
	b.reads("summer-29")
	b.reads("0 decisions in the last second")

	// Rows stay where a reader is, and go with their decisions afterwards.
	b.run(`(window.row = document.querySelector("main tbody tr"), row.querySelector("a").focus())`)
	b.reads("The list waits while you point at it.")
	s.sell(t, "window", "waiting", 1, "a")
	b.reads("1 decision in the last second")
	if strings.Contains(b.text(), "waiting-0") {
		t.Error("the list changes under the reader's focus")
	}
	b.run("(window.was = row.innerText, document.activeElement.blur())")
	b.reads("waiting-0")
	if !eval[bool](b, "row.isConnected && row.innerText === was") {
		t.Error("a row became another decision's")
	}

	// On a touch screen it goes on after a tap.
	call(b, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: true})
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: phone, Height: 900,
		DeviceScaleFactor: 1, Mobile: true})
	b.visit("/placements/window/decisions")
	b.reads("waiting-0")
	b.run(`document.querySelector("main tbody").scrollIntoView()`)
	at := eval[[]float64](b, `((r) => [r.x + 9, r.y + 9])(document.querySelector("main tbody").getBoundingClientRect())`)
	call(b, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: "touchStart", TouchPoints: []*input.TouchPoint{{X: at[0], Y: at[1]}}})
	call(b, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: "touchEnd", TouchPoints: []*input.TouchPoint{}})
	b.wait(`document.querySelector("main tbody:hover")`)
	s.sell(t, "window", "touched", 1, "a")
	b.reads("touched-0")
	call(b, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{})

	// It looks further back if other placements have written the last entries.
	other := &api.Placement{MaxSize: 1, Features: config.Features}
	fatal.Or(s.Put(t.Context(), "other", other))(t)
	s.sell(t, "other", "other", 300)
	b.visit("/placements/window/decisions")
	b.reads("later-0")
}

// The sentence below the verdict is about the variant that the verdict names, not the surest one. An experiment that is
// over says how its last visits come to count. A share of first pages seen that is too small stands out.
func TestAhead(t *testing.T) {
	s := serve(t, nil)
	variant := func(name, show string, share float64) api.Variant {
		return api.Variant{Name: name, Show: show, Share: share}
	}
	fatal.Or(s.Put(t.Context(), "window", &api.Placement{MaxSize: 1, Features: []api.Feature{{Name: "price", Kind: "number"}},
		AttributionWindow: "128h", Mode: api.Experimenting, Experiment: &api.Experiment{Name: "summer", Variants: []api.Variant{
			variant("shop", api.ShowBaseline, 0.5), variant("wide", api.ShowPolicy, 0.25), variant("sure", api.ShowUniform, 0.25)}}}))(t)
	b := open(t, s.base)
	b.rewrites(`to.endsWith("/experiment")`, `
		v.experiment.decisions = 100;
		v.experiment.ends = "2026-01-02T00:00:00Z";
		v.experiment.variants[0].decisions_made = 1200;
		Object.assign(v.experiment.variants[1], { deferred: 50, seen: 17, seen_less_than: "sure" });
		v.experiment.variants[1].difference = { low: -5, estimate: 3, high: 11 };
		v.experiment.variants[2].difference = { low: -1, estimate: 1, high: 3 };`)
	b.visit("/placements/window/experiments")
	b.wait(`document.querySelector(".headline")`)
	if text := eval[string](b, `document.querySelector(".headline").innerText`); !strings.HasPrefix(text, "wide earns 3 more") {
		t.Errorf("the page says: %s", text)
	}
	b.reads("100 of 1,200 visits counted so far; the others will count with the first visit that comes 8 hours, a sixteenth of the wait for a sale, after them")
	b.reads("100 of 1,200 visits count so far. Visits that do not count before you end the experiment never will.")
	b.reads("Too early to tell")
	b.reads("First pages seen")
	b.wait(`[...document.querySelectorAll("td .bad")].some((s) => s.innerText === "34%")`)
}

// A placement with a hold-out compares with the shop's own pages before, during and after an experiment.
func TestHoldout(t *testing.T) {
	s := serve(t, nil)
	b := open(t, s.base)
	pick := func(text string) {
		t.Helper()
		b.run(`[...document.querySelectorAll("main label")].find((l) => l.innerText.trim().startsWith(` + quote(text) +
			`)).control.click()`)
	}
	now := func() *api.Placement { t.Helper(); return fatal.Or(s.Placement(t.Context(), "window"))(t) }
	b.visit("/new")
	b.fill("Name", "window")
	b.fill("Currency", "EUR")
	b.wait(`document.querySelector("main input[name=mode]")`)
	pick("Vitrine, but a few shoppers always see your own page")
	b.fill("Shoppers who always see your own page", "50")
	b.press("See what this does")
	b.press("Create the placement")
	b.wait(`location.hash.startsWith("#/placements/window")`)
	b.reads("50% of shoppers always see your own pages")
	p := now()
	if p.Mode != api.Learn || p.Holdout != 0.5 || p.Experiment != nil {
		t.Fatalf("the placement is %+v", p)
	}
	p.Notes, p.Warnings, p.AttributionWindow = nil, nil, "1s"
	fatal.Or(s.Put(t.Context(), "window", p))(t)
	for k := 0; len(fatal.Or(s.Stats(t.Context(), "window"))(t).Gains) == 0; k++ {
		s.sell(t, "window", fmt.Sprint("round-", k), 40, "a")
	}
	b.visit("/placements/window")
	b.reads("Earned over your own pages")
	b.visit("/placements/window/history")
	b.on(`document.querySelector("main .changes button")`, "e.click()")
	b.reads("the comparison with shoppers held out since")
	expect.Equal(t, now().AttributionWindow, "1s", "a question")
	b.visit("/placements/window/experiments")
	b.reads("What Vitrine earns over your own pages")
	b.fill("Name of the experiment", "summer")
	b.press("Begin")
	b.reads("The experiment has begun")
	b.visit("/placements/window")
	b.reads("Earned over your own pages")
	b.reads("your own pages.")
	if text := b.text(); strings.Contains(text, "your own pages, shown to 50%") || strings.Contains(text, "% · between") {
		t.Errorf("the variants' pages are taken for the hold-out's: %s", text)
	}
	const look = `[...document.querySelectorAll("main a.button")].find((a) => a.innerText === "Look at the experiment")`
	b.on(look, "e.click()")
	b.wait(`document.querySelector("main form button.danger")`)
	pick("End “summer”")
	b.press("End the experiment")
	b.reads("The experiment has ended")
	if p := now(); p.Mode != api.Learn || p.Holdout != 0.5 {
		t.Errorf("after the experiment the placement is %+v", p)
	}
	b.reads("What Vitrine earns over your own pages")
}

// What is missing is said with its true reason: a page without items, the wrong time of an experiment, another's pages.
func TestTrueReasons(t *testing.T) {
	s := serve(t, nil)
	price := []api.Feature{{Name: "price", Kind: "number"}}
	put := func(name string, change func(*api.Placement)) {
		t.Helper()
		p := &api.Placement{MaxSize: 1, Features: price, AttributionWindow: "1s"}
		change(p)
		fatal.Or(s.Put(t.Context(), name, p))(t)
	}
	put("watched", func(p *api.Placement) { p.Mode = api.Shadow })
	s.sell(t, "watched", "visit", 20, "a")
	variants := []api.Variant{{Name: "shop", Show: api.ShowBaseline, Share: 0.5}, {Name: "ours", Show: api.ShowPolicy, Share: 0.5}}
	put("planned", func(p *api.Placement) {
		p.Mode, p.Experiment = api.Experimenting, &api.Experiment{Name: "summer", Variants: variants,
			Starts: time.Now().Add(time.Hour)}
	})
	s.sell(t, "planned", "visit", 20, "a")
	put("swaps", func(p *api.Placement) { p.Mode, p.Explore, p.ExploreShare = api.Explore, api.BySwaps, new(0.5) })
	s.sell(t, "swaps", "visit", 20)
	put("capacity", func(p *api.Placement) { p.Mode, p.Capacity, p.ExploreShare = api.Explore, new(1.0), new(0.5) })
	s.sell(t, "capacity", "visit", 20)
	put("empty", func(*api.Placement) {})
	fatal.Or(s.PutItems(t.Context(), "empty", []api.CatalogueItem{
		{ID: "a", Features: api.Values{api.Number("price", 1)}, Revenue: new(0.0)}}))(t)
	for k := range 20 {
		answer := fatal.Or(s.Decide(t.Context(), "empty", &api.Request{Decision: fmt.Sprint(k)}))(t)
		fatal.If(t, s.Outcome(t.Context(), "empty", answer.Decision, ""))
	}

	b := open(t, s.base)
	b.visit("/placements/watched")
	b.reads("1\non your own pages")
	b.visit("/placements/planned")
	b.reads("The comparison begins with the experiment.")
	b.visit("/placements/swaps")
	b.reads("50% of visits see one random item")
	b.reads("One random item on a page does not show what Vitrine earns.")
	b.visit("/placements/capacity")
	b.reads("50% of visits see one random item")
	b.visit("/placements/empty")
	b.reads("No item shown has an outcome yet.")
	b.reads("Nothing is known about tastes yet: they show once items shown have outcomes")
	b.visit("/placements/empty/items")
	b.reads("Never shown: its revenue is 0")

	b.rewrites(`to.endsWith("/explanation")`,
		`Object.assign(v, { source: "policy", same_policy: false, compared_by: "utility", next_best: { items: ["b"], revenue: 2, missed_by: -1 } });`)
	b.rewrites(`to.includes("v1/overview?name=planned")`, `
		Object.assign(v.placements[0].experiment, { starts: "2026-01-01T00:00:00Z", ends: "2026-01-02T00:00:00Z" });
		const i = { low: -1, estimate: 1, high: 3 };
		v.placements[0].gains = [{ variant: "ours", over: "shop", randomized: true, decisions: 9, per_decision: i, total: i },
			{ over: "baseline", randomized: false, decisions: 9, per_decision: i, total: i }]; // of the time before`)
	b.visit("/placements/planned")
	b.reads("No winner")
	b.reads("if all 9 visits saw it. That may be chance")
	b.reads("The two were sometimes shown at different times")
	if strings.Contains(b.text(), "more visits should") {
		t.Errorf("visits tell though one of both is not shown any more: %s", b.text())
	}
	b.visit("/placements/watched/decisions/visit-3")
	b.reads("would earn 1 more, by what Vitrine has learned since.") // and not to learn something
}
