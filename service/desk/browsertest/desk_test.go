package browsertest

import (
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// views returns the addresses of all views, with the parameters replaced. A view with a parameter that is not known
// fails the test: it needs a line here.
func views(t *testing.T, of map[string]string) (list []string) {
	t.Helper()
	text := fatal.Or(os.ReadFile("../web/src/routes.ts"))(t)
	for _, m := range regexp.MustCompile(`path: "(/[^"]*)", title`).FindAllStringSubmatch(string(text), -1) {
		parts := strings.Split(m[1], "/")
		for i, p := range parts {
			if name, ok := strings.CutPrefix(p, ":"); ok {
				value, known := of[name]
				if !known {
					t.Fatalf("the view %s has a parameter without a value in this test", m[1])
				}
				parts[i] = url.PathEscape(value)
			}
		}
		list = append(list, strings.Join(parts, "/"))
	}
	if len(list) < 2 {
		t.Fatalf("the views %v", list)
	}
	return list
}

// The watch over a page notices faults.
func TestWatch(t *testing.T) {
	s := serve(t, nil)
	for what, does := range map[string]string{
		"style":          `document.body.setAttribute("style", "color: red")`,
		"script":         `document.body.append(Object.assign(document.createElement("script"), { textContent: "1" }))`,
		"http://other":   `fetch("http://other.example/").catch(() => 0)`,
		"an error":       `console.error("an error")`,
		"thrown":         `void setTimeout(() => { throw new Error("thrown") })`,
		"404":            `fetch("v1/placements/none").then((a) => a.text())`,
		"img.example":    `void document.body.append(Object.assign(new Image(), { src: "http://img.example/x.png" }))`,
		"refused by all": `void Promise.reject(new Error("refused by all"))`,
	} {
		b := open(t, s.base)
		b.visit("/")
		if p := b.take(); p != nil {
			t.Errorf("%s: before: %q", what, p)
		}
		b.careless = true
		b.run(does)
		for found := false; !found; {
			b.wait("true")
			found = slices.ContainsFunc(b.take(), func(p string) bool { return strings.Contains(p, what) })
		}
	}
}

// The demonstration learns: after some hundreds of shoppers auto's windows are worth more than chance's and the linear
// learner's, and not more than the best ones.
func TestDemoLearns(t *testing.T) {
	s := serve(t, withDemo)
	b := open(t, s.base)
	b.visit("/shop")
	state := s.shop(t, b, 400)
	earned, last := map[string]float64{}, map[string]float64{}
	for k, total := range state.Totals {
		earned[total.Placement] = total.Earned
		for _, w := range state.Curves.Worth[k][len(state.Curves.Rounds)/2:] {
			last[total.Placement] += w
		}
	}
	optimum := 0.0
	for _, w := range state.Curves.Optimum[len(state.Curves.Rounds)/2:] {
		optimum += w
	}
	if earned["auto"] <= earned["chance"] || last["auto"] < 1.3*last["chance"] || last["auto"] < 1.1*last["linear"] ||
		last["auto"] > optimum+1e-6 {
		t.Errorf("earned %v; the later windows were worth %v, the best ones %v", earned, last, optimum)
	}
	b.wait(`document.querySelector("main .window li") && document.querySelector("main svg.plot")`)
	b.wait(`[...document.querySelectorAll("main td")].some((d) => d.innerText === "auto")`)
}

// The vase that a visitor takes is the choice in the log, and the page says how the model moved.
func TestVisitorsChoice(t *testing.T) {
	s := serve(t, withDemo)
	b := open(t, s.base)
	b.visit("/shop")
	s.ask(t, "PUT", "demo/speed", map[string]any{"speed": 0}, nil)
	b.wait(`document.querySelector("#kind")`)
	b.run(`(document.querySelector("#kind").value = "family", document.querySelector("#kind").dispatchEvent(new Event("change", { bubbles: true })), 0)`)
	for n, take := range []bool{true, false} {
		b.on(`document.querySelector("main form button[type=submit]")`, "e.click()")
		b.wait(`document.querySelector("main button.vase:not(:disabled)")`)
		id := ""
		if take {
			id = strings.TrimSuffix(eval[string](b,
				`document.querySelector("main button.vase img").src.split("/").pop()`), ".svg")
			b.on(`document.querySelector("main button.vase")`, "e.click()")
			b.wait(`document.querySelector("main [aria-live] table")`)
		} else {
			b.press("Walk away")
			b.wait(`document.querySelector("main [aria-live] b")?.innerText === "nothing"`)
		}
		if decision, got := s.chosen(t, "auto", "visitor-family-", n+1); got != id {
			t.Errorf("the visitor took %q, the log has %q of %s", id, got, decision)
		}
	}
}

// Every view of a shop that runs renders, without errors, violations or requests elsewhere.
func TestViewsRender(t *testing.T) {
	s := serve(t, withDemo)
	b := open(t, s.base)
	b.visit("/shop")
	b.wait(`document.querySelector("main .window li")`)
	decision, _ := s.chosen(t, "auto", "auto-", 1)
	for _, view := range views(t, map[string]string{"name": "auto", "id": decision, "page": "policies"}) {
		b.visit(view)
		b.wait(`document.querySelector("main").innerText.trim().length > 20`)
		expect.Equal(t, eval[string](b, `document.querySelector("main .failure")?.innerText ?? ""`), "", view)
		for _, p := range b.take() {
			t.Errorf("%s: %s", view, p)
		}
	}
}

// The documentation says when to choose a policy and what it costs, and the form says when to choose it.
func TestPolicies(t *testing.T) {
	b := open(t, serve(t, nil).base)
	b.visit("/docs/policies")
	b.reads("Choose it if in doubt")
	b.reads("An offer costs O(K N d_w²), a round O(K d_w²).")
	b.visit("/new")
	b.fill("Name", "window")
	b.wait(`document.querySelector("main form").textContent.includes("Choose it if in doubt")`) // in closed details
}

// Views of a service without placements say so.
func TestEmptyDesk(t *testing.T) {
	s := serve(t, nil)
	b := open(t, s.base)
	b.visit("/")
	b.wait(`document.querySelector("main").innerText.length > 40`)
	if strings.Contains(eval[string](b, `document.querySelector("header").innerText`), "Shop") {
		t.Error("a service without a demonstration has a shop")
	}
	b.visit("/no/such/view")
	expect.Contains(t, b.text(), "no view at this address", "an address without a view")
}

// A wrong key is refused, the right one opens the desk until the reader signs out. A form with changes outlives its session.
func TestSignIn(t *testing.T) {
	s := serve(t, withKey(t, "right-token"))
	s.Key = "right-token"
	s.empty(t, "home")
	b := open(t, s.base)
	b.visit("/")
	for _, token := range []string{"wrong-token", "right-token"} {
		b.wait(`document.querySelector("input#key")`)
		b.run(`document.querySelector("input#key").value = ` + quote(token))
		b.press("Sign in")
		if token == "wrong-token" {
			b.wait(`document.querySelector("main .failure")`)
			if p := b.take(); len(p) == 0 ||
				slices.ContainsFunc(p, func(p string) bool { return !strings.Contains(p, "401") }) {
				t.Errorf("a wrong key: %q", p)
			}
		}
	}
	b.wait(`!document.querySelector("input#key") && document.querySelector("header").innerText.includes("shop")`)
	expect.Equal(t, eval[string](b, "document.cookie"), "", "a script reads the cookie")
	expect.Equal(t, eval[int](b, "localStorage.length + sessionStorage.length"), 0, "the page keeps something")
	b.visit("/placements/home/settings")
	b.wait(`!document.querySelector("input#key")`)
	b.fill("At most", "7")
	call(b, network.ClearBrowserCookies, cdp.Empty{}) // the session ends
	b.press("See what this does")
	b.wait(`document.activeElement.id === "key"`)
	b.reads("Your session has ended. Sign in again.")
	for _, weaker := range []string{"read-right-token", "other-right-token"} {
		b.wait(button("Sign in"))
		b.run(`document.querySelector("input#key").value = ` + quote(weaker))
		b.press("Sign in")
		b.reads("This key may not change settings.")
		expect.Equal(t, eval[bool](b, `fetch("v1/session").then((a) => a.json()).then((s) => s.key === undefined)`), true, weaker, "is signed out")
	}
	b.run(`document.querySelector("input#key").value = "right-token"`)
	b.press("Sign in")
	b.wait(`!document.querySelector("input#key")`)
	b.press("See what this does")
	b.wait(`document.querySelector("main table td:last-child")?.innerText === "7"`)
	b.on(`[...document.querySelectorAll("header button")].find((b) => b.innerText === "Sign out")`, "e.click()")
	b.wait(`document.querySelector("input#key")`)
	for _, p := range b.take() {
		if !strings.Contains(p, "401") { // a view may ask while the session ends
			t.Error(p)
		}
	}
}

// Names that are markup or code are shown as text, and never run.
func TestHarmfulNames(t *testing.T) {
	s := serve(t, nil)
	s.harmful(t, "harm")
	b := open(t, s.base)
	seen := map[string]int{}
	for _, view := range views(t, map[string]string{"name": "harm", "id": "harm-3", "page": "placements"}) {
		if view == "/shop" {
			continue
		}
		b.visit(view)
		b.wait(`document.querySelector("main").innerText.trim().length > 20`)
		if eval[bool](b, "window.pwned !== undefined || document.querySelector('main img[src=x], main script') !== null") {
			t.Errorf("%s takes a name for markup", view)
		}
		text := eval[string](b, `document.querySelector("main").innerText + [...document.querySelectorAll("main input, main textarea, main option")].map((e) => e.value).join(" ")`)
		for _, name := range []string{picture, script, braces} {
			if strings.Contains(text, name) {
				seen[name]++
			}
		}
	}
	for _, name := range []string{picture, script, braces} {
		if seen[name] < 3 {
			t.Errorf("%s is the text of %d views", name, seen[name])
		}
	}
	b.visit("/placements/" + url.PathEscape(picture))
	if eval[bool](b, "window.pwned !== undefined || document.querySelector('main img[src=x], main script') !== null") {
		t.Error("an address is taken for markup")
	}
	b.take() // such a placement is not found
}

// axe reports what axe-core objects to on the page. It skips the test if axe-core is not installed.
func (b *tab) axe(view, rules string) {
	b.Helper()
	axe, err := os.ReadFile("../web/node_modules/axe-core/axe.min.js")
	if err != nil {
		b.Skip("axe-core is not installed: make desk-install")
	}
	eval[bool](b, string(axe)+";true")
	found := eval[[]string](b, `axe.run(document, { resultTypes: ["violations"]`+rules+` }).then((r) => r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + v.help + ": " + n.target.join(" ") + " " + n.html.slice(0, 200))))`)
	for _, f := range found {
		b.Errorf("%s: %s", view, f)
	}
}

// No view has anything that axe-core objects to, in both schemes of colours.
func TestAccessibility(t *testing.T) {
	s := serve(t, withDemo)
	b := open(t, s.base)
	b.visit("/shop")
	b.wait(`document.querySelector("main .window li")`)
	s.ask(t, "PUT", "demo/speed", map[string]any{"speed": 5}, nil) // the processor is for axe-core
	decision, _ := s.chosen(t, "auto", "auto-", 1)
	b.rewrites(`to.startsWith("v1/overview?seconds")`,
		`for (const p of v.placements) p.health.push({ level: "warning", text: "In trouble." });`)
	for scheme, rules := range map[string]string{"light": ``, "dark": `, runOnly: ["color-contrast"]`} {
		b.dress(1280, scheme)
		for _, view := range views(t, map[string]string{"name": "auto", "id": decision, "page": "policies"}) {
			b.visit(view)
			if view == "/" {
				b.wait(`document.querySelectorAll("main .troubles").length > 1`)
			}
			b.axe(scheme+" "+view, rules)
		}
	}
}
