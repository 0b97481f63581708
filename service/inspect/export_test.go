package inspect

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"vitrine/service/decision"
	"vitrine/service/eventlog"
)

// Two placements may use one id: each outcome goes to the decision of its own placement.
func TestExportOfOneIDInTwoPlacements(t *testing.T) {
	var out bytes.Buffer
	encoder := jsontext.NewEncoder(&out)
	x := &decisions{configs: map[string]*decision.Config{}, open: map[decisionKey]*offered{}, each: func(o *offered, end outcome) error { return writeLine(encoder, o, end) }}
	offer := func(item string) *eventlog.Offered {
		return &eventlog.Offered{Decision: "d", ItemIDs: []string{item}, Shown: []int32{0}, Candidates: 1, Width: 1, Features: []float64{1}, Propensity: 1}
	}
	for i, e := range []*eventlog.Event{
		{Placement: "a", Body: offer("sku a")},
		{Placement: "b", Body: offer("sku b")},
		{Placement: "a", Body: &eventlog.Chosen{Decision: "d", Choice: 1}},
		{Placement: "b", Body: &eventlog.Expired{Decision: "d"}},
	} {
		if err := x.event(uint64(i+1), e); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], `"choice":"sku a"`) || !strings.Contains(lines[1], `"status":"expired"`) || !strings.Contains(lines[1], "sku b") {
		t.Errorf("%s", &out)
	}
}
