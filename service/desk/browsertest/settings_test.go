package browsertest

import (
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// types types into a field with the keyboard, after its text.
func (b *tab) types(label, keys string) {
	b.Helper()
	field := `[...document.querySelectorAll("main label")].find((l) => l.textContent.trim().startsWith(` + quote(label) + `))?.control`
	b.on(field, "(e.focus(), e.setSelectionRange(e.value.length, e.value.length))")
	b.do(chromedp.KeyEvent(keys))
}

// A list of ids keeps each key from the first one on, and commas separate ids that are pasted, unless they are in quotes.
func TestListOfIDs(t *testing.T) {
	s := serve(t, nil)
	s.stocked(t, "home", 6, 0)
	p := fatal.Or(s.Placement(t.Context(), "home"))(t)
	p.Notes, p.Warnings, p.Include = nil, nil, []string{"one, with a comma"}
	fatal.Or(s.Put(t.Context(), "home", p))(t)
	b := open(t, s.base)
	b.visit("/placements/home/settings")
	b.on(`[...document.querySelectorAll("main summary")].find((s) => s.innerText === "Advanced")`, "e.click()")
	b.types("Pinned items", "\rsku-000002\r\"a \"\"b\"\", c\"")
	b.types("Excluded items", "sku-000003, sku-000004")
	b.press("See what this does")
	b.press("Make the change")
	b.reads("The change is made")
	p = fatal.Or(s.Placement(t.Context(), "home"))(t)
	if want := []string{"one, with a comma", "sku-000002", `a "b", c`}; !slices.Equal(p.Include, want) {
		t.Errorf("pinned are %q, want %q", p.Include, want)
	}
	if want := []string{"sku-000003", "sku-000004"}; !slices.Equal(p.Exclude, want) {
		t.Errorf("excluded are %q, want %q", p.Exclude, want)
	}
	b.visit("/placements/home/try")
	b.run(`document.querySelector("main form details").open = true`)
	b.fill("kind", "student")
	b.fill("Must not show", `sku-000001, "one, with a comma"`)
	b.run(`(window.real = fetch, window.fetch = (to, o) => (window.sent = o?.body ?? window.sent, real(to, o)), 0)`)
	b.press("Show the page")
	b.wait(`JSON.stringify(JSON.parse(window.sent ?? "{}").exclude) === '["sku-000001","one, with a comma"]'`)
}

// A change that skips visits says so. It is not made before as much was learned, unless a person accepts less, and a person
// may cancel it.
func TestRelearnNothing(t *testing.T) {
	s := serve(t, nil)
	s.stocked(t, "home", 6, 9)
	b := open(t, s.base)
	b.visit("/placements/home/settings")
	b.fill("At most", "2")
	b.press("See what this does")
	b.reads("skips decisions that showed more than 2 items: unless your requests ask for at most 2, it may never learn half as many")
	b.reads("takes over once it has learned from half as many visits as the present one, or when you say so")
	b.press("Make the change")
	b.reads("Vitrine learns from the log first, and makes the change then.")
	size := func() int { t.Helper(); return fatal.Or(s.Placement(t.Context(), "home"))(t).MaxSize }
	expect.Equal(t, size(), 3, "items while Vitrine learns")
	b.visit("/placements/home")
	b.wait(`/has learned from [0-3] visits? so far. The present learner has learned from 9 visits. The change is made once Vitrine has read the log and learned from half as many. It skips visits that showed more than 2 items/.test(document.querySelector("main").innerText)`)
	b.visit("/placements/home/items")
	b.reads("Settings, pins and exclusions stay as they are until then.")
	b.on(`[...`+row("Can be shown")+`.querySelectorAll("button")][0]`, "e.click()")
	b.press("Pin it")
	b.reads("Vitrine is learning a change from the log. Wait until it is made, or cancel it under Settings.")
	b.take() // the answer 409
	b.visit("/placements/home")
	b.press("Cancel the change")
	b.wait(`!document.querySelector("main progress")`)
	b.visit("/placements/home/settings")
	b.fill("At most", "2")
	b.press("See what this does")
	b.press("Make the change")
	b.reads("Vitrine learns a change from the log")
	b.visit("/placements/home/history")
	b.reads("Learning from the log began")
	b.reads("Items to show at most: 3 → 2")
	b.run(`(window.real = fetch, window.fetch = async (to, o) => {
		const answer = await real(to, o);
		if (!String(to).endsWith("/stats")) return answer;
		const v = await answer.json();
		if (v.relearning) v.relearning.ready &&= window.read ?? false;
		return Response.json(v);
	}, 0)`)
	b.wait(`!` + button("Make the change now"))
	b.run("window.read = true")
	b.press("Make the change now")
	b.reads("The change is made.")
	expect.Equal(t, size(), 2, "items after the change")
	b.reads("Learning from the log finished, and settings changed")
}

// Who chooses the shop's own page learns that requests must send it. A new placement asks once for its currency.
func TestOwnPage(t *testing.T) {
	s := serve(t, nil)
	s.stocked(t, "home", 6, 0)
	b := open(t, s.base)
	b.visit("/placements/home/settings")
	b.reads("choose “Your own page” above. Every request must then send baseline, or it is refused.")
	b.on(`[...document.querySelectorAll("main label")].find((l) => l.innerText.includes("Your own page, while Vitrine learns from it")).control`, "e.click()")
	b.reads("Every request must then send baseline, the ids that your page would show by itself. Other requests are refused.")
	b.run(`window.confirm = () => true`)
	b.goTo("/new")
	b.fill("Name", "window")
	b.wait(`[...document.querySelectorAll("main summary")].some((s) => s.innerText === "Advanced")`)
	if n := eval[int](b, `[...document.querySelectorAll("main label")].filter((l) => l.textContent.startsWith("Currency")).length`); n != 1 {
		t.Errorf("a new placement has %d fields for its currency", n)
	}
}

// The currency of past amounts is not converted, and the desk says so. It knows the codes.
func TestCurrencyChanges(t *testing.T) {
	s := serve(t, nil)
	s.stocked(t, "home", 6, 0)
	b := open(t, s.base)
	b.visit("/placements/home/settings")
	b.on(`[...document.querySelectorAll("main summary")].find((s) => s.innerText === "Advanced")`, "e.click()")
	b.fill("Currency", "USD")
	b.press("See what this does")
	b.reads("not converted: the desk shows the same numbers in USD")
	if strings.Contains(b.text(), "No currency has the code") {
		t.Error("USD is no currency")
	}
	b.fill("Currency", "ZZZ")
	b.press("See what this does")
	b.reads("No currency has the code ZZZ")
}

// A limit's form has the members that a placement may have, and its errors count from 1.
func TestLimitForm(t *testing.T) {
	s := serve(t, nil)
	s.stocked(t, "home", 6, 0)
	b := open(t, s.base)
	b.careless = true // the service refuses the limit
	b.visit("/placements/home/settings")
	b.on(`[...document.querySelectorAll("main summary")].find((s) => s.innerText === "Advanced")`, "e.click()")
	b.on(`[...document.querySelectorAll("main fieldset")].find((f) => f.querySelector("legend").innerText.startsWith("Limits")).querySelector(":scope > button")`, "e.click()")
	b.wait(`document.querySelector("main fieldset[aria-label='limits 1']")`)
	b.wait(`document.activeElement.closest("fieldset[aria-label='limits 1']")`)
	if labels := eval[[]string](b, `[...document.querySelectorAll("main fieldset[aria-label='limits 1'] label")].map((l) => l.innerText.trim())`); slices.Contains(labels, "items") || !slices.Contains(labels, "group") {
		t.Errorf("the form of a limit has %q", labels)
	}
	b.press("See what this does")
	b.wait(`document.querySelector("main .failure")?.textContent.startsWith("limits 1: must have one of")`)
}
