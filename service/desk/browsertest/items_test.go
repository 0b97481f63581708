package browsertest

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
)

// stocked makes a placement with items that have titles and prices, and decisions with outcomes.
func (s *served) stocked(t *testing.T, name string, items, decisions int) {
	t.Helper()
	fatal.Or(s.Put(t.Context(), name, &api.Placement{MaxSize: 3, Currency: "EUR",
		Features: []api.Feature{
			{Name: "price", Kind: "number"}, {Name: "kind", Kind: "category", From: "shopper",
				Values: []string{"student", "family"}},
		}}))(t)
	var list []api.CatalogueItem
	for i := range items {
		item := api.CatalogueItem{ID: fmt.Sprintf("sku-%06d", i), Revenue: new(float64(1 + i%9)),
			Features: api.Values{api.Number("price", float64(i%97))}}
		item.Payload = fmt.Appendf(nil, `{"title":"Vase %d","price":%d}`, i, i%97)
		if i == 2 {
			item.Available = new(false)
		}
		if list = append(list, item); len(list) == 1000 || i == items-1 {
			fatal.Or(s.PutItems(t.Context(), name, list))(t)
			list = list[:0]
		}
	}
	for k := range decisions {
		answer := fatal.Or(s.Decide(t.Context(), name, &api.Request{Decision: fmt.Sprintf("d-%d", k),
			User: api.Values{api.Text("kind", []string{"student", "family"}[k%2])}}))(t)
		taken := ""
		if k%3 > 0 && len(answer.Items()) > 0 {
			taken = answer.Items()[0]
		}
		fatal.If(t, s.Outcome(t.Context(), name, answer.Decision, taken))
	}
}

// A placement that uses another one's catalogue says how to put items there.
func TestItemsOfAnother(t *testing.T) {
	s := serve(t, nil)
	s.empty(t, "home")
	config := fatal.Or(s.Placement(t.Context(), "home"))(t)
	config.Notes, config.Warnings, config.CatalogueOf = nil, nil, "home"
	fatal.Or(s.Put(t.Context(), "cart", config))(t)
	b := open(t, s.base)
	b.visit("/placements/cart/items")
	b.reads("the catalogue of “home” once")
	b.reads("--placement home puts a whole file there")
	b.runs("main .command pre")
	b.wait(row("sku")) // a page without items looks for them
}

// runs runs the command that an element shows.
func (b *tab) runs(element string) {
	b.Helper()
	b.wait(`document.querySelector(` + quote(element) + `)`)
	command := eval[string](b, `document.querySelector(`+quote(element)+`).innerText`)
	if !strings.HasPrefix(command, "curl ") {
		b.Fatal(command)
	}
	out := fatal.Or(exec.CommandContext(b.ctx, "sh", "-c", strings.Replace(command, "curl ",
		"curl -sS --fail-with-body ", 1)).CombinedOutput())(b)
	if strings.Contains(string(out), "problem") {
		b.Fatalf("%s: %s", command, out)
	}
}

// row is an expression that finds a row of items by a text in it.
func row(text string) string {
	return `[...document.querySelectorAll("main .tall .row-of-items")].find((r) => r.innerText.includes(` +
		quote(text) + `))`
}

