package feed

import (
	"slices"
	"testing"

	"vitrine/internal/expect"
	"vitrine/service/eventlog"
)

// Listeners get events of every type, each with a kind that the API's description lists.
func TestListenersGetEveryEvent(t *testing.T) {
	for _, body := range append(eventlog.Bodies(), &eventlog.Corrected{Correction: "return"}) {
		kind := kindOf(body)
		if !slices.Contains(Kinds(), kind) {
			t.Errorf("%s is an event %q, which Kinds lacks", eventlog.Name(body), kind)
		}
		expect.Contains(t, string(Text(&eventlog.Event{Placement: "home", Body: body})), "event: "+kind+"\n")
	}
	expect.Equal(t, kindOf(new(eventlog.CategoryValuesAdded)), "category-values-added")
}
