package experiment

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	strict "github.com/go-json-experiment/json"

	"vitrine"
	"vitrine/bandit"
	"vitrine/internal/hint"
)

// ProcessOptions describe the program behind a [Process].
type ProcessOptions struct {
	Command    []string // program and arguments
	Dir        string   // working directory; "" means the caller's
	Timeout    time.Duration
	Problem    bandit.Problem
	Constraint any  // feasible family in words that the program understands; must marshal to JSON
	Ordered    bool // whether places have effects, and the program lists items from the first place on
}

// Process is a learner that is another program, in any language. It reads lines of JSON on its standard input,
//
//	{"problem": {"seed": 7, "rounds": 1000, "items": 100, "size": 5, "features": 3, "constraint": {"kind": "at-most"}, "ordered": false}}
//	{"context": {"features": [[0.1, …], …], "revenue": [1, …]}}
//	{"round": {"assortment": [3, 17], "choice": 17}}
//
// and answers only a context, with a line on its standard output:
//
//	{"assortment": [3, 17], "propensity": 0.25}
//
// Items are numbered from 0, and the choice is an item, or null for the outside option. The propensity may be left out.
// The program ends when its standard input does. All its randomness should come from the seed, which is below 2³².
//
// [Run] plays a Process like any other learner and ends it after its last round. Other callers use Offer
// and Close. A Process has one caller at a time, and no frozen policies: every offer is the program's present one.
type Process struct {
	o       ProcessOptions
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	pending bytes.Buffer // lines for the program to read before its next answer
	stderr  lastBytes    // readable once the program has ended

	mu    sync.Mutex
	ended bool
}

// NewProcess starts the program, with a seed drawn from rng.
func NewProcess(o ProcessOptions, rng *rand.Rand) (*Process, error) {
	if err := o.Problem.Check(); err != nil {
		return nil, err
	}
	if len(o.Command) == 0 || o.Timeout <= 0 {
		return nil, fmt.Errorf("NewProcess: command %q and timeout %v: give it a program, and time to answer",
			o.Command, o.Timeout)
	}
	p := &Process{o: o, command: exec.Command(o.Command[0], o.Command[1:]...)}
	p.command.Dir, p.command.Stderr, p.command.WaitDelay = o.Dir, &p.stderr, time.Second
	ownGroup(p.command)
	if err := p.send("problem", map[string]any{
		"seed": rng.Uint32(), "rounds": o.Problem.Rounds, "items": o.Problem.Items, "size": o.Problem.MaxShown,
		"features": o.Problem.NumFeatures, "constraint": o.Constraint, "ordered": o.Ordered,
	}); err != nil {
		return nil, err
	}
	var err error
	if p.in, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReaderSize(out, 4096+24*o.Problem.MaxShown)
	switch err := p.command.Start(); {
	case errors.Is(err, fs.ErrPermission):
		return nil, hint.New(fmt.Errorf("%s does not start: %w", p, err), "make it executable, or begin command with the "+
			"program that runs it, such as python3")
	case err != nil:
		return nil, fmt.Errorf("%s does not start: %w", p, err)
	}
	return p, nil
}

// String returns the command line, for messages.
func (p *Process) String() string { return "process " + strings.Join(p.o.Command, " ") }

// send queues a line for the program.
func (p *Process) send(kind string, content any) error {
	return json.NewEncoder(&p.pending).Encode(map[string]any{kind: content})
}

// Offer asks the program for an offer. If there is no valid answer within the timeout, or ctx ends first, Offer kills
// the program. The error then explains the problem and includes the program's standard error output, or is ctx's error.
func (p *Process) Offer(ctx context.Context, x *vitrine.Context) (vitrine.Offer, error) {
	if x.Feasible != nil {
		return vitrine.Offer{}, p.fail(errors.New("contexts with a feasible family of their own are not part of " +
			"the protocol"))
	}
	if p.out.Buffered() > 0 {
		line, _ := p.out.ReadSlice('\n')
		return vitrine.Offer{}, p.fail(fmt.Errorf("wrote %s, which nothing asked for: answer only contexts, and "+
			"print messages to standard error", quote(line)))
	}
	rows := make([][]float64, x.NumItems())
	for i := range rows {
		rows[i] = x.Features.RawRowView(i)
	}
	revenue := x.Revenue
	if revenue == nil {
		revenue = slices.Repeat([]float64{1}, len(rows))
	}
	if err := p.send("context", map[string]any{"features": rows, "revenue": revenue}); err != nil {
		return vitrine.Offer{}, p.fail(err)
	}
	var line []byte
	err := p.exchange(ctx, func() (err error) {
		line, err = p.out.ReadSlice('\n')
		return err
	})
	if err != nil {
		return vitrine.Offer{}, err
	}
	offer, err := decodeOffer(line, p.o.Ordered)
	if n, most := len(offer.Assortment), p.o.Problem.MaxShown; n > most {
		err = fmt.Errorf("%d items, and the size is %d", n, most)
	}
	if err != nil {
		return vitrine.Offer{}, p.fail(fmt.Errorf("answered %s: %w", quote(line), err))
	}
	return offer, nil
}

