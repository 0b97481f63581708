package budget_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/budget"
)

const patience = time.Hour

func TestPlacementsHoldThreeQuarters(t *testing.T) {
	b := budget.New(1000)
	fatal.If(t, b.Hold(700))
	var full *budget.FullError
	if err := b.Hold(51); !errors.As(err, &full) || *full != (budget.FullError{Need: 51, Held: 700, Max: 750}) {
		t.Errorf("51 of the 50 that are left: %v", err)
	}
	expect.Error(t, b.Hold(50), nil, "50 of the 50 that are left")
	b.Charge(100)
	if u := b.Usage(); u != (budget.Usage{Size: 1000, Placements: 850}) || u.Over() != 100 {
		t.Errorf("%+v exceeds by %d", u, u.Over())
	}
	expect.Error(t, b.Hold(0), nil, "nothing, of nothing that is left")
	b.Charge(-850)
	expect.Error(t, b.Hold(750), nil, "after all was returned")
}

// Requests get the memory that placements leave, and at least a quarter of the whole.
func TestRequestsPart(t *testing.T) {
	b := budget.New(1600)
	for _, c := range []struct{ held, start, body, work int64 }{{0, 200, 200, 1200}, {800, 100, 100, 600},
		{1200, 50, 50, 300}, {5000, 50, 50, 300}} {
		b.Charge(c.held)
		for p, maximum := range []int64{budget.Start: c.start, budget.Body: c.body, budget.Work: c.work} {
			p := budget.Purpose(p)
			expect.Error(t, b.Take(t.Context(), p, maximum+1, patience), budget.ErrNever, c.held, p, maximum+1)
			expect.Error(t, b.Take(t.Context(), p, maximum, patience), nil, c.held, "held, purpose", p, maximum,
				"bytes")
		}
		if u := b.Usage(); u.Requests != c.start+c.body+c.work {
			t.Errorf("%d held: %+v", c.held, u)
		}
		b.Give(budget.Start, c.start)
		b.Give(budget.Body, c.body)
		b.Give(budget.Work, c.work)
		b.Charge(-c.held)
	}
}

// Waiting requests are served in order: a small one does not pass a large one for ever.
func TestTakeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(400) // 300 for work
		take := func(bytes int64) *bool {
			done := new(bool)
			go func() { *done = b.Take(t.Context(), budget.Work, bytes, patience) == nil }()
			synctest.Wait()
			return done
		}
		first, large, small := take(200), take(150), take(50)
		if !*first || *large || *small || b.Usage().Waiting != 2 {
			t.Fatalf("of 300 are taken 200 %v, 150 %v, 50 %v; %+v", *first, *large, *small, b.Usage())
		}
		b.Give(budget.Work, 50)
		synctest.Wait()
		if !*large || *small {
			t.Errorf("with 150 left 150 are taken %v, 50 after them %v", *large, *small)
		}
		b.Give(budget.Work, 150)
		synctest.Wait()
		if u := b.Usage(); !*small || u.Requests != 200 || u.Waiting != 0 {
			t.Errorf("with 150 left 50 are taken %v; %+v", *small, u)
		}
	})
}

// One that gives up is no longer waited for.
func TestTakeGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(400)
		fatal.If(t, b.Take(t.Context(), budget.Work, 200, patience))
		ctx, cancel := context.WithCancel(t.Context())
		var gone, small error
		behind := false
		go func() { gone = b.Take(ctx, budget.Work, 150, patience) }()
		synctest.Wait()
		go func() { small = b.Take(t.Context(), budget.Work, 100, patience); behind = true }()
		synctest.Wait()
		if behind {
			t.Fatal("100 were taken before the 150 that came first")
		}
		cancel()
		synctest.Wait()
		if !errors.Is(gone, context.Canceled) || !behind || small != nil || b.Usage().Requests != 300 {
			t.Errorf("given up: %v; behind it: %v %v; %+v", gone, behind, small, b.Usage())
		}
	})
}

// A request waits no longer than its patience, and then takes nothing.
func TestTakeIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(400)
		fatal.If(t, b.Take(t.Context(), budget.Work, 200, patience))
		began := time.Now()
		if err := b.Take(t.Context(), budget.Work, 150, 3*time.Second); !errors.Is(err, budget.ErrBusy) ||
			time.Since(began) != 3*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if u := b.Usage(); u.Requests != 200 || u.Waiting != 0 {
			t.Errorf("%+v", u)
		}
	})
}

// Immediate reservations allocate nothing.
func TestTakeAllocatesNothing(t *testing.T) {
	b := budget.New(400)
	if n := testing.AllocsPerRun(100, func() {
		_ = b.Take(t.Context(), budget.Work, 200, patience)
		b.Give(budget.Work, 200)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// A placement that ends lets requests in that waited.
func TestChargeGrants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(400)
		fatal.If(t, b.Take(t.Context(), budget.Work, 200, patience))
		done := false
		go func() { done = b.Take(t.Context(), budget.Work, 100, patience) == nil }()
		synctest.Wait()
		if !done {
			t.Fatal("100 of the 100 that are left are not taken")
		}
		b.Charge(300) // requests get 100 now, and 75 of them for work
		waited := false
		go func() { waited = b.Take(t.Context(), budget.Work, 60, patience) == nil }()
		synctest.Wait()
		if b.Give(budget.Work, 200); waited {
			t.Error("60 are taken beside 300 of 75")
		}
		synctest.Wait()
		if waited {
			t.Error("60 are taken beside 100 of 75")
		}
		b.Charge(-300)
		if synctest.Wait(); !waited {
			t.Error("60 are not taken beside 100 of 300")
		}
	})
}

