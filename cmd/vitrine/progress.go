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

// progress shows how far an experiment is: a bar on a terminal, elsewhere a
// line now and then.
type progress struct {
	w             io.Writer
	name          string
	units, rounds int // rounds of all units together

	container *mpb.Progress // nil but on a terminal
	bar       *mpb.Bar

	mu   sync.Mutex
	done int // rounds
	last time.Time
}

// lineEvery is the least time between two lines.
const lineEvery = 5 * time.Second

func newProgress(w io.Writer, name string, units, rounds int) *progress {
	p := &progress{w: w, name: name, units: units, rounds: rounds, last: time.Now()}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.container = mpb.New(mpb.WithOutput(w), mpb.WithWidth(40))
		p.bar = p.container.AddBar(int64(rounds),
			mpb.PrependDecorators(decor.Name(name+" ")),
			mpb.AppendDecorators(
				decor.Percentage(decor.WC{W: 5}),
				decor.OnComplete(decor.AverageETA(decor.ET_STYLE_GO, decor.WC{W: 8}), ""),
			),
		)
	}
	return p
}

// add counts further rounds.
func (p *progress) add(rounds int) {
	if p.bar != nil {
		p.bar.IncrBy(rounds)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += rounds
	if now := time.Now(); now.Sub(p.last) >= lineEvery {
		p.last = now
		fmt.Fprintf(p.w, "vitrine: %s: %d %% of %d runs\n", p.name, 100*p.done/p.rounds, p.units)
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
