package host

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"vitrine/internal/wait"
)

// CollectOften lets a large heap grow by less than its own size before garbage is collected, and a small one by more,
// until ctx ends. By default Go allows as much garbage as live memory: 300 MB on top of a catalogue of a million items,
// and so little in a small service that collections take a tenth of its processor time. At rest it collects the remains
// of a push of items or of decisions, and returns the memory. The variable GOGC has precedence.
func CollectOften(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	defer debug.SetGCPercent(debug.SetGCPercent(maxGarbage))
	last, r := maxGarbage, rest{before: readHeap().allocated}
	for range wait.Every(ctx, time.Second) {
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

// heap describes the heap, in bytes.
type heap struct {
	live      uint64 // after the last collection
	held      uint64 // live, garbage, and free memory that the system did not get back
	allocated uint64 // since the beginning
}

func readHeap() heap {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/gc/heap/allocs:bytes"},
	}
	metrics.Read(samples)
	return heap{samples[0].Value.Uint64(), samples[1].Value.Uint64() + samples[2].Value.Uint64(),
		samples[3].Value.Uint64()}
}

// rest decides when to collect garbage because little is allocated. Once is not enough: a pool frees memory only if it
// stays unused between two collections.
type rest struct {
	before  uint64 // bytes allocated until the last second
	given   uint64 // bytes allocated until the last rest began
	seconds int    // since this rest began; 0 outside a rest
}

// collects is called once a second. It reports whether to collect garbage and return memory now. A rest begins when
// much memory may be unused that would not be allocated again within a minute at the rate of the last second. The
// collections are seconds apart, so that pools in use keep their memory.
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