// In any order of calls, requests never exceed their part, and all that fit are served in the end.
func TestNeverMoreThanThePart(t *testing.T) {
	b := budget.New(1000)
	var all sync.WaitGroup
	for i := range uint64(32) {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(i, 1))
			for range 200 {
				body, work := 1+rng.Int64N(125), 1+rng.Int64N(750)
				expect.Error(t, b.Take(t.Context(), budget.Body, body, patience), nil)
				expect.Error(t, b.Take(t.Context(), budget.Work, work, patience), nil)
				if u := b.Usage(); u.Requests > u.Size {
					t.Errorf("%+v", u)
				}
				b.Give(budget.Work, work/2)
				b.Give(budget.Work, work-work/2)
				b.Give(budget.Body, body)
			}
		})
	}
	all.Wait()
	if u := b.Usage(); u != (budget.Usage{Size: 1000}) {
		t.Errorf("in the end %+v", u)
	}
}

// The work on a request includes its body.
func TestReserve(t *testing.T) {
	a := budget.New(1600).Account("", 4, patience)
	fatal.If(t, a.GrowBody(t.Context(), 100))
	for _, bytes := range []int64{700, 50} {
		fatal.If(t, a.Reserve(t.Context(), bytes))
		expect.Equal(t, a.Held(budget.Work), bytes+100)
	}
}

// However much of them has come, long bodies leave the memory for short ones free.
func TestLongBodiesLeaveRoomForShortOnes(t *testing.T) {
	const long = 1 << 20
	b := budget.New(32 << 20) // 3 MiB for the starts of one key's bodies, and as much for the rest of them
	for range 3 {
		a := b.Account("web", 3, 0)
		fatal.If(t, a.GrowBody(t.Context(), 5000))
		fatal.If(t, a.GrowBody(t.Context(), long))
		expect.Equal(t, a.Held(budget.Start)+a.Held(budget.Body), long, "bytes")
	}
	more := b.Account("web", 3, 0)
	expect.Error(t, more.GrowBody(t.Context(), long), budget.ErrBusy, "a fourth long body")
	more.KeepBody(0)
	for range 3<<20/budget.BodyStart - 3 {
		short := b.Account("web", 3, 0)
		fatal.If(t, short.GrowBody(t.Context(), budget.BodyStart))
	}
	one := b.Account("shop", 3, 0)
	fatal.If(t, one.GrowBody(t.Context(), 5000))
	one.KeepBody(4500)
	expect.Equal(t, one.Held(budget.Start)+one.Held(budget.Body), 4500, "bytes kept of a body")
	one.KeepBody(0)
	expect.Equal(t, one.Held(budget.Start)+one.Held(budget.Body), 0, "bytes in the end")
}

// One key of several never takes the last quarter, and requests of others do not wait behind its requests.
func TestKeysShare(t *testing.T) {
	for _, p := range []budget.Purpose{budget.Start, budget.Body, budget.Work} {
		synctest.Test(t, func(t *testing.T) {
			b := budget.New(1600)
			limit := []int64{200, 200, 1200}[p]
			take := func(key string, bytes int64) (*budget.Account, *error) {
				a, err := b.Account(key, 3, time.Minute), errors.New("it waits")
				go func() { err = a.Take(t.Context(), p, bytes) }()
				synctest.Wait()
				return &a, &err
			}
			_, never := take("web", limit*3/4+1)
			expect.Error(t, *never, budget.ErrNever, "more than three quarters")
			first, err := take("web", limit*3/4-10)
			expect.Error(t, *err, nil)
			large, largeErr := take("web", 20)
			_, small := take("web", 5)
			if b.Usage().Waiting != 2 {
				t.Errorf("a key takes more than its share, or out of order: %+v", b.Usage())
			}
			shop, err := take("shop", limit/4)
			expect.Error(t, *err, nil, "the last quarter, for another key")
			_, late := take("shop", 20)
			shop.Keep(p, limit/4-10)
			first.Keep(p, 0)
			synctest.Wait()
			for _, err := range []error{*largeErr, *small, *late} {
				expect.Error(t, err, nil, "after the first gave back its memory")
			}
			large.Keep(p, 0)
			if u := b.Usage(); u.Waiting != 0 || u.Requests != limit/4-10+5+20 {
				t.Errorf("in the end %+v", u)
			}
		})
	}
}

func TestNoBudget(t *testing.T) {
	var b *budget.Budget
	expect.Error(t, b.Hold(1<<60), nil)
	b.Charge(1 << 60)
	expect.Error(t, b.Take(t.Context(), budget.Work, 1<<60, patience), nil)
	b.Give(budget.Work, 1)
	if u := b.Usage(); u != (budget.Usage{}) {
		t.Errorf("%+v", u)
	}
}
