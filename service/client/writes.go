package client

import (
	"strconv"
	"sync/atomic"
)

// writes is the last log entry named by answers. The zero value is ready.
type writes struct{ last atomic.Uint64 }

// text returns the entry for a read, or "".
func (w *writes) text() string {
	if last := w.last.Load(); last > 0 {
		return strconv.FormatUint(last, 10)
	}
	return ""
}

// note remembers the entry of an answer if it is the last so far. A text without an entry is ignored.
func (w *writes) note(text string) {
	entry, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return
	}
	for last := w.last.Load(); entry > last && !w.last.CompareAndSwap(last, entry); last = w.last.Load() {
	}
}
