package client

import (
	"sync"

	"vitrine/service/api"
)

// writes are the last entries of each log that answers have named. The zero value is ready.
type writes struct {
	mu   sync.Mutex
	last api.Entries
}

// text returns the entries as a read asks for them, "" for none.
func (w *writes) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last.String()
}

// note remembers the entries of an answer, where they are the last so far. A text that has none is ignored.
func (w *writes) note(text string) {
	entries, err := api.ParseEntries(text)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		w.last = api.Entries{}
	}
	for shard, entry := range entries {
		w.last[shard] = max(w.last[shard], entry)
	}
}
