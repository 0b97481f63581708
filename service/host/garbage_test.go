package host

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"
	"weak"

	"vitrine/internal/expect"
)

func TestGarbagePercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 400, 16 << 20: 400, 17 << 20: 200, 64 << 20: 100, 65 << 20: 50,
		128 << 20: 50, 129 << 20: 25, 1 << 40: 25} {
		if have := garbagePercent(live); have != want {
			t.Errorf("%d bytes: %d%%, want %d%%", live, have, want)
		}
	}
}

// The percentage follows the live memory while a service runs, and is restored afterwards; GOGC has precedence.
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
		go func() { CollectOften(ctx); close(ended) }()
		for deadline := time.Now().Add(2 * time.Minute); percent() != during; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("GOGC=%q: %d%%, want %d%%", gogc, percent(), during)
			}
		}
		stop()
		<-ended
		if p := percent(); p != before {
			t.Errorf("GOGC=%q: %d%% afterwards, want %d%%", gogc, p, before)
		}
	}
}

// A rest begins after large allocations since the last one and small ones in the last second, and lasts five
// collections.
func TestRestCollects(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		allocated, held, second uint64
		want                    bool
	}{
		{17 * mb, 500 * mb, 0, true}, {16 * mb, 500 * mb, 0, false}, {500 * mb, 16 * mb, 0, false},
		{120 * mb, 500 * mb, 2 * mb, true}, {120 * mb, 500 * mb, 2*mb + 1, false},
		{500 * mb, 120 * mb, 2*mb + 1, false},
	} {
		r := rest{before: 7*mb + c.allocated - c.second, given: 7 * mb}
		expect.Equal(t, r.collects(heap{held: c.held, allocated: 7*mb + c.allocated}), c.want, c)
	}

	r, now := rest{}, heap{held: 500 * mb, allocated: 100 * mb}
	r.before = now.allocated
	collections := func() (at []int) {
		for second := range 100 {
			if r.collects(now) {
				at = append(at, second)
			}
		}
		return at
	}
	expect.List(t, collections(), []int{0, 5, 10, 15, 20}, "collections at")
	if now.allocated += 16 * mb; len(collections()) > 0 {
		t.Error("16 MB since a rest: another one")
	}
	if now.allocated += mb; len(collections()) != 5 {
		t.Error("17 MB since a rest: no other one")
	}
}

// Garbage that is too small for a collection, and memory that only pools hold, are returned once allocation stops. The
// test runs in a process of its own, away from other tests' heaps.
func TestGarbageIsGivenBack(t *testing.T) {
	const apart = "VITRINE_TEST_APART"
	if os.Getenv(apart) == "" {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestGarbageIsGivenBack$")
		c.Env = append(os.Environ(), apart+"=1", "GOGC=")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v:\n%s", err, out)
		}
		return
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	debug.FreeOSMemory()
	debug.FreeOSMemory() // pools are emptied in two steps
	least := readHeap().held
	pool := sync.Pool{}
	pooled := new([manyUnused]byte)
	kept := weak.Make(pooled)
	pool.Put(pooled)
	clear(make([]byte, 2*manyUnused))
	if have := readHeap(); have.held < least+5*manyUnused/2 {
		t.Fatalf("%+v, before %d: the slices are not garbage", have, least)
	}
	go CollectOften(t.Context())
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		have := readHeap()
		if have.held < least+manyUnused && kept.Value() == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v before %d; the pool has its memory: %v", have, least, kept.Value() != nil)
		}
	}
	runtime.KeepAlive(&pool)
}
