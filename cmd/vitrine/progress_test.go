package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// A bar is drawn over the one before, however long that was, and ends with its line.
func TestBar(t *testing.T) {
	var out bytes.Buffer
	begun := time.Now()
	p := &progress{w: &out, name: "main", total: 8, isTerminal: true, begun: begun, last: begun.Add(time.Hour)}
	p.add(2)
	p.draw(begun.Add(20 * time.Second))
	p.between(func(line string) { out.WriteString(line) })("a note\n")
	p.add(6)
	p.draw(begun.Add(80 * time.Second))
	want := "\rmain [" + strings.Repeat("=", 10) + strings.Repeat("-", 30) + "]  25 % 1m0s" +
		"\r" + strings.Repeat(" ", 58) + "\ra note\n" +
		"\rmain [" + strings.Repeat("=", 40) + "] 100 %"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	p.close()
	if text := out.String(); !strings.HasSuffix(text, "100 %\n") {
		t.Errorf("%q does not end its line", text)
	}
}

// The bar of an empty shard has nothing to count.
func TestBarOfNoWork(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, "main", "", 0)
	p.isTerminal = true
	p.close()
	if text := out.String(); !strings.HasSuffix(text, "0 %\n") {
		t.Errorf("%q", text)
	}
}
