package host

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vitrine/service/api"
)

// An alarm of a guard is a warning that says what failed and what is shown.
func TestAlarmIsLogged(t *testing.T) {
	for _, v := range []struct {
		alarm *api.Alarm
		shown string
	}{
		{&api.Alarm{Check: "chance", Detail: "it earns less", Version: 3}, "policy"},
		{&api.Alarm{Check: "chance", Detail: "it earns less", Version: 3, Fallback: "version"}, "version"},
	} {
		var text bytes.Buffer
		alarm(slog.New(slog.NewJSONHandler(&text, nil)), "home", v.alarm)
		got := map[string]any{}
		if err := json.Unmarshal(text.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		delete(got, "time")
		delete(got, "msg")
		want := map[string]any{"level": "WARN", "placement": "home", "check": "chance", "cause": "it earns less", "shown": v.shown, "version": 3.0}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}
