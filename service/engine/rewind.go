package engine

import (
	"context"
	"fmt"

	"vitrine/service/catalogue"
	"vitrine/service/eventlog"
)

// maxUndone limits how many changed items an explanation undoes.
var maxUndone = 100_000

// Rewind undoes the logged changes after the entry version, so that items become that version of their catalogue. It
// returns an error if the changes concern more than most items, or if the catalogue never passed through the version.
func Rewind(ctx context.Context, log eventlog.Reader, items *catalogue.Frozen, version uint64, most int) error {
	for left := most; items.Version > version; {
		entry, err := log.Entry(ctx, items.Version)
		if err != nil {
			return fmt.Errorf("entry %d: %w", items.Version, err)
		}
		event, err := eventlog.Decode(entry)
		if err != nil {
			return fmt.Errorf("entry %d: %w", items.Version, err)
		}
		change, ok := event.Body.(*eventlog.ItemsChanged)
		if !ok || change.Before >= items.Version {
			return fmt.Errorf("entry %d does not change a catalogue", items.Version)
		}
		if left -= 1 + len(change.Put) + len(change.Deleted); left < 0 {
			return fmt.Errorf("more than %d items of the catalogue have changed since", most)
		}
		if err := items.Revert(change.Before, change.Put, change.Deleted, change.Undo); err != nil {
			return fmt.Errorf("entry %d: %w", items.Version, err)
		}
	}
	return nil
}
