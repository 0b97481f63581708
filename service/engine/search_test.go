package engine_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
)

// A decision that is no longer remembered is found in the log by a search: as it was while it was remembered.
func TestSearch(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", `{"max_size":2,"policy":{"name":"ucb-mnl"},"features":[{"name":"x","kind":"number"}],"memory_bytes":40000,"attribution_window":"1m"}`)
	end := map[string]func(id string){
		"chosen": func(id string) { fatal.If(t, e.Outcome(t.Context(), "home", id, "sku1", 1)) },
		"none":   func(id string) { fatal.If(t, e.Outcome(t.Context(), "home", id, "", 1)) },
		"returned": func(id string) {
			fatal.If(t, e.Outcome(t.Context(), "home", id, "sku0", 1))
			fatal.If(t, e.Correct(t.Context(), "home", id, api.Correction{ID: "back", Item: "sku0", Value: new(-0.5)},
				1))
		},
		"later": func(id string) { fatal.If(t, e.Outcome(t.Context(), "home", id, "sku0", 1)) }, // is part of other ids
		"passed": func(id string) {
			fatal.If(t, e.Reward(t.Context(), "home", id, []api.Reward{{Item: "sku0"}}, 1))
			fatal.Or(e.Expire(t.Context(), 1+2*minute))(t)
		},
	}
	before := map[string]engine.Decision{}
	for id, does := range end {
		r := stock(id, 3)
		r.Include, r.Defer = []string{"sku0", "sku1"}, id == "passed"
		decide(t, e, "home", r, 0)
		does(id)
		before[id] = fatal.Or(e.Decision(t.Context(), "home", id))(t)
	}
	for k := range 2000 {
		id := fmt.Sprint("later", k)
		decide(t, e, "home", stock(id, 3), 2)
		fatal.If(t, e.Outcome(t.Context(), "home", id, "", 2))
	}
	wait(t, e)
	searches := 0
	search := engine.WithSearch(t.Context(), func() (func(), error) { searches++; return func() { searches += 10 }, nil })
	for id, want := range before {
		_, err := e.Decision(t.Context(), "home", id)
		is(t, "without a search", err, engine.ErrNotFound)
		got := fatal.Or(e.Decision(search, "home", id))(t)
		expect.Equal(t, got, want, id, cmpopts.IgnoreFields(engine.Decision{}, "Offer"))
		expect.Equal(t, got.Offer.Reply(), want.Offer.Reply(), id)
		why := fatal.Or(e.Explain(search, "home", id, 3, nil))(t)
		if len(why.Items) != 2 || why.Items[0].Utility == nil {
			t.Errorf("%s is explained by %+v", id, why)
		}
	}
	expect.Equal(t, searches, 11*2*len(before), "turns of searches, taken and left")
	for _, missing := range []string{"ever", "late"} { // parts of other ids
		expect.Fails(e.Decision(search, "home", missing))(t, engine.ErrNotFound, missing)
	}
	turns := 0
	turn := func() (func(), error) { turns++; return func() { turns += 10 }, nil }
	expect.Fails(e.Explain(search, "home", "ever", 3, turn))(t, engine.ErrNotFound, "in turn")
	expect.Equal(t, turns, 0, "turns before the search has found the decision")
	fatal.Or(e.Explain(search, "home", "chosen", 3, turn))(t)
	expect.Equal(t, turns, 11, "one turn taken, and left")
	turn = func() (func(), error) { return nil, context.DeadlineExceeded }
	expect.Fails(e.Explain(search, "home", "chosen", 3, turn))(t, context.DeadlineExceeded, "without a turn")
	expect.Fails(e.Decision(engine.WithSearch(t.Context(), turn), "home", "chosen"))(t, context.DeadlineExceeded, "without a turn")
	_, err := e.Decision(search, "nowhere", "chosen")
	is(t, "of no placement", err, engine.ErrNotFound)
}

// unread is a log that ends its entries with an error.
type unread struct {
	memlog.Store
	err error
}

func (u *unread) Entries(ctx context.Context, from uint64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if u.err != nil {
			yield(nil, u.err)
			return
		}
		u.Store.Entries(ctx, from)(yield)
	}
}

// A search of a log that cannot be read does not say that the decision is unknown.
func TestSearchOfAnUnreadLog(t *testing.T) {
	log := new(unread)
	e := opened(t, engine.Options{Store: log})
	put(t, e, "home", `{"max_size":2,"policy":{"name":"ucb-mnl"},"features":[{"name":"x","kind":"number"}]}`)
	log.err = &eventlog.DamageError{Sequence: 2, Err: io.ErrUnexpectedEOF}
	search := engine.WithSearch(t.Context(), func() (func(), error) { return func() {}, nil })
	expect.Fails(e.Decision(search, "home", "gone"))(t, io.ErrUnexpectedEOF)
	log.err = nil
	_, err := e.Decision(search, "home", "gone")
	is(t, "once it can be read", err, engine.ErrNotFound)
}
