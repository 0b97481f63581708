package personalizer

import (
	"context"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/setup"
)

type bareCall struct {
	Call
	ctx context.Context
}

func (c bareCall) Context() context.Context { return c.ctx }
func (bareCall) Now() int64                 { return 2 }

// A change of a placement that another caller changed meanwhile is refused, and theirs stays.
func TestChangeMeanwhile(t *testing.T) {
	e, err := engine.Open(t.Context(), engine.Options{Store: new(memlog.Store), Build: setup.NewLearner})
	fatal.If(t, err)
	defer e.Close()
	put := func(window string) error {
		_, err := e.Put(t.Context(), "shop",
			[]byte(`{"max_size":1,"features":[{"name":"x","kind":"number"}],"attribution_window":"`+window+`"}`), 1)
		return err
	}
	fatal.If(t, put("1m"))
	err = (&Adapter{Engine: e}).change(bareCall{ctx: t.Context()}, "shop", false, func(p *api.Placement) error {
		p.AttributionWindow = "2m"
		return put("3m")
	})
	expect.Error(t, err, engine.ErrConflict)
	if c, err := e.Config("shop"); err != nil || c.AttributionWindow != "3m0s" {
		t.Errorf("%+v, %v", c, err)
	}
}
