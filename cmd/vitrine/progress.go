package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// progress shows the progress of some work: a bar on a terminal, elsewhere a line now and then.
type progress struct {
	w     io.Writer
	name  string
	of    string // the whole that the work belongs to, " of 30 runs"; may be empty
	total int

	container *mpb.Progress // nil unless on a terminal
	bar       *mpb.Bar

	mu   sync.Mutex
	done int
	last time.Time
}

// lineEvery is the minimal time between two lines.
const lineEvery = 5 * time.Second

func newProgress(w io.Writer, name, of string, total int) *progress {
	p := &progress{w: w, name: name, of: of, total: total, last: time.Now()}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.container = mpb.New(mpb.WithOutput(w), mpb.WithWidth(40))
		p.bar = p.container.AddBar(int64(total),
			mpb.PrependDecorators(decor.Name(name+" ")),
			mpb.AppendDecorators(
				decor.Percentage(decor.WC{W: 5}),
				decor.OnComplete(decor.AverageETA(decor.ET_STYLE_GO, decor.WC{W: 8}), ""),
			),
		)
	}
	return p
}

// add counts work done.
func (p *progress) add(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	if p.bar != nil {
		p.bar.IncrBy(n)
		return
	}
	if now := time.Now(); now.Sub(p.last) >= lineEvery {
		p.last = now
		fmt.Fprintf(p.w, "vitrine: %s: %d %%%s\n", p.name, 100*p.done/p.total, p.of)
	}
}

// close ends the bar, finished or not.
func (p *progress) close() {
	if p.container == nil {
		return
	}
	if !p.bar.Completed() {
		p.bar.Abort(false)
	}
	p.container.Wait()
}

// runs names the number of runs of the whole work.
func runs(n int) string { return fmt.Sprintf(" of %d runs", n) }

// stages shows the progress of work in several stages.
type stages struct {
	w     io.Writer
	name  string
	stage string
	bar   *progress
}

// report shows how much of a stage is done.
func (s *stages) report(stage string, done, total int) {
	if stage != s.stage {
		s.close()
		s.stage, s.bar = stage, newProgress(s.w, s.name+", "+stage, "", max(total, 1))
	}
	s.bar.add(done - s.bar.done)
}

// close ends the bar, so that other text may be written: a bar clears the lines below it. The next report
// opens another.
func (s *stages) close() {
	if s.bar != nil {
		s.bar.close()
		s.stage, s.bar = "", nil
	}
}
