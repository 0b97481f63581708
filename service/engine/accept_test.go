package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
)

// A proposal that the state cannot apply, or that no append takes, is refused: the leader goes on, and its log can be
// replayed.
func TestUnlawfulOffers(t *testing.T) {
	p := newPair(t, engine.Options{Build: buildFixed})
	put(t, p.leader, "trial", onTrial(fourVariants))
	put(t, p.leader, "home", `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"0"}}`)
	reach(t, p.follower, 2)
	r := stock("a", 2)
	r.ShopperID, r.Baseline = "shopper", []string{"sku1"}
	decide(t, p.follower, "trial", r, 0)
	data := fatal.Or(p.store.Entry(t.Context(), 3))(t)
	for name, change := range map[string]func(e *eventlog.Event, o *eventlog.Offered) (placement uint64){
		"of a variant without an experiment": func(e *eventlog.Event, _ *eventlog.Offered) uint64 {
			e.Placement = "home"
			return 2
		},
		"larger than an append": func(_ *eventlog.Event, o *eventlog.Offered) uint64 {
			o.ItemIDs[0] = strings.Repeat("x", eventlog.MaxFrame)
			return 1
		},
	} {
		e := fatal.Or(eventlog.Decode(data))(t)
		o := e.Body.(*eventlog.Offered)
		o.Decision = "b"
		changed := change(&e, o)
		entry := fatal.Or(e.Encode(nil))(t)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		if err := engine.AnswerError(p.leader.Accept(ctx, engine.OfferCall(changed, entry), 1)); err == nil ||
			!strings.Contains(err.Error(), "use one release for all: ") || strings.Contains(err.Error(), "count of") {
			t.Errorf("%s: %v", name, err)
		}
		is(t, name, p.leader.Failure(), nil)
	}
	decide(t, p.leader, "trial", &api.Request{Decision: "c", ShopperID: "shopper", Items: r.Items,
		Baseline: r.Baseline}, 0)
	expect.Equal(t, p.leader.Sequence(), 4, "the log has n entries")
	replayed(t, engine.Options{Store: p.store, Build: buildFixed})
}

// Every proposal gets an answer that a follower can read. Only valid proposals change the log.
func FuzzAccept(f *testing.F) {
	store := new(memlog.Store)
	e := opened(f, engine.Options{Store: store, Build: buildToy})
	put(f, e, "home", toys)
	recorder := follower(f, engine.Options{Store: store, Build: buildToy, Replica: 1,
		Propose: func(ctx context.Context, proposal []byte) ([]byte, error) {
			f.Add(proposal)
			return e.Accept(ctx, proposal, 1), nil
		}})
	reach(f, recorder, 1)
	decide(f, recorder, "home", stock("a", 2), 0)
	decide(f, recorder, "home", stock("", 1), 0)
	fatal.If(f, recorder.Outcome(f.Context(), "home", "a", "", 1))
	fatal.If(f, recorder.Reward(f.Context(), "home", "a", []api.Reward{{Item: "sku0", Value: 1}}, 1))
	f.Add([]byte{})
	f.Add([]byte{200})
	f.Fuzz(func(t *testing.T, proposal []byte) {
		answer := e.Accept(t.Context(), proposal, 1)
		fatal.Or(engine.DecodeAnswer(answer))(t, answer)
		fatal.If(t, e.Failure())
	})
}

// An answer is read, or is an error.
func FuzzAnswer(f *testing.F) {
	for _, text := range []string{"", "\x01\x00\x00\x00\x00\x00", "\x05\x01\x00\x00\x00\x00",
		"\x02\x00\x04rest\x00\x00\x00", "\x02\x00\x00\x05\x00\x04late", "\x02\x00\x00\xfe\x06/items\x03bad"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(_ *testing.T, data []byte) { _, _ = engine.DecodeAnswer(data) })
}
