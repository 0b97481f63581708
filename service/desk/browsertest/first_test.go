package browsertest

import (
	"testing"

	"vitrine/internal/fatal"
	"vitrine/service/api"
)

// An empty desk walks through the first placement. The requests that it shows work as they are, and it notices each of
// them.
func TestFirstRun(t *testing.T) {
	s := serve(t, nil)
	b := open(t, s.base)
	b.visit("/")
	b.reads("Your placement, in four steps")
	const next = `(document.querySelector("main li.next h3")?.innerText ?? "")`
	for _, step := range []string{"Create the placement", "Ask which items to show", "Report what the shopper took"} {
		b.wait(next + `.startsWith(` + quote(step) + `)`)
		for _, language := range []string{"Go", "Python", "TypeScript", "curl"} {
			b.run(`[...document.querySelectorAll("main label")].find((l) => l.innerText.trim() === ` + quote(language) +
				`).control.click()`)
			b.wait(`document.querySelector("main li.next pre")?.innerText.includes("home")`)
		}
		b.runs("main li.next pre")
	}
	b.reads("Your placement works")
	b.reads("Vitrine has learned from 1 page.")
	b.on(`[...document.querySelectorAll("main a")].find((a) => a.innerText === "Go to the overview")`, "e.click()")
	b.wait(`document.querySelector("main section[aria-label=home]")`)
	b.reads("1 visit. A visit is one page shown")
}

// The first steps of a placement stay until the last one is done, also on the placement's own page.
func TestFirstStepsStay(t *testing.T) {
	s := serve(t, nil)
	fatal.Or(s.Put(t.Context(), "home", &api.Placement{MaxSize: 1, Features: []api.Feature{{Name: "price",
		Kind: "number"}}}))(t)
	b := open(t, s.base)
	b.visit("/placements/home")
	b.reads("Your placement, in four steps")
	page := fatal.Or(s.Decide(t.Context(), "home", &api.Request{Items: []api.Item{{ID: "a",
		Features: api.Values{api.Number("price", 1)}}}}))(t)
	fatal.If(t, s.Outcome(t.Context(), "home", page.Decision, ""))
	b.wait(`!document.querySelector("main .badge.waiting")`) // of the overview, too
	b.reads("Your placement works")
	b.reads("Vitrine has learned from 1 page.")
	b.on(`[...document.querySelectorAll("main a")].find((a) => a.innerText === "Look at “home”")`, "e.click()")
	b.wait(`!document.querySelector("main .steps")`)
}

// The example of a request says how it differs from requests of a placement with other features or a hold-out.
func TestFirstRunOfForm(t *testing.T) {
	s := serve(t, nil)
	fatal.Or(s.Put(t.Context(), "window", &api.Placement{MaxSize: 1, Holdout: 0.1, Features: []api.Feature{
		{Name: "brand", Kind: "category"}, {Name: "age", Kind: "number", From: "shopper"}}}))(t)
	b := open(t, s.base)
	b.visit("/")
	b.reads("In place of price, send what this placement knows: brand of each item, age of the shopper. Each request " +
		"to /decisions must contain baseline (your own page) and shopper_id.")
}
