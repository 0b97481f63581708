package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"vitrine/experiment"
)

// progress shows the progress of some work: a bar on a terminal, elsewhere a line now and then.
type progress struct {
	w     io.Writer
	name  string
	of    string // the whole that the work belongs to, " of 30 runs"; may be empty
	total int

	columns int // of the terminal; 0 without one
	mu      sync.Mutex
	done    int
	reused  int // of it, work done earlier
	begun   time.Time
	last    time.Time // when it was shown
	width   int       // of the bar on the terminal
}

const barEvery = 100 * time.Millisecond // least time between two pictures of a bar

var lineEvery = 5 * time.Second // least time between two lines; tests change it

func newProgress(w io.Writer, name, of string, total int) *progress {
	now := time.Now()
	return &progress{w: w, name: name, of: of, total: max(total, 1), // a shard may be empty
		columns: terminalColumns(w), begun: now, last: now}
}

// terminalColumns returns the width of a terminal, 80 if it does not say, and 0 of another writer.
func terminalColumns(w io.Writer) int {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		columns, _, _ := term.GetSize(int(f.Fd()))
		return cmp.Or(columns, 80)
	}
	return 0
}

// add counts work done.
func (p *progress) add(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	switch now := time.Now(); {
	case p.columns > 0 && now.Sub(p.last) >= barEvery:
		p.draw(now)
	case p.columns == 0 && now.Sub(p.last) >= lineEvery:
		p.last = now
		fmt.Fprintf(p.w, "vitrine: %s: %d%%%s\n", p.name, 100*p.done/p.total, p.of)
	}
}

// reuse counts work done earlier, which took no time.
func (p *progress) reuse(n int) {
	p.mu.Lock()
	p.reused += n
	p.mu.Unlock()
	p.add(n)
}

// draw draws the bar over the one before. It fits in the terminal, because a longer line could not be drawn over.
func (p *progress) draw(now time.Time) {
	p.last = now
	size := min(p.columns/4, 20)
	full := min(size*p.done/p.total, size)
	state := fmt.Sprintf(" [%s%s] %3d%%", strings.Repeat("=", full), strings.Repeat("-", size-full), 100*p.done/p.total)
	if p.done > p.reused && p.done < p.total {
		left := float64(now.Sub(p.begun)) * float64(p.total-p.done) / float64(p.done-p.reused)
		state += " " + time.Duration(left).Round(time.Second).String()
	}
	bar := fmt.Sprintf("%.*s%s", max(p.columns-1-len(state), 0), p.name, state)
	bar = bar[:min(len(bar), p.columns-1)]
	fmt.Fprintf(p.w, "\r%-*s", p.width, bar)
	p.width = len(bar)
}

// between returns a function that takes the bar away and writes a line.
func (p *progress) between(write func(string)) func(string) {
	return func(line string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.width > 0 {
			fmt.Fprintf(p.w, "\r%*s\r", p.width, "")
			p.width = 0
		}
		write(line)
	}
}

// options returns the options of experiments that the bar shows, with results in dir.
func (p *progress) options(t terminal, dir string, workers int) experiment.Options {
	return experiment.Options{Dir: dir, Workers: workers, Progress: p.add, Reused: p.reuse, Note: p.between(t.note),
		Warn: p.between(t.warn)}
}

// close ends the bar, finished or not.
func (p *progress) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.columns > 0 {
		p.draw(time.Now())
		fmt.Fprintln(p.w)
	}
}

// runs names the number of runs of the whole work.
func runs(n int) string { return fmt.Sprintf(" of %d runs", n) }

// stages shows the progress of work in several stages.
type stages struct {
	w     io.Writer
	name  string // of the whole, or ""
	stage string
	bar   *progress
}

// report shows how much of a stage is done.
func (s *stages) report(stage string, done, total int) {
	if stage != s.stage {
		s.close()
		title := stage
		if s.name != "" {
			title = s.name + ", " + stage
		}
		s.stage, s.bar = stage, newProgress(s.w, title, "", total)
	}
	s.bar.add(done - s.bar.done)
}

// close ends the bar, so that other text may be written. The next report opens another.
func (s *stages) close() {
	if s.bar != nil {
		s.bar.close()
		s.stage, s.bar = "", nil
	}
}