// An item is excluded after the page says what that costs, is on no page from then on, and comes back when that is
// undone; the history says who did it and can undo it too.
func TestItemMustGo(t *testing.T) {
	s := serve(t, nil)
	s.stocked(t, "home", 30, 60)
	b := open(t, s.base)
	b.visit("/placements/home/items")
	b.fill("Find", "sku-000002") // which the list may show further down
	b.wait(row("Vase 2\n"))
	expect.Contains(t, eval[string](b, row("sku-000002")+".innerText"), "Marked unavailable", "an item that is not available")
	b.fill("Find", "sku-000003")
	b.wait(row("Can be shown"))
	act := func(item, button string) {
		t.Helper()
		b.fill("Find", item)
		find := `[...` + row(item) + `.querySelectorAll("button")].find((b) => b.innerText.startsWith(` +
			quote(button) + `))`
		b.wait(`document.querySelectorAll("main .tall .row-of-items").length === 1 && ` + row(item) + "&&" +
			find) // no row of the list before
		b.on(find, "e.click()")
	}
	excluded := func() []string {
		t.Helper()
		return fatal.Or(s.Placement(t.Context(), "home"))(t).Exclude
	}
	act("sku-000003", "Exclude")
	b.reads("Exclude “Vase 3”?")
	b.wait(`/It costs (nothing|about)|costs about €/.test(document.querySelector("main .ask").innerText)`)
	if len(excluded()) > 0 {
		t.Fatal("an item is excluded before it is confirmed")
	}
	b.press("Exclude it")
	b.reads("“Vase 3” is on no page now.")
	expect.List(fatal.T(t), excluded(), []string{"sku-000003"}, "excluded are")
	b.wait(row("Excluded: on no page"))
	b.press("Undo")
	b.reads("It is as it was before.")
	if got := excluded(); got != nil {
		t.Errorf("after undoing it excluded are %q", got)
	}
	act("sku-000004", "Pin")
	b.press("Pin it")
	b.reads("“Vase 4” is on every page now.")
	for k := range 5 {
		answer := fatal.Or(s.Decide(t.Context(), "home", &api.Request{Decision: fmt.Sprint("pinned-", k),
			User: api.Values{api.Text("kind", "student")}}))(t)
		if !slices.Contains(answer.Items(), "sku-000004") {
			t.Errorf("a page without the pinned item: %q", answer.Items())
		}
	}
	b.visit("/placements/home/history")
	b.reads("Pinned items: added “")
	b.reads("Vase 4")
	b.reads("(sku-000004)")
	b.on(`[...document.querySelectorAll("main .changes button")][0]`, "e.click()")
	b.reads("That change is undone.")
	if p := fatal.Or(s.Placement(t.Context(), "home"))(t); p.Include != nil {
		t.Errorf("after undoing it pinned are %q", p.Include)
	}
	b.visit("/placements/home/decisions/pinned-1")
	b.reads("Vase 4")
	b.reads("student")
	if strings.Contains(b.text(), "sku-000004") && !strings.Contains(b.text(), "Vase 4") {
		t.Error("the page has ids in place of titles")
	}
	p := fatal.Or(s.Placement(t.Context(), "home"))(t)
	p.Notes, p.Warnings, p.Include = nil, nil, []string{"sku-000004", "sku-000005", "sku-000006"}
	fatal.Or(s.Put(t.Context(), "home", p))(t)
	b.visit("/placements/home/items")
	act("sku-000007", "Pin")
	b.press("Pin it")
	b.reads("3 items are pinned already, and a page shows no more.")
}

// A hundred thousand items are a list with the rows in view only, which finds the last one as quickly as the first. Their
// page can be tried, and the cost of a rule is known.
func TestManyItems(t *testing.T) {
	s := serve(t, nil)
	s.stocked(t, "home", 100_000, 0)
	b := open(t, s.base)
	b.visit("/placements/home/items")
	b.reads("100,000 items")
	b.run(`(document.querySelector("main .rows").scrollTop = 1e9, 0)`)
	b.wait(row("sku-099999"))
	if n := eval[int](b, `document.querySelectorAll("main .row-of-items").length`); n > 40 {
		t.Errorf("%d rows are in the page", n)
	}
	b.fill("Find", "vase 5432")
	b.reads("11 items")
	b.wait(row("sku-054321"))
	b.on(`[...`+row("sku-054321")+`.querySelectorAll("button")].find((b) => b.innerText.startsWith("Pin"))`, "e.click()")
	b.wait(`/It costs nothing|costs about €/.test(document.querySelector("main .ask").innerText)`)
	b.press("Leave it")
	b.fill("Show", "unavailable")
	b.fill("Find", "")
	b.reads("1 item")
	b.wait(row("sku-000002"))
	b.goTo("/placements/home/try")
	b.reads("Who comes")
	b.fill("kind", "student")
	b.press("Show the page")
	b.reads("out of 99,999 candidates")

	// As many rows as browsers have no room for.
	b.run(`(window.real = fetch, window.fetch = (u, i) => u.includes("/shelf?") ? Promise.resolve(Response.json({ count: 1e6, complete: true, items: Array.from({ length: 100 }, (_, k) => ({ item: { id: "item-" + (Number(new URLSearchParams(u.split("?")[1]).get("from")) + k) }, shown: 0, taken: 0, revenue: 0 })) })) : real(u, i), 0)`)
	b.goTo("/placements/home/items")
	b.reads("1,000,000 items")
	for at, want := range map[string]string{"1e9": "item-999999", "(e.scrollHeight - e.clientHeight) / 2": "item-500000", "0": "item-0"} {
		b.on(`document.querySelector("main .rows")`, "e.scrollTop = "+at)
		b.wait(`((r) => r && ((a, b) => a.bottom > b.top && a.top < b.bottom)(r.getBoundingClientRect(), r.closest(".rows").getBoundingClientRect()))(` +
			row(want) + `)`)
	}
}

