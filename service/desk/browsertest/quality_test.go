package browsertest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/host"
)

// widths are the screens that no view is wider than.
var widths = []int{320, 390, 768, 1280, 1920}

// phone is the widest screen on which no table scrolls sideways.
const phone = 390

// cutOff lists the tables and other areas that scroll sideways, but for code and the row of tabs.
const cutOff = `[...document.querySelectorAll("main *")].filter((e) => e.scrollWidth > e.clientWidth + 1 && ["auto", "scroll"].includes(getComputedStyle(e).overflowX) && !e.matches("pre, .tabs, textarea, input")).map((e) => e.ariaLabel ?? e.tagName + "." + e.className)`

// fits reports a view that is wider than a screen, or a part of it that a phone must scroll sideways. Details are open.
func (b *tab) fits(view string) {
	b.Helper()
	b.run(`document.querySelectorAll("main details:not([open])").forEach((d) => { d.open = true; })`)
	for _, width := range widths {
		b.dress(width, "light")
		b.wait("innerWidth === " + fmt.Sprint(width))
		wide := 0
		for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(50 *
			time.Millisecond) { // charts follow the window
			if wide = eval[int](b, "document.documentElement.scrollWidth"); wide <= width ||
				time.Now().After(deadline) {
				break
			}
		}
		if cut := eval[[]string](b, cutOff); width <= phone && len(cut) > 0 {
			b.Errorf("%s scrolls sideways on a screen of %d: %q", view, width, cut)
		}
		if wide > width {
			who := eval[string](b, `[...document.querySelectorAll("*")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll")).map((e) => e.tagName + "." + e.className + "#" + e.id).slice(0, 12).join(" ")`)
			b.Errorf("%s is %d px wide on a screen of %d: %s", view, wide, width, who)
		}
	}
}

// arabic is a text that is read from right to left, with markup-like brackets.
const arabic = "مزهرية زجاجية (كبيرة) 12 سم"

// rightToLeft makes a placement with names of items, notes and an experiment that are read from right to left.
func (s *served) rightToLeft(t *testing.T, name string) {
	t.Helper()
	ctx := t.Context()
	config := &api.Placement{MaxSize: 2, AttributionWindow: "5s",
		Features: []api.Feature{{Name: "price", Kind: "number"}, {Name: "وقت", Kind: "category", From: "shopper",
			Values: []string{arabic, "b"}, AllowOther: true, Default: "b"}}}
	fatal.Or(s.Put(ctx, name, config))(t)
	s.sell(t, name, "rtl", 8)
	fatal.Or(s.Keep(ctx, name, arabic))(t)
	config.Mode = api.Experimenting
	config.Experiment = &api.Experiment{Name: arabic, Segments: "وقت",
		Variants: []api.Variant{{Name: "a", Show: api.ShowBaseline, Share: 0.5},
			{Name: "b", Show: api.ShowPolicy, Share: 0.5}}}
	fatal.Or(s.Put(ctx, name, config))(t)
	s.sell(t, name, "more", 8, "a")
}

// No view is wider than its screen, whatever it contains.
func TestWidths(t *testing.T) {
	for what, c := range map[string]struct {
		fill     func(s *served, t *testing.T, name string)
		name, id string
	}{
		"long":  {(*served).many, longName, longDecision},
		"rtl":   {(*served).rightToLeft, "rtl", "rtl-3"},
		"empty": {func(s *served, t *testing.T, name string) { s.empty(t, name) }, "empty", "none"},
		"shop":  {func(s *served, t *testing.T, name string) { s.stocked(t, name, 30, 60) }, "home", "d-3"},
	} {
		t.Run(what, func(t *testing.T) {
			s := serve(t, nil)
			c.fill(s, t, c.name)
			b := open(t, s.base)
			b.careless = what == "empty" // the decision does not exist
			for _, view := range views(t, map[string]string{"name": c.name, "id": c.id, "page": "api"}) {
				b.visit(view)
				b.wait(`document.querySelector("main").innerText.trim().length > 20`)
				b.fits(view)
			}
		})
	}
}

