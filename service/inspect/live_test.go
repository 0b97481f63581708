package inspect_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"vitrine/service/api"
	"vitrine/service/decision"
	"vitrine/service/eventlog/natslog"
	"vitrine/service/host"
	"vitrine/service/inspect"
	"vitrine/service/setup"
)

// An export from the log of a running service has the same bytes as one from a copy of it.
func TestExportPlacement(t *testing.T) {
	ctx, data := t.Context(), t.TempDir()
	store, err := natslog.Open(ctx, natslog.Options{Dir: filepath.Join(data, host.LogDir)})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	e, err := decision.Open(ctx, decision.Options{Store: store, Build: setup.NewLearner})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, name := range []string{"home", "other"} {
		if _, err := e.Put(ctx, name, []byte(`{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"uniform"}}`), 1); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"a", "b", "c"} {
			if _, err := e.Decide(ctx, name, &api.Request{Decision: id, Items: []api.Item{{ID: "sku1", Features: api.Values{api.Number("x", 1)}}}}, 1); err != nil {
				t.Fatal(err)
			}
			if id != "c" {
				if err := e.Outcome(ctx, name, id, "sku1", 2); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	var live, copied bytes.Buffer
	if err := inspect.ExportPlacement(ctx, store, data, "home", &live); err != nil {
		t.Fatal(err)
	}
	log, err := inspect.Open(ctx, inspect.Options{Log: data})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if err := log.Export(ctx, &copied, inspect.Decisions{Placement: "home"}); err != nil {
		t.Fatal(err)
	}
	if live.String() != copied.String() || strings.Count(live.String(), "\n") != 3 || strings.Contains(live.String(), "other") {
		t.Errorf("%s\nand from a copy\n%s", &live, &copied)
	}
}
