package learner

import (
	"runtime"
	"testing"
	"time"
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

// A queue that was longer than its small array has no rounds in that array.
func TestQueueForgetsItsTasks(t *testing.T) {
	many := make([]task, len(queue{}.small))
	for name, add := range map[string]func(*queue){
		"push":   func(q *queue) { q.push(task{bytes: 1}) },
		"add":    func(q *queue) { q.add(many...) },
		"follow": func(q *queue) { q.follow(1) },
	} {
		q := newQueue(100)
		for k := range many {
			q.push(task{entry: uint64(k + 1), bytes: 1})
		}
		add(q)
		for k := range many {
			if v, _, _ := q.pop(); v.entry != uint64(k+1) {
				t.Errorf("%s: task %d is %+v", name, k, v)
			}
		}
		for _, v := range q.small {
			if v.entry != 0 {
				t.Errorf("%s: the array has task %d", name, v.entry)
			}
		}
	}
}

// Rounds wait for wake, except that a waiting pop is woken when there is no room for another one.
func TestQueueThatIsFullWakes(t *testing.T) {
	for name, add := range map[string]func(*queue){
		"push":      func(q *queue) { q.push(task{entry: 2, bytes: 60}) },
		"awaitRoom": func(q *queue) { q.awaitRoom(60) },
	} {
		q := newQueue(100)
		popped, asleep := make(chan task, 1), make(chan struct{})
		go func() {
			close(asleep)
			v, _, _ := q.pop()
			popped <- v
		}()
		<-asleep
		time.Sleep(5 * time.Millisecond)
		q.push(task{entry: 1, bytes: 60})
		add(q)
		if v := <-popped; v.entry != 1 {
			t.Errorf("%s: %+v", name, v)
		}
	}
}
