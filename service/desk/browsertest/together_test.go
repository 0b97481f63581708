package browsertest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
)

// goTo shows another view of the same page.
func (b *tab) goTo(view string) {
	b.Helper()
	b.run("(location.hash = " + quote(view) + ", 0)")
	b.wait(rendered + ` && document.querySelector("main").innerText.trim().length > 20`)
}

// onItem presses a button of an item, and then confirms it.
func (b *tab) onItem(title, verb, confirm string) {
	b.Helper()
	find := `[...document.querySelectorAll("main .row-of-items button")].find((b) => b.textContent.startsWith(` +
		quote(verb+" "+title+",") + `))`
	b.on(find, "e.click()")
	b.press(confirm)
	b.wait(`!document.querySelector("main .ask")`)
}

// Undoing a change keeps all later changes, from another tab or from this one.
func TestUndoOne(t *testing.T) {
	s := serve(t, nil)
	s.stocked(t, "home", 6, 0)
	lists := func(pinned, excluded string) {
		t.Helper()
		p := fatal.Or(s.Placement(t.Context(), "home"))(t)
		if got := fmt.Sprint(p.Include, p.Exclude); got != pinned+" "+excluded {
			t.Errorf("pinned and excluded are %s, want %s %s", got, pinned, excluded)
		}
	}
	a, b := open(t, s.base), open(t, s.base)
	a.visit("/placements/home/items")
	b.visit("/placements/home/items")
	a.onItem("Vase 0", "Pin", "Pin it")
	b.onItem("Vase 1", "Exclude", "Exclude it")
	lists("[sku-000000]", "[sku-000001]")
	a.press("Undo")
	a.reads("It is as it was before.")
	lists("[]", "[sku-000001]")
	a.onItem("Vase 3", "Pin", "Pin it")
	a.onItem("Vase 4", "Pin", "Pin it")
	a.goTo("/placements/home/history")
	a.reads("(sku-000003)")
	a.on(`[...document.querySelectorAll("main .changes li")].find((l) => l.innerText.includes("added") && l.innerText.includes("sku-000003")).querySelector("button")`, "e.click()")
	a.reads("That change is undone.")
	lists("[sku-000004]", "[sku-000001]")
}

// Settings that have changed since they were shown are not overwritten, and the page leads on.
func TestChangedElsewhere(t *testing.T) {
	s := serve(t, nil)
	s.empty(t, "home")
	a, b := open(t, s.base), open(t, s.base)
	b.careless = true // the service refuses a change
	for size, in := range map[string]*tab{"4": a, "5": b} {
		in.visit("/placements/home/settings")
		in.fill("At most", size)
		in.press("See what this does")
		in.reads("Vitrine begins again")
	}
	a.press("Make the change")
	a.reads("The change is made")
	b.press("Make the change")
	b.reads("The placement has changed since you opened this page")
	b.press("Show the settings as they are now")
	b.wait(`[...document.querySelectorAll("main label")].find((l) => l.innerText.trim().startsWith("At most"))?.control.value === "4"`)
	expect.Equal(t, fatal.Or(s.Placement(t.Context(), "home"))(t).MaxSize, 4, "size")
	b.goTo("/new")
	b.fill("Name", "home")
	b.press("See what this does")
	b.reads("There is a placement of this name already.")
	b.goTo("/placements/home/settings")
	b.press("See what this does")
	b.reads("Nothing changes")
	fatal.Or(s.Put(t.Context(), "home", &api.Placement{MaxSize: 4, Currency: "EUR",
		Features: []api.Feature{{Name: "price", Kind: "number"}, {Name: "line", Kind: "category", Values: []string{"men's"}}}}))(t)
	b.fill("Type home to delete it", "home")
	b.press("Delete home")
	b.reads("The placement has changed since you opened this page")
	b.press("Show the settings as they are now")
	b.wait(`!document.querySelector("main .failure")`)
	b.press("See what this does")
	b.reads("Nothing changes")
	a.goTo("/placements/home/items")
	a.reads("No items yet")
	a.runs("main .command pre")
	a.wait(row("sku")) // a page without items looks for them
	c := open(t, s.base)
	c.visit("/placements/home/decisions")
	a.careless, c.careless = true, true // the placement is gone
	fatal.If(t, s.Delete(t.Context(), "home"))
	b.press("See what this does")
	b.reads("The placement was deleted, in another tab or by somebody else.")
	b.press("Show the settings as they are now")
	b.reads(`Placement "home": not found`)
	a.reads(`Placement "home": not found`)
	c.reads(`Placement "home": not found`)
}

