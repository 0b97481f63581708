package browsertest

import (
	"fmt"
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
)

// Undoing a change does not take a later one of the same setting away, and asks only about its own warnings.
func TestUndoOvertaken(t *testing.T) {
	s := serve(t, nil)
	s.stocked(t, "home", 6, 0)
	put := func(versions int) {
		t.Helper()
		p := fatal.Or(s.Placement(t.Context(), "home"))(t)
		p.Notes, p.Warnings, p.MaxVersions = nil, nil, versions
		p.Limits = []api.Limit{{Group: "empty", Max: new(1)}} // a preview warns of it
		fatal.Or(s.Put(t.Context(), "home", p))(t)
	}
	versions := func() int { return fatal.Or(s.Placement(t.Context(), "home"))(t).MaxVersions }
	put(5)
	put(7)
	b := open(t, s.base)
	b.visit("/placements/home/history")
	undo := func(n int) {
		b.on(fmt.Sprintf(`document.querySelectorAll("main .changes button")[%d]`, n), "e.click()")
	}
	undo(1)
	b.reads("“Versions to keep” was changed again on")
	expect.Equal(t, versions(), 7, "a refused change")
	undo(0)
	b.reads("That change is undone.")
	expect.Equal(t, versions(), 5, "the last change undone")

	// An undo that callers must know of asks first.
	mode := func() string { return fatal.Or(s.Placement(t.Context(), "home"))(t).Mode }
	for _, m := range []string{api.Shadow, api.Learn} {
		p := fatal.Or(s.Placement(t.Context(), "home"))(t)
		p.Notes, p.Warnings, p.Mode = nil, nil, m
		fatal.Or(s.Put(t.Context(), "home", p))(t)
	}
	b.reads("Who decides: your own page → Vitrine")
	undo(0)
	b.reads("check your callers before you make this change: each request to /decisions must contain baseline")
	expect.Equal(t, mode(), api.Learn, "a question")
	b.press("Leave it as it is")
	undo(0)
	b.press("Undo all the same")
	b.reads("That change is undone.")
	expect.Equal(t, mode(), api.Shadow, "an undo in spite of warnings")

	p := fatal.Or(s.Placement(t.Context(), "home"))(t)
	p.Notes, p.Warnings, p.Mode, p.Experiment = nil, nil, api.Experimenting, &api.Experiment{Name: "summer",
		Variants: []api.Variant{
			{Name: "shop", Show: api.ShowBaseline, Share: 0.5}, {Name: "ours", Show: api.ShowPolicy, Share: 0.5}}}
	fatal.Or(s.Put(t.Context(), "home", p))(t)
	b.visit("/placements/home/history")
	b.reads("summer")
	if strings.Contains(b.text(), "Undo in experiments") {
		t.Error("an experiment is undone where no button does it")
	}
}

// A roll back is undone in the versions, also if it changes no settings.
func TestUndoRollBack(t *testing.T) {
	s := serve(t, nil)
	s.stocked(t, "home", 6, 0)
	version := fatal.Or(s.Keep(t.Context(), "home", "before"))(t)
	page := fatal.Or(s.Decide(t.Context(), "home", &api.Request{User: api.Values{api.Text("kind", "student")}}))(t)
	fatal.If(t, s.Outcome(t.Context(), "home", page.Decision, ""))
	fatal.If(t, s.RollBack(t.Context(), "home", version))
	b := open(t, s.base)
	b.visit("/placements/home/history")
	b.wait(`document.querySelector("main .changes li")?.innerText.startsWith("Rolled back") && ` +
		`document.querySelector("main .changes li a[href='#/placements/home/versions']")`)
}

// Before an alarm is cleared the desk says how many outcomes that skips, and offers to learn them.
func TestClearAlarm(t *testing.T) {
	s := serve(t, nil)
	s.stocked(t, "home", 6, 0)
	b := open(t, s.base)
	b.visit("/")
	b.run(`(window.real = fetch, window.fetch = async (to, o) => {
		to = String(to);
		if (o?.method === "DELETE") return (window.cleared = to, await window.slow, new Response(null, { status: 204 }));
		const answer = await real(to, o);
		if (!/home[/](history|stats)$/.test(to)) return answer;
		const v = await answer.json();
		if (to.endsWith("stats")) v.guard = { checks: [], outcomes_held: 90 };
		else v.alarms = [{ check: "no-sale", detail: "no sale in the last 90 decisions", chance: 1e-5, began: "2026-01-02T00:00:00Z" }];
		return Response.json(v);
	}, 0)`)
	b.goTo("/placements/home/history")
	b.press("Clear the alarm…")
	b.reads("90 outcomes came during the alarm")
	if eval[bool](b, "!!window.cleared") {
		t.Fatal("the alarm is cleared without a question")
	}
	b.run(`(window.slow = new Promise((go) => (window.answer = go)), 0)`)
	b.press("Clear it and learn 90 outcomes")
	b.press("Clear it and skip 90 outcomes") // sends nothing, and the question stays until the first request is answered
	b.run(`new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))`)
	b.reads("Clear the alarm?")
	b.run("window.answer()")
	b.reads("The alarm is cleared")
	b.wait(`!document.querySelector("main .ask") && window.cleared?.endsWith("v1/placements/home/alarm?learn=all")`)
	b.press("Clear the alarm…")
	b.press("Clear it and skip 90 outcomes")
	b.wait(`window.cleared.endsWith("v1/placements/home/alarm")`)
}
