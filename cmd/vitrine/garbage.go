package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// collectOften lets a large heap grow by less than its own size before garbage is collected, and a small one by more,
// until ctx ends. Go's default is as much garbage as there is live memory. That is 300 MB beside a catalogue of a million
// items, and so little in a small service that collections take a tenth of its processor time. At rest it collects what a
// push of items has left, and gives the memory back. The variable GOGC has precedence.
func collectOften(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	defer debug.SetGCPercent(debug.SetGCPercent(maxGarbage))
	before := readHeap()
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
		if now.rests(before) {
			runtime.GC() // pools keep what they have until the second collection
			debug.FreeOSMemory()
		}
		before = now
	}
}

// heap is what the heap has, in bytes.
type heap struct {
	live      uint64 // after the last collection
	unused    uint64 // garbage, and free memory that the system has not been given back
	allocated uint64 // since the beginning
}

func readHeap() heap {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	live, objects, free := samples[0].Value.Uint64(), samples[2].Value.Uint64(), samples[3].Value.Uint64()
	return heap{live, max(objects, live) - live + free, samples[1].Value.Uint64()}
}

// rests reports whether much is unused, which would not be allocated again within a minute at the rate since the second
// before.
func (h heap) rests(before heap) bool {
	return h.unused > manyUnused && h.unused/60 > h.allocated-before.allocated
}

const (
	maxGarbage   = 400 // percent of the live memory; Go's default is 100
	minGarbage   = 25
	smallGarbage = 64 << 20 // bytes, which may always be
	manyUnused   = 32 << 20
)

// garbagePercent returns how much garbage there may be, in percent of the live bytes, in steps that are rarely passed.
func garbagePercent(live uint64) int {
	percent := maxGarbage
	for percent > minGarbage && live*uint64(percent)/100 > smallGarbage {
		percent /= 2
	}
	return percent
}
