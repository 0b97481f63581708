package host

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// CollectOften lets a large heap grow by less than its own size before garbage is collected, and a small one by more,
// until ctx ends. Go's default is as much garbage as there is live memory. That is 300 MB beside a catalogue of a million
// items, and so little in a small service that collections take a tenth of its processor time. At rest it collects what a
// push of items or some decisions have left, and gives the memory back. The variable GOGC has precedence.
func CollectOften(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	defer debug.SetGCPercent(debug.SetGCPercent(maxGarbage))
	r := rest{before: readHeap().allocated}
	for last := maxGarbage; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := readHeap()
		if percent := garbagePercent(now.live); percent != last {
			debug.SetGCPercent(percent)
			last = percent
		}
		if r.collects(now) {
			debug.FreeOSMemory()
		}
	}
}

// heap is what the heap has, in bytes.
type heap struct {
	live      uint64 // after the last collection
	held      uint64 // live, garbage, and free memory that the system has not been given back
	allocated uint64 // since the beginning
}

func readHeap() heap {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/gc/heap/allocs:bytes"},
	}
	metrics.Read(samples)
	return heap{samples[0].Value.Uint64(), samples[1].Value.Uint64() + samples[2].Value.Uint64(), samples[3].Value.Uint64()}
}

// rest says when to collect garbage because little is allocated. Once is not enough: a pool keeps its memory until nobody
// has used it between two collections.
type rest struct {
	before  uint64 // bytes allocated until the last second
	given   uint64 // bytes allocated until the last rest began
	seconds int    // since this rest began; 0 if there is none
}

// collects is called once a second. It reports whether to collect garbage and give memory back now. A rest begins when the
// memory that may be unused is much, and would not be allocated again within a minute at the rate of the last second. The
// collections are seconds apart, so that pools in use keep what they have.
func (r *rest) collects(now heap) bool {
	unused, second := min(now.allocated-r.given, now.held), now.allocated-r.before
	r.before = now.allocated
	if r.seconds == 0 {
		if unused <= manyUnused || second > unused/60 {
			return false
		}
		r.given = now.allocated
	}
	collects := r.seconds%betweenCollections == 0
	r.seconds = (r.seconds + 1) % restSeconds
	return collects
}

const (
	maxGarbage   = 400 // percent of the live memory; Go's default is 100
	minGarbage   = 25
	smallGarbage = 64 << 20 // bytes, which may always be
	manyUnused   = 16 << 20

	betweenCollections = 5 // seconds
	restSeconds        = 21
)

// garbagePercent returns how much garbage there may be, in percent of the live bytes, in steps that are rarely passed.
func garbagePercent(live uint64) int {
	percent := maxGarbage
	for percent > minGarbage && live*uint64(percent)/100 > smallGarbage {
		percent /= 2
	}
	return percent
}