// The number that says what a placement earns is the same on the overview, on its page and in the statistics.
func TestOneNumber(t *testing.T) {
	s := serve(t, nil)
	b := open(t, s.base)
	b.visit("/new")
	b.fill("Name", "window")
	b.fill("Currency", "USD")
	b.press("See what this does")
	b.press("Create the placement")
	b.wait(`location.hash.startsWith("#/placements/window")`)
	p := fatal.Or(s.Placement(t.Context(), "window"))(t)
	if p.Mode != api.Explore || *p.ExploreShare != 0.02 || p.Currency != "USD" {
		t.Fatalf("a new placement has the mode %s and the currency %q", p.Mode, p.Currency)
	}
	b.reads("Waiting for the first comparison")
	p.Notes, p.Warnings, p.AttributionWindow, p.ExploreShare = nil, nil, "1s", new(0.5)
	fatal.Or(s.Put(t.Context(), "window", p))(t)
	for k := 0; ; k++ {
		s.sell(t, "window", fmt.Sprint("round-", k), 40)
		if len(fatal.Or(s.Stats(t.Context(), "window"))(t).Gains) > 0 {
			break
		}
	}
	const figure = `[...document.querySelectorAll("main .figure")].find((f) => f.innerText.startsWith("Earned over random pages"))?.querySelector(".value").innerText`
	var seen []string
	for _, view := range []string{"/", "/placements/window"} {
		b.visit(view)
		b.wait(figure)
		seen = append(seen, eval[string](b, figure))
	}
	total := fatal.Or(s.Stats(t.Context(), "window"))(t).Gains[0].Total.Estimate
	if want := eval[string](b, fmt.Sprintf(
		`((v) => Math.abs(v) >= 100 ? Number(v.toPrecision(3)).toLocaleString("en-US", { style: "currency", currency: "USD", signDisplay: "exceptZero", maximumFractionDigits: 0 }) : v.toLocaleString("en-US", { style: "currency", currency: "USD", signDisplay: "exceptZero" }))(%v).replace("-", "−")`, total)); seen[0] != seen[1] || seen[0] != want {
		t.Errorf("the pages have %q, the statistics %s", seen, want)
	}
}

// A gain is a share of the random pages' revenue, and later revenue does not change it.
func TestShareOfGain(t *testing.T) {
	s := serve(t, nil)
	p := &api.Placement{MaxSize: 1, AttributionWindow: "1s", Mode: api.Explore, ExploreShare: new(0.5),
		Features: []api.Feature{{Name: "price", Kind: "number"}}}
	fatal.Or(s.Put(t.Context(), "window", p))(t)
	sold := map[string][2]int{} // pages and sales
	visit := func(id string, buys func(string) bool) {
		t.Helper()
		answer := fatal.Or(s.Decide(t.Context(), "window", &api.Request{Decision: id, Items: []api.Item{
			{ID: "a", Features: api.Values{api.Number("price", 1)}},
			{ID: "b", Features: api.Values{api.Number("price", 2)}}}}))(t)
		d := fatal.Or(s.Decision(t.Context(), "window", id))(t)
		taken, n := "", sold[d.Source]
		if n[0]++; buys(d.Source) {
			n[1]++
			taken = answer.Items()[0]
		}
		sold[d.Source] = n
		fatal.If(t, s.Outcome(t.Context(), "window", id, taken))
	}
	for k := 0; k < 100 || len(fatal.Or(s.Stats(t.Context(), "window"))(t).Gains) == 0; k++ {
		visit(fmt.Sprint("d-", k), func(by string) bool { return by == "policy" || k%4 == 0 })
	}
	b := open(t, s.base)
	share := func() string {
		t.Helper()
		b.visit("/placements/window")
		const context = `[...document.querySelectorAll("main .figure")].find((f) => f.innerText.startsWith("Earned over random pages"))?.innerText.match(/[-+][0-9]+%/)?.[0]`
		b.wait(context)
		return eval[string](b, context)
	}
	fatal.Or(s.Put(t.Context(), "window", &api.Placement{MaxSize: 1, AttributionWindow: "1s", Features: p.Features}))(t)
	time.Sleep(1200 * time.Millisecond) // all visits with random pages count
	visit("after", func(string) bool { return false })
	before := share()
	for k := range 300 {
		visit(fmt.Sprint("later-", k), func(string) bool { return false })
	}
	if after := share(); after != before {
		t.Errorf("the gain was %s of what random pages earn, and is %s after visits without them", before, after)
	}
}