// Pages print dark on white, also from a dark screen.
func TestPrint(t *testing.T) {
	s := serve(t, nil)
	s.empty(t, "home")
	b := open(t, s.base)
	b.visit("/placements/home")
	for media, want := range map[string]string{"screen": "rgb(20, 20, 22)", "print": "rgb(246, 247, 249)"} {
		call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: media,
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
		b.wait(`getComputedStyle(document.documentElement).backgroundColor === ` + quote(want))
	}
}

// On a phone the current tab is in sight, no table is cut off, and no labels of charts touch.
func TestPhone(t *testing.T) {
	s := serve(t, nil)
	s.stocked(t, "home", 30, 60)
	config := fatal.Or(s.Placement(t.Context(), "home"))(t)
	config.Notes, config.Warnings = nil, nil
	config.AttributionWindow, config.Mode = "5s", api.Experimenting
	config.Experiment = &api.Experiment{Name: "summer", Segments: "kind",
		Variants: []api.Variant{{Name: "our-page", Show: api.ShowBaseline, Share: 0.5},
			{Name: "vitrine", Show: api.ShowPolicy, Share: 0.5}}}
	fatal.Or(s.Put(t.Context(), "home", config))(t)
	sell := func(prefix string, n int) {
		t.Helper()
		for k := range n {
			r := &api.Request{Decision: fmt.Sprint(prefix, k), ShopperID: fmt.Sprint("shopper-", k),
				Baseline: []string{"sku-000001"},
				User:     api.Values{api.Text("kind", []string{"student", "family"}[k%2])}}
			answer := fatal.Or(s.Decide(t.Context(), "home", r))(t)
			fatal.If(t, s.Outcome(t.Context(), "home", answer.Decision, answer.Items()[0]))
		}
	}
	for round := range 3 {
		sell(fmt.Sprint("e", round, "-"), 20)
		time.Sleep(400 * time.Millisecond) // longer than a cohort
	}
	sell("last-", 1)
	b := open(t, s.base)
	b.dress(390, "light")
	b.visit("/placements/home/experiments")
	b.wait(`/[1-9][0-9]* of [0-9]+ visits counted so far/.test(document.querySelector("main").innerText)`)
	for _, view := range views(t, map[string]string{"name": "home", "id": "e0-3", "page": "placements"}) {
		if !strings.HasPrefix(view, "/placements") {
			continue
		}
		b.visit(view)
		b.wait(`document.querySelector("main").innerText.trim().length > 20`)
		if strings.HasSuffix(view, "/decisions") {
			b.wait(`document.querySelector("main td")`)
		}
		if !eval[bool](b, `((r) => r.left >= 0 && r.right <= innerWidth)(document.querySelector(".tabs [aria-current]").getBoundingClientRect())`) {
			t.Errorf("%s: the current tab is not in sight", view)
		}
		b.fits(view)
		b.dress(phone, "light")
		if touch := eval[[]string](b, `[...document.querySelectorAll("main svg.plot")].flatMap((p) => { const l = [...p.querySelectorAll("text")].map((t) => [t.textContent, t.getBoundingClientRect()]); return l.flatMap(([x, a], i) => l.slice(i + 1).filter(([, c]) => a.left < c.right && c.left < a.right && a.top + 2 < c.bottom && c.top + 2 < a.bottom).map(([y]) => x + " and " + y)); })`); len(touch) > 0 {
			t.Errorf("%s: labels touch: %q", view, touch)
		}
	}
}

// Within one page, a reader goes to each view and back again.
func TestBackAndForth(t *testing.T) {
	s := serve(t, nil)
	s.rightToLeft(t, "home")
	b := open(t, s.base)
	b.visit("/")
	for range 2 {
		for _, view := range views(t, map[string]string{"name": "home", "id": "rtl-3", "page": "placements"}) {
			b.run("(location.hash = " + quote(view) + ", 0)")
			b.wait(rendered + ` && document.querySelector("main").innerText.trim().length > 20`)
			if eval[bool](b, `document.querySelector("main .failure") !== null`) {
				t.Errorf("%s: %s", view, b.text())
			}
		}
	}
}

