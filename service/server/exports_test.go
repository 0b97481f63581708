package server

import (
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"vitrine/internal/fatal"
)

// stalledFor is a download whose reader has not taken the write in progress for some time; 0 is one between writes.
func stalledFor(t time.Duration) *download {
	d := newDownload(&call{w: recorder{ResponseWriter: httptest.NewRecorder()}})
	if t > 0 {
		d.since = time.Now().Add(-t)
	}
	return d
}

func TestExportsArePerKey(t *testing.T) {
	var e exports
	begin := func(d *download, key string) bool { return e.begin(d, key, maxKeyExports) == nil }
	first := stalledFor(0)
	if !begin(first, "a") || !begin(stalledFor(0), "a") {
		t.Fatal("a key cannot run two exports")
	}
	if begin(stalledFor(0), "a") {
		t.Error("a key runs three exports")
	}
	if !begin(stalledFor(0), "b") || !begin(stalledFor(0), "c") {
		t.Error("a key with two exports keeps other keys from theirs")
	}
	if begin(stalledFor(0), "d") {
		t.Errorf("more than %d exports at once", maxExports)
	}
	e.end(first)
	if !begin(stalledFor(0), "d") {
		t.Error("an export that has ended keeps its place")
	}
}

// Readers who stall never keep others out: the one that has stalled the longest gives its place up.
func TestStalledExportsGiveWay(t *testing.T) {
	var e exports
	slow, slower, own := stalledFor(stalled+time.Second), stalledFor(stalled+time.Minute), stalledFor(stalled+time.Second)
	patient := stalledFor(stalled - time.Second)
	for key, d := range map[string]*download{"a": slow, "b": slower, "c": patient, "d": own} {
		fatal.If(t, e.begin(d, key, 1))
	}
	if err := e.begin(stalledFor(0), "d", 1); err != nil {
		t.Errorf("a key cannot replace its own stalled export: %v", err)
	}
	if !own.broken || slower.broken || slow.broken {
		t.Error("a key at its limit has replaced the export of another key")
	}
	if err := e.begin(stalledFor(0), "e", 1); err != nil {
		t.Errorf("stalled readers keep a new key out: %v", err)
	}
	if !slower.broken || slow.broken || patient.broken {
		t.Error("it is not the slowest reader that has given way")
	}
	if _, err := slower.Write([]byte("x")); !errors.Is(err, errStalled) {
		t.Errorf("an export that gave way continues: %v", err)
	}
	if err := e.begin(stalledFor(0), "f", 1); err != nil || !slow.broken {
		t.Errorf("the next slowest reader keeps its place: %v", err)
	}
	if err := e.begin(stalledFor(0), "g", 1); err == nil || patient.broken {
		t.Error("an export whose reader reads has lost its place")
	}
}
