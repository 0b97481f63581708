package engine_test

import (
	"fmt"
	"testing"

	"vitrine/internal/fatal"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
)

// An editor who gets a revision gets its configuration, also while others change the placement: with the configuration
// before, a change of this revision would undo theirs.
func TestRevisionIsOfItsConfiguration(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildToy})
	put(t, e, "home", fmt.Sprintf(numberedToys, 0))
	done := make(chan error)
	go func() {
		for k := 1; k < 1000; k++ {
			if _, err := e.Put(t.Context(), "home", fmt.Appendf(nil, numberedToys, k), 0); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	sizes := map[uint64]int{} // by revision
	for {
		select {
		case err := <-done:
			fatal.If(t, err)
			return
		default:
			c, revision, err := e.Revision("home")
			fatal.If(t, err)
			if before, ok := sizes[revision]; ok && before != c.MaxItems {
				t.Fatalf("revision %d is of max_request_items %d and of %d", revision, before, c.MaxItems)
			}
			sizes[revision] = c.MaxItems
		}
	}
}

const numberedToys = `{"max_size":2,"max_request_items":1%03d,"features":[{"name":"x","kind":"number"}],"policy":{}}`
