package decision

import (
	"runtime"
	"testing"
)

// A queue that was long takes nothing once it is empty.
func TestQueueGivesItsMemoryBack(t *testing.T) {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const long = 100_000 // tasks, of more than 100 bytes each
	q := newQueue(long)
	before := heap()
	for range long {
		q.push(task{bytes: 1})
	}
	for range long {
		if _, _, ok := q.pop(); !ok {
			t.Fatal("the queue has ended")
		}
	}
	if after := heap(); after > before+50*long {
		t.Errorf("the empty queue takes %d bytes", after-before)
	}
	runtime.KeepAlive(q)
}