// empty makes a placement without requests.
func (s *served) empty(t *testing.T, name string) {
	t.Helper()
	fatal.Or(s.Put(t.Context(), name, &api.Placement{MaxSize: 3,
		Features: []api.Feature{{Name: "price", Kind: "number"}}}))(t)
}

// A placement without requests shows all its views.
func TestNoData(t *testing.T) {
	s := serve(t, nil)
	s.empty(t, "empty")
	b := open(t, s.base)
	for _, view := range views(t, map[string]string{"name": "empty", "id": "none", "page": "api"}) {
		if strings.HasSuffix(view, "/none") {
			continue
		}
		b.visit(view)
		b.wait(`document.querySelector("main").innerText.trim().length > 20`)
		if text := b.text(); strings.Contains(text, "NaN") || strings.Contains(text, "undefined") ||
			strings.Contains(text, "Infinity") || eval[bool](b, `document.querySelector("main .failure") !== null`) {
			t.Errorf("%s: %s", view, text)
		}
	}
}

// A few visits are not a curve, and are not watched. The arrow keys read a curve.
func TestFewVisits(t *testing.T) {
	s := serve(t, nil)
	s.empty(t, "home")
	s.sell(t, "home", "few", 5)
	b := open(t, s.base)
	b.visit("/placements/home")
	b.reads("The curve of revenue begins once")
	b.reads("Not watched yet")
	b.reads("no alarm can ring in the next")
	s.empty(t, "waits")
	r := &api.Request{Items: []api.Item{{ID: "a", Features: api.Values{api.Number("price", 1)}}}}
	fatal.Or(s.Decide(t.Context(), "waits", r))(t)
	s.sell(t, "waits", "after", 12)
	for _, view := range []string{"/", "/placements/waits"} {
		b.visit(view)
		b.reads("Visits count once the first one has its outcome, after 30 minutes at the latest.")
	}
	b.visit("/placements/home")
	s.sell(t, "home", "more", 30)
	const chart = `document.querySelector("main .chart [aria-label^='Revenue per visit']")`
	b.on(chart, "e.focus()")
	b.pressKey("ArrowRight", 39)
	b.wait(chart + `.closest("figure").querySelector("figcaption").innerText.includes("Vitrine 1")`)

	// Axes leave out cents, and only cents, in the reader's format.
	fatal.Or(s.Put(t.Context(), "rupees", &api.Placement{MaxSize: 1, Currency: "INR", Features: []api.Feature{{Name: "price", Kind: "number"}}}))(t)
	r.Items[0].Revenue = new(158_000.0)
	for range 40 {
		fatal.If(t, s.Outcome(t.Context(), "rupees", fatal.Or(s.Decide(t.Context(), "rupees", r))(t).Decision, "a"))
	}
	call(b, emulation.SetLocaleOverride, emulation.SetLocaleOverrideParams{Locale: "en-IN"})
	b.visit("/placements/rupees")
	b.wait(`["₹50,000", "₹1,00,000", "₹1,50,000"].every((s) => [...document.querySelectorAll(".chart text")].some((t) => t.textContent === s))`)
	call(b, emulation.SetLocaleOverride, emulation.SetLocaleOverrideParams{})

	// Tastes of a placement that has only categories, the best ones in sight.
	config := &api.Placement{MaxSize: 31, MinSize: 31, Features: []api.Feature{{Name: "kind", Kind: "category"}}}
	r = &api.Request{Decision: "all"}
	for k := range config.MaxSize {
		name := fmt.Sprint("kind-", k)
		config.Features[0].Values = append(config.Features[0].Values, name)
		r.Items = append(r.Items, api.Item{ID: name, Features: api.Values{api.Text("kind", name)}})
	}
	fatal.Or(s.Put(t.Context(), "kinds", config))(t)
	fatal.Or(s.Decide(t.Context(), "kinds", r))(t)
	fatal.If(t, s.Outcome(t.Context(), "kinds", "all", "kind-3"))
	b.visit("/placements/kinds")
	b.reads("What shoppers like: kind")
	b.reads("21 more")
}

// tabKey presses the tabulator.
func (b *tab) tabKey() { b.Helper(); b.pressKey("Tab", 9) }