// An experiment that another tab began or changed is neither ended nor changed back.
func TestExperimentElsewhere(t *testing.T) {
	s := serve(t, nil)
	s.empty(t, "home")
	running := func() *api.Experiment { t.Helper(); return fatal.Or(s.Placement(t.Context(), "home"))(t).Experiment }
	a, b := open(t, s.base), open(t, s.base)
	for name, in := range map[string]*tab{"spring": a, "summer": b} {
		in.visit("/placements/home/experiments")
		in.fill("Name of the experiment", name)
	}
	const asleep = `(Object.defineProperty(document, "hidden", { value: %v, configurable: true }), document.dispatchEvent(new Event("visibilitychange")))`
	b.run(fmt.Sprintf(asleep, true)) // it does not notice
	a.press("Begin")
	a.reads("The experiment has begun")
	b.press("Begin")
	b.reads("An experiment runs already")
	if e := running(); e == nil || e.Name != "spring" {
		t.Fatalf("the experiment is %+v", e)
	}
	b.run(fmt.Sprintf(asleep, false))
	b.reads("Change the shares or the end")
	const first = `document.querySelector("main input[type=number]")`
	a.fill("our-page, in percent", "40")
	a.fill("vitrine, in percent", "60")
	a.press("Change the experiment")
	a.reads("The experiment is changed.")
	b.wait(first + `.value === "40"`)
	a.fill("our-page, in percent", "30")
	b.fill("Ends", "2099-01-01T10:00")
	b.press("Change the experiment")
	b.reads("The experiment is changed.")
	a.reads("Planned until") // it has seen the change of the other tab
	a.fill("vitrine, in percent", "70")
	a.press("Change the experiment")
	a.reads("The experiment has changed since you opened this page")
	a.on(first, `e.dispatchEvent(new FocusEvent("blur"))`) // as a hand that leaves the field
	a.press("Show the experiment as it is now")
	a.wait(first + `.value === "40" && !document.querySelector("main .failure")`)
	if e := running(); e.Variants[0].Share != 0.4 || e.Ends.IsZero() {
		t.Errorf("the experiment is %+v", e)
	}
	b.goTo("/placements/home/history")
	b.reads("our-page 50% → 40%; vitrine 50% → 60%")
	b.wait(`/ends – → .*2099/.test(document.querySelector("main").innerText)`)
}

// An experiment that waits for its start does not run, and one that is ended before it has no time in which it ran.
func TestPlannedExperiment(t *testing.T) {
	s := serve(t, nil)
	s.empty(t, "home")
	b := open(t, s.base)
	b.careless = true
	b.visit("/placements/home/experiments")
	b.fill("Name of the experiment", "spring")
	b.fill("Starts", "2098-01-01T10:00")
	b.fill("Ends", "2097-01-01T10:00")
	b.press("Plan it")
	b.wait(`document.querySelector("main .failure")?.innerText.startsWith("Experiment, ends: ")`)
	b.fill("Ends", "2020-01-01T10:00")
	b.press("Plan it")
	b.reads("The end has passed already.")
	b.fill("Ends", "2099-01-01T10:00")
	b.press("Plan it")
	b.reads("The experiment is planned.")
	b.goTo("/")
	b.run(`[...document.querySelectorAll("main a")].find((b) => b.innerText === "Go to the overview")?.click()`)
	b.wait(`/The experiment .*spring.* starts on .*2098/.test(document.querySelector("main").innerText)`)
	p := fatal.Or(s.Placement(t.Context(), "home"))(t)
	p.Experiment.Ends = p.Experiment.Ends.Add(30 * time.Second)
	fatal.Or(s.Put(t.Context(), "home", p))(t)
	b.goTo("/placements/home/experiments")
	b.fill("vitrine, in percent", "60")
	b.fill("our-page, in percent", "39.99")
	b.reads("The shares sum to 99.99%. They must sum to 100%.")
	b.fill("our-page, in percent", "40")
	b.press("Change the experiment")
	b.reads("The experiment is changed")
	if ends := fatal.Or(s.Placement(t.Context(), "home"))(t).Experiment.Ends; !ends.Equal(p.Experiment.Ends) {
		t.Errorf("another share makes the experiment end at %v, not %v", ends, p.Experiment.Ends)
	}
	b.fill("Ends", "2020-01-01T10:00")
	b.press("Change the experiment")
	b.reads("The end has passed already.")
	b.on(`[...document.querySelectorAll("main label")].find((l) => l.innerText.includes("End “spring”")).control`, "e.click()")
	b.press("End the experiment")
	b.reads("The experiment has ended")
	b.reads("spring, ended before its start")
}

