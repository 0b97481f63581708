package eventlog_test

import (
	"context"
	"fmt"

	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
)

// Write an event to a log and read it back.
func Example() {
	ctx := context.Background()
	log := new(memlog.Store)
	event := eventlog.Event{Time: 1_700_000_000_000_000_000, Placement: "home",
		Body: &eventlog.Chosen{Decision: "d1", Choice: 2}}
	entry, err := event.Encode(nil)
	if err != nil {
		panic(err)
	}
	if _, err := log.Append(ctx, entry); err != nil {
		panic(err)
	}
	for entry, err := range log.Entries(ctx, 1) {
		if err != nil {
			panic(err)
		}
		read, err := eventlog.Decode(entry)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: %+v\n", read.Placement, *read.Body.(*eventlog.Chosen))
	}
	// Output: home: {Decision:d1 Choice:2 Basket:[] Unlearned:false}
}
