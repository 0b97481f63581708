package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// collectOften lets a large heap grow by less than its own size before garbage is collected, and a small one by more,
// until ctx ends. Go's default is as much garbage as there is live memory. That is 300 MB beside a catalogue of a million
// items, and so little in a small service that collections take a tenth of its processor time. The variable GOGC has
// precedence.
func collectOften(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	defer debug.SetGCPercent(debug.SetGCPercent(maxGarbage))
	for last := maxGarbage; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		metrics.Read(live)
		if percent := garbagePercent(live[0].Value.Uint64()); percent != last {
			debug.SetGCPercent(percent)
			last = percent
		}
	}
}

const (
	maxGarbage   = 400 // percent of the live memory; Go's default is 100
	minGarbage   = 25
	smallGarbage = 64 << 20 // bytes, which may always be
)

// garbagePercent returns how much garbage there may be, in percent of the live bytes, in steps that are rarely passed.
func garbagePercent(live uint64) int {
	percent := maxGarbage
	for percent > minGarbage && live*uint64(percent)/100 > smallGarbage {
		percent /= 2
	}
	return percent
}