// While the service is away the page says so, and goes on by itself: also a view that was not loaded before, and one
// that asks for nothing.
func TestServiceReturns(t *testing.T) {
	s := serve(t, nil)
	s.empty(t, "home")
	b := open(t, s.base)
	b.careless = true
	online := func(is bool) {
		t.Helper()
		call(b, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
			MatchedNetworkConditions: []*network.Conditions{{Offline: !is, DownloadThroughput: -1, UploadThroughput: -1}}})
	}
	const lost = `document.querySelector(".lost")`
	b.visit("/placements/home/settings")
	b.wait(button("See what this does"))
	online(false)
	b.press("See what this does")
	b.wait(lost)
	online(true)
	b.wait("!" + lost)
	online(false)
	b.run(`(location.hash = "/placements/home/versions", 0)`)
	b.reads("The service does not answer.")
	b.wait(lost)
	online(true)
	b.reads("No version is kept yet.")
	b.wait("!" + lost)
}

// The page of the overview that is shown has placements after the last ones are deleted, and going through pages and
// times by keyboard keeps its place.
func TestPages(t *testing.T) {
	s := serve(t, nil)
	for k := range 13 {
		s.empty(t, fmt.Sprintf("p-%02d", k))
	}
	b := open(t, s.base)
	b.visit("/")
	keeps := func(text string) {
		t.Helper()
		b.on(button(text), "(e.focus(), e.click())")
		b.wait(rendered + ` && document.querySelector("main h2")`)
		if at := eval[string](b, "document.activeElement.innerText"); at != text {
			t.Errorf("after %q the focus is on %.40q", text, at)
		}
	}
	keeps("1 hour")
	b.press("Next")
	b.reads("13 to 13 of 13")
	fatal.If(t, s.Delete(t.Context(), "p-12"))
	b.reads("p-11")
	b.goTo("/placements/p-01")
	keeps("24 hours")
	s.empty(t, "p-12")
	b.goTo("/placements/gone/decisions")
	b.careless = true
	b.reads(`Placement "gone": not found`)
}

// A new placement keeps the filled-in form, and its name only letters that are allowed. The curve of first visits without
// a sale starts at 0 on a readable scale.
func TestNewPlacement(t *testing.T) {
	s := serve(t, nil)
	b := open(t, s.base)
	b.visit("/new")
	b.fill("Name", "my shöp")
	b.fill("At most", "7")
	b.fill("Currency", "eur")
	b.run(`[...document.querySelectorAll("main button")].find((b) => b.innerText === "Add" && b.closest("fieldset").querySelector(".item")).click()`)
	b.wait(`document.querySelectorAll("main .item").length === 2`)
	b.on(`document.querySelectorAll("main .item")[1]?.querySelector("select")`, `(e.value = "number", e.dispatchEvent(new Event("change", { bubbles: true })))`)
	const value = `[...document.querySelectorAll("main .item")].at(-1).querySelector("input.code")`
	b.on(value, `(e.value = "7", e.dispatchEvent(new Event("input", { bubbles: true })))`)
	b.press("Remove price")
	b.wait(value + `.value === "7"`)
	b.on(value, `(e.value = "", e.dispatchEvent(new Event("input", { bubbles: true })))`)
	b.fill("name", "price")
	b.careless = true
	b.fill("Currency", "€")
	b.press("See what this does")
	b.reads("must be three capital letters")
	b.fill("Currency", "eur")
	b.press("See what this does")
	b.reads("This makes the placement")
	b.press("Create the placement")
	b.wait(`location.hash === "#/placements/my-sh-p"`)
	p := fatal.Or(s.Placement(t.Context(), "my-sh-p"))(t)
	if p.MaxSize != 7 || p.Currency != "EUR" || p.Mode != api.Explore {
		t.Errorf("the placement is %+v", p)
	}
	for range 20 {
		page := fatal.Or(s.Decide(t.Context(), "my-sh-p", &api.Request{Items: []api.Item{{ID: "a", Features: api.Values{api.Number("price", 1)}}}}))(t)
		fatal.If(t, s.Outcome(t.Context(), "my-sh-p", page.Decision, ""))
	}
	b.wait(`document.querySelector("main svg.plot text")`)
	labels := eval[[]string](b, `[...document.querySelectorAll("main svg.plot text[text-anchor=end]")].map((t) => t.textContent)`)
	if !slices.Contains(labels, "€0") || !slices.Contains(labels, "€1") {
		t.Errorf("the scale is %q", labels)
	}
}

