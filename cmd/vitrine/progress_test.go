package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"vitrine/internal/expect"
)

// A bar is drawn over the one before, however long that was, and ends with its line.
func TestBar(t *testing.T) {
	var out bytes.Buffer
	begun := time.Now()
	p := &progress{w: &out, name: "main", total: 8, columns: 80, begun: begun, last: begun.Add(time.Hour)}
	p.add(2)
	p.draw(begun.Add(20 * time.Second))
	p.between(func(line string) { out.WriteString(line) })("a note\n")
	p.add(6)
	p.draw(begun.Add(80 * time.Second))
	want := "\rmain [" + strings.Repeat("=", 5) + strings.Repeat("-", 15) + "]  25% 1m0s" +
		"\r" + strings.Repeat(" ", 37) + "\ra note\n" +
		"\rmain [" + strings.Repeat("=", 20) + "] 100%"
	expect.Equal(t, out.String(), want)
	p.close()
	if text := out.String(); !strings.HasSuffix(text, "100%\n") {
		t.Errorf("%q does not end its line", text)
	}
}

// The remaining time is estimated from this run's own work, without earlier results.
func TestBarOfAResumedRun(t *testing.T) {
	var out bytes.Buffer
	begun := time.Now()
	p := &progress{w: &out, name: "main", total: 100, columns: 80, begun: begun,
		last: begun.Add(time.Hour)}
	p.reuse(80)
	p.draw(begun)
	p.add(10)
	p.draw(begun.Add(10 * time.Second))
	if _, text, _ := strings.Cut(out.String(), "]"); !strings.Contains(text, " 80%\r") || !strings.HasSuffix(text, " 90% 10s") {
		t.Errorf("%q", text)
	}
}

// A line that is longer than the terminal is wide cannot be drawn over.
func TestBarFits(t *testing.T) {
	for columns, want := range map[int]string{
		80: "\rofu-mnl-plus-quadratic-worlds, rung 10 of 1 [==------------------]  10% 90h9m9s",
		40: "\rofu-mnl-plus- [=---------]  10% 90h9m9s",
		20: "\r [-----]  10% 90h9m",
	} {
		var out bytes.Buffer
		begun := time.Now()
		p := &progress{w: &out, name: "ofu-mnl-plus-quadratic-worlds, rung 10 of 12 and more", total: 1000, done: 100,
			begun: begun, columns: columns}
		p.draw(begun.Add(36061 * time.Second))
		expect.Equal(t, out.String(), want)
	}
}

// The bar of an empty shard counts to one.
func TestBarOfNoWork(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, "main", "", 0)
	p.columns = 80
	p.close()
	if text := out.String(); !strings.HasSuffix(text, "0%\n") {
		t.Errorf("%q", text)
	}
}