func (b *tab) pressKey(name string, code int64) {
	b.Helper()
	for _, kind := range []input.DispatchKeyEventType{"rawKeyDown", "keyUp"} {
		call(b, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: kind, Key: name, Code: name,
			WindowsVirtualKeyCode: code})
	}
}

// The tabulator reaches everything that a mouse does, in the order of the page, and shows where it is. The heading of a
// view has no ring, though it is focused when the view opens.
func TestKeyboard(t *testing.T) {
	s := serve(t, nil)
	s.rightToLeft(t, "home")
	b := open(t, s.base)
	const list = `[...document.querySelectorAll("a[href], button:not(:disabled), input:not(:disabled), select, textarea, summary, [tabindex='0']")].filter((e) => e.checkVisibility({ checkVisibilityCSS: true }) && e.getClientRects().length > 0 && !(e.type === "radio" && !e.checked && document.querySelector("input[type=radio][name='" + e.name + "']:checked")))`
	for _, view := range views(t, map[string]string{"name": "home", "id": "rtl-3", "page": "placements"}) {
		b.visit(view)
		b.wait(`document.querySelector("main").innerText.trim().length > 20`)
		b.run(`(window.wanted = ` + list +
			`, window.seen = [], window.bare = [], addEventListener("focusin", (e) => { seen.push(e.target); const s = getComputedStyle(e.target); if (s.outlineStyle === "none" && s.boxShadow === "none") bare.push(e.target.outerHTML.slice(0, 100)); }), 0)`)
		n := eval[int](b, "wanted.length")
		if n > 150 { // the document of the API has hundreds
			n = 150
		}
		missed := fmt.Sprintf(`wanted.slice(0, %d).filter((e) => e.isConnected && !seen.includes(e)).map((e) => e.outerHTML.slice(0, 120))`, n)
		for k := range 3*n + 20 { // a field for a date has several stops
			if b.tabKey(); k%10 == 9 && k > n && eval[bool](b, missed+".length === 0") {
				break
			}
		}
		if missed := eval[[]string](b, missed); len(missed) > 0 {
			t.Errorf("%s: the tabulator does not reach %q", view, missed)
		}
		if bare := eval[[]string](b, "bare"); len(bare) > 0 {
			t.Errorf("%s: without a ring: %q", view, bare)
		}
		if !eval[bool](b, `(document.querySelector("h1").focus(), getComputedStyle(document.querySelector("h1")).outlineStyle === "none")`) {
			t.Errorf("%s: its heading has a ring", view)
		}
	}
}

// A page that loses the service says so and since when, keeps what it has, and goes on by itself.
func TestLostConnection(t *testing.T) {
	s := serve(t, nil)
	s.empty(t, "home")
	s.sell(t, "home", "first", 5)
	b := open(t, s.base)
	for _, view := range []string{"/", "/placements/home", "/placements/home/experiments",
		"/placements/home/versions"} {
		b.visit(view)
		b.wait(`document.querySelector("main .card")`)
		b.careless = true // requests fail
		b.run(`(window.real = fetch, window.fetch = () => Promise.reject(new TypeError("Failed to fetch")), 0)`)
		b.wait(`document.querySelector(".lost")?.innerText.startsWith("No connection to the service since")`)
		if !eval[bool](b, `document.querySelector("main .card") !== null`) {
			t.Errorf("%s: the page is gone with the connection", view)
		}
		b.run(`(window.fetch = real, 0)`)
		b.wait(`!document.querySelector(".lost") && !document.querySelector("main .failure")`)
		b.run(`(AbortSignal.timeout = () => AbortSignal.abort(new DOMException("", "TimeoutError")), 0)`) // answers take too long
		b.wait(`document.querySelector(".lost")`)
	}
}

