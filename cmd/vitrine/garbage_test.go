package main

import (
	"context"
	"runtime/debug"
	"testing"
	"time"
)

func TestGarbagePercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 400, 16 << 20: 400, 17 << 20: 200, 64 << 20: 100, 65 << 20: 50, 128 << 20: 50, 129 << 20: 25, 1 << 40: 25} {
		if have := garbagePercent(live); have != want {
			t.Errorf("%d bytes: %d %%, want %d %%", live, have, want)
		}
	}
}

// The percentage is that of the live memory while a service runs, and what it was afterwards, and GOGC has precedence.
func TestCollectOften(t *testing.T) {
	const before = 73
	defer debug.SetGCPercent(debug.SetGCPercent(before))
	percent := func() int {
		p := debug.SetGCPercent(before)
		debug.SetGCPercent(p)
		return p
	}
	for gogc, during := range map[string]int{"": maxGarbage, "200": before} {
		t.Setenv("GOGC", gogc)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { collectOften(ctx); close(ended) }()
		for deadline := time.Now().Add(10 * time.Second); percent() != during; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("GOGC=%q: %d %%, want %d %%", gogc, percent(), during)
			}
		}
		stop()
		<-ended
		if p := percent(); p != before {
			t.Errorf("GOGC=%q: %d %% afterwards, want %d %%", gogc, p, before)
		}
	}
}

func TestHeapRests(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		unused, allocated uint64
		want              bool
	}{{33 * mb, 0, true}, {32 * mb, 0, false}, {120 * mb, 2*mb - 1, true}, {120 * mb, 2 * mb, false}} {
		before := heap{allocated: 7 * mb}
		now := heap{live: 500 * mb, unused: c.unused, allocated: 7*mb + c.allocated}
		if now.rests(before) != c.want {
			t.Errorf("%d bytes unused, %d allocated in a second: %v", c.unused, c.allocated, !c.want)
		}
	}
}

// Garbage that is too little for a collection is given back once nothing is allocated.
func TestGarbageIsGivenBack(t *testing.T) {
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	debug.FreeOSMemory()
	clear(make([]byte, 2*manyUnused))
	if have := readHeap(); have.unused <= manyUnused {
		t.Fatalf("%+v: the slice is not garbage", have)
	}
	go collectOften(t.Context())
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		have := readHeap()
		if have.unused < manyUnused {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v after 20 seconds", have)
		}
	}
}
