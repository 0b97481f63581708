package demo

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// ask sends a request to the demonstration's routes, and decodes the answer into v unless it is nil.
func (s *shop) ask(t *testing.T, status int, method, path, body string, v any) string {
	t.Helper()
	w := httptest.NewRecorder()
	s.page.ServeHTTP(w, httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body)))
	if w.Code != status {
		t.Fatalf("%s %s %s: %d %s, want %d", method, path, body, w.Code, w.Body, status)
	}
	text := w.Body.String()
	if v != nil {
		fatal.If(t, json.Unmarshal([]byte(text), v))
	}
	return text
}

// A visitor takes a vase: the outcome is in the log, and the placement believes more in that vase.
func TestVisitor(t *testing.T) {
	s := opened(t, halfSeason)
	for round := 1; round <= 30; round++ {
		fatal.If(t, s.meet(t.Context(), round))
	}
	fatal.If(t, s.engine.Wait(t.Context()))
	var visit visit
	s.ask(t, 200, "POST", "/demo/visits", `{"kind":"family"}`, &visit)
	if len(visit.Before.Items) < 2 || visit.Kind != "family" {
		t.Fatalf("visit %+v", visit)
	}
	why := fatal.Or(s.shopping.service.Explain(t.Context(), auto, visit.Decision))(t)
	taken, sum := visit.Before.Items[1].ID, *visit.Before.Outside
	for k, item := range visit.Before.Items {
		sum += *item.Probability
		if want := why.Items[k]; item.ID != want.ID || *item.Utility != *want.Utility || *item.SD != *want.SD {
			t.Errorf("%s: %v ± %v, the explanation has %+v", item.ID, *item.Utility, *item.SD, want)
		}
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Errorf("probabilities sum to %v", sum)
	}
	var lesson lesson
	s.ask(t, 200, "POST", "/demo/visits/"+visit.Decision, fmt.Sprintf(`{"taken":%q}`, taken), &lesson)
	if !lesson.Learned || lesson.Taken != taken || lesson.After.Learned <= visit.Before.Learned ||
		len(lesson.Next) == 0 {
		t.Errorf("lesson %+v", lesson)
	}
	for k, after := range lesson.After.Items {
		before := visit.Before.Items[k]
		if after.ID != before.ID {
			t.Errorf("%s is in the place of %s", after.ID, before.ID)
		}
		if after.ID == taken && *after.Utility <= *before.Utility {
			t.Errorf("the utility of the vase that was taken moved from %v to %v", *before.Utility, *after.Utility)
		}
	}
	d, err := s.engine.Decision(t.Context(), auto, visit.Decision)
	if err != nil || d.Choice != taken {
		t.Errorf("the log has the choice %q, %v", d.Choice, err)
	}

	s.ask(t, 200, "POST", "/demo/visits", `{"kind":"student"}`, &visit)
	s.ask(t, 200, "POST", "/demo/visits/"+visit.Decision, `{"taken":""}`, &lesson)
	if d, err := s.engine.Decision(t.Context(), auto, visit.Decision); err != nil || d.Choice != "" ||
		d.Status != "chosen" || lesson.Taken != "" {
		t.Errorf("who walked away has %+v, %v", d, err)
	}
}