// A decision marks every item that was bought, the list of decisions names them, and a view that is shown again knows an
// item's new title.
func TestBought(t *testing.T) {
	s := serve(t, nil)
	s.stocked(t, "home", 6, 0)
	d := fatal.Or(s.Decide(t.Context(), "home", &api.Request{Decision: "two",
		User: api.Values{api.Text("kind", "student")}}))(t).Items()
	s.ask(t, "POST", "v1/placements/home/decisions/two/outcome", map[string]any{"choices": []any{
		map[string]any{"item": d[0], "quantity": 2, "value": 3}, map[string]any{"item": d[1], "quantity": 1, "value": 4}}}, nil)
	b := open(t, s.base)
	b.visit("/placements/home/decisions/two")
	b.reads("which has earned €7.00")
	title := func(id string) string { return "Vase " + id[len(id)-1:] } // of six items
	b.goTo("/placements/home/decisions")
	b.reads("bought " + title(d[0]) + ", " + title(d[1]))
	b.goTo("/placements/home/decisions/two")
	b.wait(`document.querySelector("main td b.good")`)
	expect.Equal(t, eval[int](b, `document.querySelectorAll("main td b.good").length`), 2,
		"of two items are marked as bought")
	s.ask(t, "PATCH", "v1/placements/home/items", map[string]any{"items": []any{
		map[string]any{"id": d[0], "payload": map[string]any{"title": "Renamed"}}}}, nil)
	b.run(`(Date.now = ((now) => () => now() + 120_000)(Date.now), 0)`)
	b.goTo("/placements/home/history")
	b.goTo("/placements/home/decisions/two")
	b.reads("Renamed")
	d = fatal.Or(s.Decide(t.Context(), "home", &api.Request{Decision: "slots", User: api.Values{api.Text("kind", "student")},
		Slots: []api.Slot{{ID: "top"}, {ID: "side"}}}))(t).Items()
	fatal.If(t, s.Outcome(t.Context(), "home", "slots", d[1]))
	b.goTo("/placements/home/decisions/slots")
	b.wait(`document.querySelector("main td b.good")?.parentElement.innerText.includes("in side")`)
}

// Known amounts and features show all their digits, the scales of tastes tell their values apart, and names that are read from
// right to left keep their order.
func TestExact(t *testing.T) {
	s := serve(t, nil)
	features := []api.Feature{{Name: "price", Kind: "number"}, {Name: "year", Kind: "number"},
		{Name: "born", Kind: "number", From: "shopper"}}
	fatal.Or(s.Put(t.Context(), "home", &api.Placement{MaxSize: 2, Currency: "EUR", Features: features}))(t)
	var items []any
	for i := range 4 {
		items = append(items, map[string]any{"id": fmt.Sprint("i", i), "revenue": 1250.25 + float64(i),
			"features": map[string]any{"price": 1250.25 + float64(i), "year": 1990 + i},
			"payload":  map[string]any{"title": fmt.Sprint(arabic, i), "price": 1250.25 + float64(i)}})
	}
	s.ask(t, "PUT", "v1/placements/home/items", map[string]any{"items": items}, nil)
	var shown []string
	for k := range 40 { // tastes see the last page of each item: no two pages were for the same year
		shown = fatal.Or(s.Decide(t.Context(), "home", &api.Request{Decision: fmt.Sprint("d", k),
			User: api.Values{api.Number("born", 1942+float64(k))}}))(t).Items()
		fatal.If(t, s.Outcome(t.Context(), "home", fmt.Sprint("d", k), shown[0]))
	}
	b := open(t, s.base)
	b.visit("/placements/home/decisions/d35")
	b.reads("born 1977")
	b.wait(`/which has earned €1,25\d\.25/.test(document.querySelector("main").innerText)`)
	b.wait(`[...document.querySelectorAll("main .product small")].length === 2`)
	if bad := eval[[]string](b, `[...document.querySelectorAll("main .product small")].map((s) => s.innerText).filter((s) => !/^€1,25\d\.25( · bought)?$/.test(s))`); len(bad) > 0 {
		t.Errorf("prices %q", bad)
	}
	b.reads("“\u2068" + arabic)
	b.visit("/placements/home/tastes")
	b.wait(`document.querySelectorAll("main .plot").length === 3`)
	if scales := eval[[]string](b, `[...document.querySelectorAll("main .plot")].map((p) => [...p.querySelectorAll("text[text-anchor=middle]")].map((t) => t.textContent)).filter((l) => new Set(l).size < l.length).map(String)`); len(scales) > 0 {
		t.Errorf("scales %q", scales)
	}
}

