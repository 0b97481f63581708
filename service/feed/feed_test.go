package feed

import (
	"testing"

	"github.com/go-json-experiment/json"

	"vitrine/service/eventlog"
)

// Listeners get events of every type: eventOf knows them all.
func TestListenersGetEveryEvent(t *testing.T) {
	for _, body := range eventlog.Bodies() {
		_ = json.Unmarshal([]byte(`{"Config": "e30="}`), body) // {}: configurations in the log are not empty
		if kind, _ := eventOf(&eventlog.Event{Placement: "home", Body: body}); kind == "" {
			t.Errorf("%s has no kind", eventlog.Name(body))
		}
	}
}