// exchange writes the pending lines and calls then. If that takes too long or ctx ends, it kills the program.
func (p *Process) exchange(ctx context.Context, then func() error) error {
	limited, cancel := context.WithTimeout(ctx, p.o.Timeout)
	defer cancel()
	defer context.AfterFunc(limited, p.kill)()
	_, err := p.in.Write(p.pending.Bytes())
	p.pending.Reset()
	if err == nil {
		err = then()
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		p.end(0)
		return ctx.Err()
	case limited.Err() != nil:
		return p.fail(fmt.Errorf("gave no answer in %v: if it has one, it must flush its standard output after "+
			"each line", p.o.Timeout))
	case errors.Is(err, bufio.ErrBufferFull):
		return p.fail(fmt.Errorf("answered with a line of more than %d bytes", p.out.Size()))
	}
	if end := p.end(time.Second); end != nil {
		return p.fail(fmt.Errorf("ended: %w", end))
	}
	return p.fail(errors.New("ended, or closed its standard input or output, before its last round"))
}

// fail ends the program and adds its name and standard error output to the error.
func (p *Process) fail(err error) error {
	p.end(0)
	if text := p.Stderr(); text != "" {
		return fmt.Errorf("%s %w; it wrote to standard error:\n%s", p, err, text)
	}
	return fmt.Errorf("%s %w", p, err)
}

// Stderr returns the end of the program's standard error output. The program must have ended.
func (p *Process) Stderr() string { return strings.TrimSpace(string(p.stderr)) }

// end waits for the program to end, and kills it after a while. It returns why the program failed, or nil if the
// program had already ended.
func (p *Process) end(patience time.Duration) error {
	if p.isOver() {
		return nil
	}
	defer time.AfterFunc(patience, p.kill).Stop()
	err := p.command.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	return err
}

func (p *Process) isOver() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// kill kills the program and its children, unless it has ended.
func (p *Process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		killGroup(p.command)
	}
}

// Close sends the program its last round, closes its standard input, and waits for it to end. If the program does not
// end within the timeout, Close kills it. Close returns an error if the program failed. Later calls have no effect.
func (p *Process) Close() error {
	if p.isOver() {
		return nil
	}
	late := time.AfterFunc(p.o.Timeout, p.kill)
	_, _ = p.in.Write(p.pending.Bytes()) // the program may exit after its last offer
	_ = p.in.Close()
	switch err := p.end(p.o.Timeout); {
	case !late.Stop():
		return p.fail(fmt.Errorf("had not ended %v after its last round: it must end when its standard input does",
			p.o.Timeout))
	case err != nil:
		return p.fail(fmt.Errorf("failed after its last round: %w", err))
	}
	return nil
}

// Observe implements vitrine.Learner. The program reads the round before its next context.
func (p *Process) Observe(r vitrine.Round) error {
	if err := r.Check(p.o.Problem.NumFeatures); err != nil {
		return err
	}
	shown := []int(r.Offer.Assortment)
	var choice any
	if r.Choice != vitrine.Outside {
		choice = shown[r.Choice-1]
	}
	if r.Offer.Order != nil {
		shown = r.Offer.Order
	}
	round := map[string]any{"assortment": shown, "choice": choice}
	if len(r.More) > 0 {
		more := make([]int, len(r.More))
		for k, c := range r.More {
			more[k] = r.Offer.Assortment[c-1]
		}
		round["more"] = more
	}
	return p.send("round", round)
}

// Policy implements vitrine.Learner. The policy panics with Offer's errors.
func (p *Process) Policy() vitrine.Policy { return present{p} }

type present struct{ *Process }

// Offer implements vitrine.Policy.
func (p present) Offer(x *vitrine.Context, _ *rand.Rand) vitrine.Offer {
	o, err := p.Process.Offer(context.Background(), x)
	if err != nil {
		panic(err)
	}
	return o
}

// decodeOffer decodes the answer to a context, with items in any order.
func decodeOffer(line []byte, ordered bool) (none vitrine.Offer, err error) {
	var answer struct {
		Assortment *[]int  `json:"assortment"`
		Propensity float64 `json:"propensity"`
	}
	if err := strict.Unmarshal(line, &answer, strict.RejectUnknownMembers(true)); err != nil {
		if s, ok := errors.AsType[*strict.SemanticError](err); ok { // which would print a type of Go
			place := "the line"
			if s.JSONPointer != "" {
				place = quote([]byte(s.JSONPointer))
			}
			err = fmt.Errorf("%s does not fit", place)
		}
		return none, fmt.Errorf(`want {"assortment": [3, 17]}, with whole numbers, and with or without a "propensity": %w`, err)
	}
	if answer.Assortment == nil {
		return none, errors.New(`"assortment" is missing: list the items to offer, or [] for no item`)
	}
	if !(answer.Propensity >= 0 && answer.Propensity <= 1) {
		return none, fmt.Errorf("propensity = %v: must be from 0 to 1", answer.Propensity)
	}
	order := *answer.Assortment
	s := slices.Sorted(slices.Values(order))
	for k := 1; k < len(s); k++ {
		if s[k] == s[k-1] {
			return none, fmt.Errorf("item %d is in the assortment twice", s[k])
		}
	}
	offer := vitrine.Offer{Assortment: s, Propensity: answer.Propensity}
	if ordered {
		offer.Order = order
	}
	return offer, nil
}

// quote returns the beginning of a line, in quotes.
func quote(line []byte) string {
	line = bytes.TrimSpace(line)
	const most = 100
	if len(line) > most {
		return fmt.Sprintf("%q…", line[:most])
	}
	return fmt.Sprintf("%q", line)
}

// lastBytes keeps the end of its input.
type lastBytes []byte

// Write implements io.Writer.
func (b *lastBytes) Write(p []byte) (int, error) {
	const most = 4096
	*b = append(*b, p...)
	if extra := len(*b) - most; extra > 0 {
		*b = append((*b)[:0], (*b)[extra:]...)
	}
	return len(p), nil
}