// Yens have digits after the point if these matter, a later sale counts on a page without a sale at first,
// and a broken picture is replaced by a letter in the rows of its product only.
func TestRowsChange(t *testing.T) {
	s := serve(t, nil)
	fatal.Or(s.Put(t.Context(), "home", &api.Placement{MaxSize: 1, Currency: "JPY",
		Features: []api.Feature{{Name: "price", Kind: "number"}}}))(t)
	const picture = `{"image": "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/%3E"}`
	fatal.Or(s.PutItems(t.Context(), "home", []api.CatalogueItem{
		{ID: "a", Features: api.Values{api.Number("price", 1)}, Payload: []byte(`{"image": "data:image/png;base64,AAAA"}`)},
		{ID: "b", Features: api.Values{api.Number("price", 2)}, Payload: []byte(picture)}}))(t)
	decide := func(id, item string) {
		t.Helper()
		fatal.Or(s.Decide(t.Context(), "home", &api.Request{Decision: id, Candidates: []string{item}}))(t)
		fatal.If(t, s.Outcome(t.Context(), "home", id, ""))
	}
	decide("first", "a")
	s.ask(t, "POST", "v1/placements/home/decisions/first/corrections", map[string]any{"id": "c", "item": "a", "value": 0.125}, nil)
	b := open(t, s.base)
	b.visit("/placements/home/decisions/first")
	b.reads("has earned ¥0.125, with corrections: c (¥0.125)")
	b.goTo("/placements/home/decisions")
	b.wait(`document.querySelector("main .product .no-picture")`)
	decide("second", "b")
	b.wait(`document.querySelectorAll("main td .product img").length === 1`)
}

// The desk reads numbers of a payload that are texts, as those from CSV are.
func TestTextNumbers(t *testing.T) {
	s := serve(t, nil)
	s.stocked(t, "home", 3, 0)
	s.ask(t, "PATCH", "v1/placements/home/items", map[string]any{"items": []any{
		map[string]any{"id": "sku-000001", "payload": map[string]any{"title": "Bowl", "price": "12.50", "stock": "7", "margin": "3.25"}}}}, nil)
	b := open(t, s.base)
	b.visit("/placements/home/items")
	b.wait(row("Bowl"))
	text := eval[string](b, row("Bowl")+".innerText")
	for _, want := range []string{"€12.50", "margin €3.25", "7 left"} {
		expect.Contains(t, text, want, "the row")
	}
}

// Narrow rows and large fonts cut no number and no heading, and a long title leaves room for the price and the id.
func TestNarrowRows(t *testing.T) {
	s := serve(t, nil)
	s.stocked(t, "home", 3, 0)
	b := open(t, s.base)
	b.rewrites(`to.includes("/shelf")`,
		`for (const i of v.items) Object.assign(i, { shown: 125_213, taken_share: 0.116, revenue_per_page: 123.45 }).item.payload.title = "A vase of clay, burnt by hand, with a very long name";`)
	for _, c := range []struct{ width, font int }{{1280, 16}, {950, 16}, {700, 16}, {390, 16}, {390, 24}, {1280, 32}} {
		width := c.width
		call(b, page.SetFontSizes, page.SetFontSizesParams{FontSizes: &page.FontSizes{Standard: int64(c.font)}})
		b.dress(width, "light")
		b.visit("/placements/home/items")
		b.wait(row("125,213"))
		const cut = `[...document.querySelectorAll(".row-of-items.heading > *, .row-of-items .number")].filter((e) => e.scrollWidth > e.clientWidth || e.scrollHeight > e.clientHeight).map((e) => e.innerText)`
		if texts := eval[[]string](b, cut); len(texts) > 0 {
			t.Errorf("%d pixels and a font of %d cut %q", width, c.font, texts)
		}
		if !eval[bool](b, `[...document.querySelectorAll(".row-of-items .names > small > bdi")].every((e) => ((id, cell) => id.bottom <= cell.bottom && id.width > 0)(e.getBoundingClientRect(), e.closest("[role=cell]").getBoundingClientRect()))`) {
			t.Errorf("%d pixels hide an id in a font of %d", width, c.font)
		}
		if !eval[bool](b, `((names) => new Set(names).size === names.length)([...document.querySelectorAll(".tall button")].map((e) => e.textContent))`) {
			t.Errorf("two buttons have the same name")
		}
		const out = `[...document.querySelectorAll(".tall .row-of-items :is(button, .names bdi)")].filter((e) => ((a, r) => a.height < 10 || a.width < 30 || a.bottom > r.bottom || a.right > r.right)(e.getBoundingClientRect(), e.closest(".row-of-items").getBoundingClientRect())).map((e) => e.innerText)`
		if texts := eval[[]string](b, out); len(texts) > 0 {
			t.Errorf("%d pixels and a font of %d hide %q", width, c.font, texts)
		}
	}
}