// reader adds a key that may only read.
func reader(t *testing.T, token string) func(*host.Config, *host.Options) {
	sum := sha256.Sum256([]byte(token))
	path := filepath.Join(t.TempDir(), "keys.toml")
	text := fmt.Sprintf("[[key]]\nname = \"boss\"\nsha256 = %q\nscopes = [\"read\"]\n", hex.EncodeToString(sum[:]))
	all := sha256.Sum256([]byte("all"))
	text += fmt.Sprintf("[[key]]\nname = \"shop\"\nsha256 = %q\nscopes = [\"read\", \"decide\", \"outcome\", "+
		"\"admin\"]\n", hex.EncodeToString(all[:]))
	fatal.If(t, os.WriteFile(path, []byte(text), 0o600))
	return func(c *host.Config, _ *host.Options) { c.Keys = path }
}

// A key without admin reads every view, and is offered only allowed actions.
func TestReaderOfTheDesk(t *testing.T) {
	s := serve(t, reader(t, "read-token"))
	s.Key = "all"
	s.rightToLeft(t, "home")
	b := open(t, s.base)
	b.visit("/")
	b.wait(`document.querySelector("input#key")`)
	b.run(`document.querySelector("input#key").value = "read-token"`)
	b.press("Sign in")
	b.wait(`!document.querySelector("input#key")`)
	for _, view := range views(t, map[string]string{"name": "home", "id": "rtl-3", "page": "placements"}) {
		b.visit(view)
		b.wait(`document.querySelector("main").innerText.trim().length > 20`)
		if eval[bool](b, `document.querySelector("main .failure") !== null`) {
			t.Errorf("%s: %s", view, b.text())
		}
		if buttons := eval[[]string](b, `[...document.querySelectorAll("main button")].map((b) => b.innerText.trim()).filter((t) => /^(Begin|Plan it|Keep|Go back|Delete|Make|Create|End the|Change the|See what this does|Pin|Leave out|Clear)/.test(t))`); len(buttons) > 0 {
			t.Errorf("%s offers %q", view, buttons)
		}
	}
}

// Numbers and dates are in the browser's language.
func TestLocale(t *testing.T) {
	s := serve(t, nil)
	s.empty(t, "home")
	s.sell(t, "home", "first", 1200)
	fatal.Or(s.Keep(t.Context(), "home", "before the sale"))(t)
	b := open(t, s.base)
	for locale, want := range map[string]string{"de-DE": "1.200 ", "en-GB": "1,200 ", "fr-FR": "1 200 "} {
		call(b, emulation.SetLocaleOverride, emulation.SetLocaleOverrideParams{Locale: locale})
		b.visit("/placements/home/versions")
		b.wait(`document.querySelector("main li")?.innerText.replaceAll(/[\u202f\u00a0]/g, " ").includes(` +
			quote("learned from "+want) + `)`)
	}
}

