package inspect_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/filelog"
	"vitrine/service/host"
	"vitrine/service/inspect"
	"vitrine/service/setup"
)

// A running service's log and a copy of it export the same bytes.
func TestExportPlacement(t *testing.T) {
	ctx, data := t.Context(), t.TempDir()
	store := fatal.Or(filelog.Open(ctx, filelog.Options{Dir: filepath.Join(data, host.LogDir)}))(t)
	defer store.Close()
	e := fatal.Or(engine.Open(ctx, engine.Options{Store: store, Build: setup.NewLearner}))(t)
	defer e.Close()
	for _, name := range []string{"home", "other"} {
		fatal.Or(e.Put(ctx, name, []byte(
			`{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"uniform"}}`), 1))(t)
		for _, id := range []string{"a", "b", "c"} {
			fatal.Or(e.Decide(ctx, name,
				&api.Request{Decision: id, Items: []api.Item{{ID: "sku1", Features: api.Values{api.Number("x", 1)}}}},
				1))(t)
			if id != "c" {
				fatal.If(t, e.Outcome(ctx, name, id, "sku1", 2))
			}
		}
	}
	var live, copied bytes.Buffer
	fatal.If(t, inspect.ExportPlacement(ctx, store, data, "home", &live))
	log := fatal.Or(inspect.Open(ctx, inspect.Options{Log: data}))(t)
	defer log.Close()
	fatal.If(t, log.Export(ctx, &copied, inspect.Decisions{Placement: "home"}))
	if live.String() != copied.String() || strings.Count(live.String(), "\n") != 3 ||
		strings.Contains(live.String(), "other") {
		t.Errorf("%s\nand from a copy\n%s", &live, &copied)
	}
}
