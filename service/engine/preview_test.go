package engine_test

import (
	"errors"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/budget"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/setup"
)

// A preview predicts the change's effects, without an entry of the log or a byte of the budget.
func TestPreview(t *testing.T) {
	b := budget.New(1 << 40)
	size := func(setup.Spec) (setup.Size, error) { return setup.Size{Learner: 1000, State: 10}, nil }
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildShowing(showing{utility: -800}), Size: size,
		Budget: b})
	const shop = `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{}}`
	changes := func(config string, want api.Preview, fields string) {
		t.Helper()
		before, used := e.Sequence(), b.Usage()
		v, err := e.Preview(t.Context(), "home", []byte(config), engine.Change{})
		fatal.If(t, err)
		if e.Sequence() != before || b.Usage() != used {
			t.Errorf("after the preview the log has %d entries, and had %d; the budget is %+v, and was %+v",
				e.Sequence(), before, b.Usage(), used)
		}
		lost := v.Lost != nil && v.Lost.Rounds > 0
		if v.Change != want.Change || v.CanRelearn != want.CanRelearn || v.MaxSize != want.MaxSize ||
			lost != (want.Lost != nil) || len(v.Fields) > 0 != (fields != "") ||
			len(v.Fields) == 1 && v.Fields[0] != fields {
			t.Errorf("%s: %+v of %q, want %+v of %q", config, v, v.Fields, want, fields)
		}
		_, err = e.Change(t.Context(), "home", []byte(config),
			engine.Change{Match: func(uint64) error { return errNot }}, 1e18)
		if refused := errors.Is(err, errNot); refused == (want.Change == api.PreviewNone) {
			t.Errorf("%s: the change is %v", config, err)
		}
		_, err = e.Change(t.Context(), "home", []byte(config), engine.Change{Match: func(uint64) error { return nil }},
			1e18)
		if loss := errors.Is(err, engine.ErrLoss); loss != (want.Lost != nil) {
			t.Errorf("%s: the change is %v", config, err)
		}
	}
	lost := new(api.Loss)
	changes(shop, api.Preview{Change: api.PreviewCreate}, "")
	changes(shop, api.Preview{Change: api.PreviewNone}, "")
	changes(`{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{}}`,
		api.Preview{Change: api.PreviewRestart}, "max_size")
	newTrade(t, e, 0.5, 0.5).goOn(5, 1)
	wait(t, e)
	changes(`{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{},"max_versions":3}`,
		api.Preview{Change: api.PreviewKeep}, "")
	changes(`{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{}}`,
		api.Preview{Change: api.PreviewRestart, Lost: lost, CanRelearn: true, MaxSize: 1}, "max_size")
	changes(`{"max_size":2,"features":[{"name":"y","kind":"number"}],"policy":{}}`,
		api.Preview{Change: api.PreviewRestart, Lost: lost}, "features")
	if _, err := e.Preview(t.Context(), "..", []byte(shop), engine.Change{}); !isAt(err, "/name") {
		t.Errorf("a name that is none: %v", err)
	}
	if _, err := e.Preview(t.Context(), "home", []byte(`{}`), engine.Change{}); !isAt(err, "/features") &&
		!isAt(err, "/max_size") {
		t.Errorf("a configuration that is none: %v", err)
	}
	expect.Fails(e.Preview(t.Context(), "home", []byte(shop),
		engine.Change{Match: func(uint64) error { return errNot }}))(t, errNot, "a placement that has changed")
}

var errNot = errors.New("not now")

func isAt(err error, field string) bool {
	var at *api.FieldError
	return errors.As(err, &at) && at.Field == field
}