// A chart over a week in which the clocks change names each day once, and a point under the pointer has its date. Large
// amounts have room, in the chart and above it.
func TestPerformance(t *testing.T) {
	s := serve(t, nil)
	s.empty(t, "home")
	s.sell(t, "home", "first", 40)
	b := open(t, s.base)
	call(b, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Europe/Berlin"})
	call(b, emulation.SetLocaleOverride, emulation.SetLocaleOverrideParams{Locale: "en-GB"})
	for _, c := range []struct{ from, want, point string }{
		{"2026-10-22T22:00:00Z", "Fri Sat Sun Mon Tue Wed Thu", "27 Oct 2026, 23:00"}, // the day of 25 hours is the third
		{"2027-03-25T23:00:00Z", "Fri Sat Sun Mon Tue Wed Thu", "31 Mar 2027, 01:00"}, // of 23
	} {
		b.rewrites(`to.includes("v1/overview")`, `
			const from = Date.parse(`+quote(c.from)+`) / 1000, all = (v) => Array(7).fill(v);
			Object.assign(v.placements[0].series, { now: new Date((from + 600000) * 1000).toISOString(),
				start_unix_seconds: all().map((_, k) => from + k * 86400), length_seconds: all(86400), decisions: all(9), open: all(0),
				policy: { rounds: all(9), mean: all(12345), standard_error: all(1) } });
			const gain = (variant) => ({ variant, over: "shop", randomized: true, decisions: 1400, per_decision: { low: -275, estimate: 8, high: 290 }, total: { low: -385000, estimate: 11100, high: 407000 } });
			Object.assign(v.placements[0], { currency: "CHF", gains: ["ours", "rival", "other"].map(gain), by_policy: { rounds: 533, purchases: 167, revenue: 656789, revenue_squares: 1e10 } });`)
		b.visit("/placements/home")
		call(b, page.Reload, page.ReloadParams{})
		b.wait(`document.querySelectorAll("svg.plot text[text-anchor=middle]").length >= 7`)
		days := eval[[]string](b, `[...document.querySelector("svg.plot").querySelectorAll("text[text-anchor=middle]")].map((x) => x.textContent)`)
		expect.Equal(t, strings.Join(days, " "), c.want, "from", c.from, "on the days are")
		if cut := eval[[]string](b, `[...document.querySelectorAll("svg.plot text")].filter((x) => x.getBBox().x < 0).map((x) => x.textContent)`); len(cut) > 0 {
			t.Errorf("the chart cuts %q", cut)
		}
		b.wait(`((box) => { const at = box.getBoundingClientRect(); box.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX: at.x + at.width * 0.77 })); return document.querySelector(".chart figcaption").innerText.includes(` + quote(c.point) + `); })(document.querySelector(".chart div"))`)
		for _, width := range []int{800, 390, 1280} {
			b.dress(width, "light")
			b.wait("innerWidth === " + fmt.Sprint(width))
			if broken := eval[[]string](b, `[...document.querySelectorAll(".figure .value")].filter((x) => x.offsetHeight > 1.9 * parseFloat(getComputedStyle(x).fontSize)).map((x) => x.textContent)`); len(broken) > 0 {
				t.Errorf("at a width of %d %q are in two lines", width, broken)
			}
		}
	}
}

// The technical details of a placement ask for something only while they are open.
func TestDetailsWait(t *testing.T) {
	s := serve(t, nil)
	s.empty(t, "home")
	b := open(t, s.base)
	b.visit("/placements/home")
	b.wait(`document.querySelector("main details.card")`)
	expect.Equal(t, eval[int](b, `document.querySelector("main details.card").childElementCount`), 1,
		"closed details have n elements")
	b.on(`document.querySelector("main details.card summary")`, "e.click()")
	b.reads("decisions in a row without a sale")
	b.reads("Page positions")
}

// Fifty placements, and a hundred thousand items, are no burden: the views show them within their bounds.
func TestMuch(t *testing.T) {
	s := serve(t, nil)
	for k := range 50 {
		s.empty(t, fmt.Sprintf("placement-%02d-%s", k, strings.Repeat("x", 45)))
	}
	fatal.Or(s.Put(t.Context(), "home", &api.Placement{MaxSize: 3, MaxItems: 100_000,
		Features: []api.Feature{{Name: "price", Kind: "number"}}}))(t)
	items := make([]api.CatalogueItem, 0, 1000)
	for i := range 100_000 {
		items = append(items, api.CatalogueItem{ID: fmt.Sprintf("sku-%06d", i),
			Features: api.Values{api.Number("price", float64(i%97))}})
		if len(items) == cap(items) {
			fatal.Or(s.PutItems(t.Context(), "home", items))(t)
			items = items[:0]
		}
	}
	answer := fatal.Or(s.Decide(t.Context(), "home", &api.Request{Decision: "one"}))(t)
	fatal.If(t, s.Outcome(t.Context(), "home", answer.Decision, answer.Items()[0]))
	b := open(t, s.base)
	b.visit("/")
	if text := eval[string](b, `document.querySelector("main .head p").innerText`); !strings.HasPrefix(text, "51 placements. A visit is ") { // one page does not count all decisions
		t.Errorf("the overview begins with %q", text)
	}
	for _, view := range views(t, map[string]string{"name": "home", "id": "one", "page": "placements"}) {
		b.visit(view)
		b.wait(`document.querySelector("main").innerText.trim().length > 20`)
		if n := eval[int](b, `document.querySelectorAll("main *").length`); n > 6000 {
			t.Errorf("%s has %d elements", view, n)
		}
		if eval[bool](b, `document.querySelector("main .failure") !== null`) {
			t.Errorf("%s: %s", view, b.text())
		}
	}
}