// Impossible requests are refused with a reason.
func TestRefusals(t *testing.T) {
	s := opened(t, halfSeason)
	var visit visit
	s.ask(t, 200, "POST", "/demo/visits", `{"kind":"student"}`, &visit)
	for _, c := range []struct {
		status             int
		method, path, body string
		want               string
	}{
		{422, "POST", "/demo/visits", `{"kind":"robot"}`, `there is no kind of shopper \"robot\"`},
		{400, "POST", "/demo/visits", `{"kind":`, "the JSON ends early"},
		{422, "POST", "/demo/visits/auto-1", `{"taken":""}`, "is not the decision of a visit"},
		{422, "POST", "/demo/visits/visitor-student", `{"taken":""}`, "is not the decision of a visit"},
		{422, "POST", "/demo/visits/visitor-robot-1", `{"taken":""}`, "there is no kind of shopper"},
		{404, "POST", "/demo/visits/visitor-student-1", `{"taken":""}`, "visitor-student-1"},
		{422, "POST", "/demo/visits/" + visit.Decision, `{"taken":"vase-99"}`, "vase-99"},
		{422, "PUT", "/demo/speed", `{}`, "the speed must be from 0 to 1000"},
		{422, "PUT", "/demo/speed", `{"speed":-1}`, "the speed must be from 0 to 1000"},
		{422, "PUT", "/demo/speed", `{"speed":1001}`, "the speed must be from 0 to 1000"},
		{404, "GET", "/demo/pictures/vase-99.svg", "", `there is no product \"vase-99\"`},
		{404, "GET", "/demo/none", "", "there is nothing at this path"},
		{405, "PUT", "/demo/state", "", "the method must be"},
	} {
		expect.Contains(t, s.ask(t, c.status, c.method, c.path, c.body, nil), c.want, c.method, c.path, c.body)
	}
	s.ask(t, 200, "POST", "/demo/visits/"+visit.Decision, `{"taken":""}`, nil)
	text := s.ask(t, 409, "POST", "/demo/visits/"+visit.Decision, fmt.Sprintf(`{"taken":%q}`, visit.Before.Items[0].ID),
		nil)
	expect.Contains(t, text, "conflict", "another choice of the same visit")
	s.Demo.service.Store(nil)
	expect.Contains(t, s.ask(t, 503, "POST", "/demo/visits", `{"kind":"student"}`, nil), "not open yet",
		"a closed shop")
	s.ask(t, 503, "POST", "/demo/visits/"+visit.Decision, `{"taken":""}`, nil)
	var state struct{ Open bool }
	if s.ask(t, 200, "GET", "/demo/state", "", &state); state.Open {
		t.Error("the closed shop is open")
	}
}

// The page can ask before the shop is open.
func TestBeforeRun(t *testing.T) {
	s := opened(t, halfSeason)
	s.Demo.service.Store(nil)
	expect.Contains(t, s.ask(t, 200, "GET", "/demo/state", "", nil), `"open":false`, "before it runs")
}

// The picture of each product is well-formed, and no two are alike.
func TestPictures(t *testing.T) {
	s := opened(t, halfSeason)
	seen := map[string]string{}
	for _, p := range catalogue(Seed) {
		text := s.ask(t, 200, "GET", "/demo/pictures/"+p.ID+".svg", "", nil)
		for in := xml.NewDecoder(strings.NewReader(text)); ; {
			token, err := in.Token()
			if err == io.EOF {
				break
			}
			fatal.If(t, err, p.ID)
			if e, ok := token.(xml.StartElement); ok && (e.Name.Local == "script" ||
				slices.ContainsFunc(e.Attr, func(a xml.Attr) bool { return a.Name.Local == "style" })) {
				t.Errorf("%s has a %s", p.ID, e.Name.Local)
			}
		}
		if other, ok := seen[text]; ok {
			t.Errorf("%s looks like %s", p.ID, other)
		}
		if seen[text] = p.ID; strings.Contains(text, "NaN") || !strings.Contains(text,
			fmt.Sprintf(">€%.0f<", p.Price)) {
			t.Errorf("%s: %s", p.ID, text)
		}
	}
	if p := (&product{Title: `<a & "b">`}).picture(); !strings.Contains(string(p), "&lt;a &amp; &#34;b&#34;&gt;") {
		t.Errorf("a title is not escaped: %s", p)
	}
}

// A kind likes its ideal product best, tastes change after half a season, and no tastes of two kinds are the same.
func TestTastes(t *testing.T) {
	for season := range tastes {
		for k, s := range tastes[season] {
			best := s.utility(s.round, s.warm, s.busy, s.budget)
			for _, d := range []float64{-0.2, 0.2} {
				for _, u := range []float64{s.utility(s.round+d, s.warm, s.busy, s.budget),
					s.utility(s.round, s.warm+d, s.busy, s.budget), s.utility(s.round, s.warm, s.busy+d, s.budget)} {
					if u >= best {
						t.Errorf("%s: %v beside the ideal, %v at it", kinds[k], u, best)
					}
				}
			}
			if s.utility(s.round, s.warm, s.busy, s.budget+1) >= best ||
				s.utility(s.round, s.warm, s.busy, s.budget-1) != best {
				t.Errorf("%s: the budget does not bound the price", kinds[k])
			}
		}
	}
	w := &world{products: catalogue(Seed), half: 10}
	x := w.context(1)
	u := func(round int) []float64 {
		dst := make([]float64, numProducts)
		w.At(round).Utilities(dst, x)
		return dst
	}
	for round, season := range map[int]int{1: 0, 10: 0, 11: 1, 20: 1, 21: 0} {
		have := u(round)
		for i, p := range w.products {
			if want := tastes[season][1].utility(p.Round, p.Warm, p.Busy, p.Price); math.Abs(have[i]-want) > 1e-9 {
				t.Errorf("round %d: utility %v of %s, want %v", round, have[i], p.ID, want)
			}
		}
	}
}