// A panel that asks closes with Escape or its button, and the focus returns to the button that opened it.
func TestFocusReturns(t *testing.T) {
	s := serve(t, nil)
	s.stocked(t, "home", 6, 12)
	fatal.Or(s.Keep(t.Context(), "home", "before"))(t)
	b := open(t, s.base)
	back := func(opener, panel, leave string) {
		t.Helper()
		b.on(opener, "(e.focus(), e.click())")
		b.wait(panel)
		b.run(leave)
		b.wait("!" + panel)
		if !eval[bool](b, "document.activeElement === "+opener) {
			t.Errorf("after %s the focus is on %.40q", leave, eval[string](b, "document.activeElement.innerText"))
		}
	}
	b.visit("/placements/home/items")
	pin := `document.querySelector("main .row-of-items button")`
	back(pin, `document.querySelector("main .ask")`, button("Leave it")+".click()")
	back(pin, `document.querySelector("main .ask")`,
		`document.querySelector("main .ask").dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }))`)
	b.goTo("/placements/home/versions")
	back(`document.querySelector("main .timeline button")`, `document.querySelector("main .effect")?.innerText.startsWith("Going back changes nothing")`,
		button("Leave it as it is")+".click()")
}

// Leaving a form with changes asks first, in the desk and for another page; a form that is saved, or was left as it is,
// goes without a question.
func TestUnsaved(t *testing.T) {
	s := serve(t, nil)
	s.empty(t, "home")
	b := open(t, s.base)
	const settings, history = `#/placements/home/settings`, `#/placements/home/history`
	goes := func(stays bool, asked int) {
		t.Helper()
		b.mu.Lock()
		b.asked, b.stays = nil, stays
		b.mu.Unlock()
		eval[bool](b, `new Promise((done) => {
			addEventListener("hashchange", () => done(true), { once: true });
			document.querySelector("main .tabs a[href='`+history+`']").click();
		})`)
		b.wait("location.hash === " + quote(map[bool]string{true: settings, false: history}[stays]))
		b.wait(rendered)
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.asked) != asked {
			t.Errorf("leaving the form asks %q, want %d questions", b.asked, asked)
		}
	}
	b.visit("/placements/home/settings")
	b.reads("How many items shoppers see")
	goes(false, 0)
	b.goTo("/placements/home/settings")
	b.fill("At most", "4")
	goes(true, 1)
	b.wait(`[...document.querySelectorAll("main label")].find((l) => l.innerText.trim().startsWith("At most")).control.value === "4"`)
	if eval[bool](b, `dispatchEvent(new Event("beforeunload", { cancelable: true }))`) {
		t.Error("the browser does not ask before it shows another page")
	}
	goes(false, 1)
	if !eval[bool](b, `dispatchEvent(new Event("beforeunload", { cancelable: true }))`) {
		t.Error("the browser asks without a form")
	}
	b.goTo("/placements/home/settings")
	b.run(`document.querySelector("main form details").open = true`)
	b.press("Add") // a button edits the form, too
	goes(false, 1)
	b.goTo("/placements/home/settings")
	b.fill("At most", "5")
	b.press("See what this does")
	b.press("Make the change")
	b.reads("The change is made")
	goes(false, 0)
}

// A number stays as it is typed, digit by digit. If a form is edited while the service works out its effect, the desk
// asks again.
func TestTyped(t *testing.T) {
	s := serve(t, nil)
	s.empty(t, "home")
	b := open(t, s.base)
	b.visit("/placements/home/settings")
	const label = `[...document.querySelectorAll("main label")].find((l) => l.innerText.trim().startsWith(%q))`
	b.on(fmt.Sprintf(label, "Vitrine, but a few visits"), "e.click()")
	for field, typed := range map[string]string{fmt.Sprintf(label, "Visits with random items") + "?.control": "2.75",
		`document.querySelector("main input[aria-label=Time]")`: "1.05"} {
		b.on(field, "(e.focus(), e.select())")
		b.do(chromedp.KeyEvent(typed))
		b.wait(field + ".value === " + quote(typed))
	}
	b.run(`(window.real = fetch, window.fetch = (at, how) => (String(at).endsWith("preview") ? new Promise((go) => { window.go = () => go(real(at, how)); }) : real(at, how)), 0)`)
	b.press("See what this does")
	b.wait("window.go")
	b.fill("At most", "5")
	b.run("(fetch = real, go(), 0)")
	b.reads("What this does")
	b.wait(`["2.75%", "1m3s", "5"].every((v) => [...document.querySelectorAll("main td")].some((d) => d.innerText === v))`)
}
