package state

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"vitrine/internal/fatal"
	"vitrine/service/eventlog"
	"vitrine/service/setup"
)

// An event that the state does not know would end the log: it is appended before it is applied.
func TestEveryEventIsKnown(t *testing.T) {
	c := fatal.Or(setup.Parse([]byte(`{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"uniform"}}`)))(t)
	for _, body := range eventlog.Bodies() {
		_ = json.Unmarshal(fatal.Or(json.Marshal(map[string][]byte{"Config": c.Canonical()}))(t), body)
		s := NewState(setup.NewLearner, func(func()) {})
		for _, b := range []eventlog.Body{&eventlog.PlacementPut{Config: c.Canonical()}, body} {
			err := s.Apply(nil, &eventlog.Event{Placement: "home", Body: b}, nil)
			if err != nil && strings.Contains(err.Error(), "an event of type") {
				t.Errorf("applyBody does not know %s: add a case", eventlog.Name(body))
			}
		}
		s.Stop()
	}
}