// The points of a curve sum the same shoppers as a list of them, in any order and however often points are joined.
func TestCurves(t *testing.T) {
	const n, met = 3*firstWidth*maxPoints + 8, 500
	r := newRecord(met)
	worth := func(round, k int) float64 { return float64((round*7+k*3)%11) - 2 }
	for i := range n {
		round := met + 1 + (i ^ 1) // neighbours change places
		v := &visited{Round: round, optimum: 10}
		for k, name := range names {
			v.Windows = append(v.Windows, &window{Placement: name, worth: worth(round, k), earned: float64(k)})
		}
		r.add(v)
	}
	c := r.curves()
	if len(c.Rounds) > maxPoints || len(c.Rounds) < maxPoints/2 || c.Width%firstWidth != 0 {
		t.Fatalf("%d points of %d shoppers", len(c.Rounds), c.Width)
	}
	for i, last := range c.Rounds[:len(c.Rounds)-1] {
		for k := range names {
			sum := 0.0
			for round := last - c.Width + 1; round <= last; round++ {
				sum += worth(round, k)
			}
			if want := sum / float64(c.Width); math.Abs(c.Worth[k][i]-want) > 1e-3 || c.Optimum[i] != 10 {
				t.Errorf("point %d of %s: %v, want %v", i, names[k], c.Worth[k][i], want)
			}
		}
	}
	for k, total := range r.totals {
		if more := float64(k - 2); total.Shoppers != n || total.Earned != float64(k*n) || total.More != more*n ||
			total.Squares != more*more*n || total.Predicted != 0 {
			t.Errorf("%s: %+v", names[k], total)
		}
	}
}

// Shoppers come in order, wait while the door is closed, and come quicker after a change of speed.
func TestPace(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var p pace
	p.set(0)
	expect.Equal(t, p.advance(0.5, time.Hour), 0.5, "shoppers are owed at a closed door")
	rounds, ended := make(chan int), make(chan struct{})
	go func() { defer close(ended); p.arrivals(ctx, 7, rounds) }()
	select {
	case round := <-rounds:
		t.Errorf("shopper %d came through a closed door", round)
	default:
	}
	p.set(maxSpeed)
	for want := 7; want < 30; want++ {
		if round := <-rounds; round != want {
			t.Fatalf("shopper %d, want %d", round, want)
		}
	}
	cancel()
	<-ended
	for range 200 { // 50 a second for two seconds
		if p.count(); p.advance(0, 20*time.Millisecond) > 1+maxSpeed*maxDebt.Seconds() {
			t.Error("more shoppers are owed than the debt allows")
		}
	}
	if _, served := p.get(); math.Abs(served-50) > 50*math.Exp(-2)+1e-9 {
		t.Errorf("%v shoppers were served a second, want about 50", served)
	}
}

// Shoppers come until the service ends, and the shop does not open after it.
func TestRun(t *testing.T) {
	s := opened(t, halfSeason)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	d := New(slog.New(slog.DiscardHandler))
	go func() { ended <- d.Run(ctx, s.shopping.service.Base) }()
	d.pace.set(maxSpeed)
	for enough := false; !enough; {
		d.mu.Lock()
		enough = d.record.totals != nil && d.record.totals[0].Shoppers >= 3
		d.mu.Unlock()
		runtime.Gosched()
	}
	cancel()
	if err := <-ended; err != nil || d.service.Load() != nil {
		t.Errorf("%v", err)
	}
	expect.Refused(d.Run(ctx, s.shopping.service.Base))(t, "the shop opened after the end")
}
