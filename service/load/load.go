package load

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"vitrine/internal/cpu"
	"vitrine/internal/stream"
	"vitrine/internal/wait"
	"vitrine/service/api"
	"vitrine/service/client"
)

// Options describe the load and the service. A run ends after Decisions or Duration, whichever comes
// first.
type Options struct {
	Bases       []string       // URLs of the service's processes; connections begin at different ones, and go to the next if one does not answer
	Key         string         // the token of an API key, or ""
	Placement   string         // is created if it does not exist
	Policy      map[string]any // of the placement, if it is created
	Rate        float64        // decisions per second; 0 is a closed loop, as fast as the connections allow
	Poisson     bool           // whether gaps between decisions are exponential; otherwise they are equal
	Decisions   int            // 0 is no limit
	Duration    time.Duration  // 0 is no limit
	Connections int
	Items       int           // candidates of a decision
	Features    int           // of an item, all numbers
	Catalogue   bool          // whether the items are in the placement's catalogue; all of them are candidates then
	User        int           // features of the user, all numbers; only with a catalogue
	Size        int           // max number of items shown
	Outcomes    float64       // share of decisions with a reported outcome
	Delay       time.Duration // from a decision to its outcome
	Patience    time.Duration // for retries of a request; 0 never retries
	Seed        uint64

	Acknowledged io.Writer            // receives a line of JSON for each acknowledged decision and outcome; may be nil
	Progress     func(Progress)       // is called every second; may be nil
	Note         func(message string) // is called if the placement is created; may be nil
}

// ErrPlacement is returned if the placement exists with other features, smaller limits, or more items in its catalogue.
var ErrPlacement = errors.New("the placement is for other requests")

// Run sends shoppers to a service. If ctx ends, it returns the measurements so far. It returns an error
// if the placement cannot be used or Acknowledged cannot be written. Failed requests are not errors;
// the result counts them.
func Run(ctx context.Context, o Options) (*Result, error) {
	w, err := newWorld(&o)
	if err != nil {
		return nil, err
	}
	beside := &client.Client{Base: o.from(0), Key: o.Key}
	defer beside.CloseIdleConnections()
	if err := open(ctx, beside, &o); err != nil {
		return nil, err
	}
	if o.Catalogue {
		if err := w.push(ctx, beside, &o); err != nil {
			return nil, err
		}
	}
	before := serverCPU(ctx, &o)
	ownBefore := cpu.Time()
	start := time.Now()
	r := &run{
		Options: &o, world: w, counts: newTally(), journal: journal{to: o.Acknowledged},
		name:     "load-" + rand.Text()[:10],
		schedule: newSchedule(&o, start, stream.New(o.Seed, 1, stream.World)),
	}
	err = r.all(ctx, start)
	own := cpu.Time() - ownBefore
	result := r.result(start, ctx.Err() != nil)
	if n := float64(result.Decisions.Count); n > 0 {
		result.GeneratorCPU = float64(own.Microseconds()) / n
		if after := serverCPU(context.WithoutCancel(ctx), &o); before > 0 && after > before {
			result.ServerCPU = (after - before) * 1e6 / n
		}
	}
	return result, err
}

// from returns all addresses for a client that begins with the i-th.
func (o *Options) from(i int) string {
	i %= len(o.Bases)
	return strings.Join(slices.Concat(o.Bases[i:], o.Bases[:i]), ",")
}

// open creates the placement, or checks that it fits.
func open(ctx context.Context, c *client.Client, o *Options) error {
	c.Patience = -1 // so that an unreachable service is reported at once
	want := &api.Placement{MaxSize: o.Size, MaxItems: o.Items, Policy: o.Policy, Seed: o.Seed}
	for j := range o.Features {
		want.Features = append(want.Features, api.Feature{Name: featureName(j), Kind: "number"})
	}
	for j := range o.User {
		want.Features = append(want.Features, api.Feature{Name: userName(j), Kind: "number", From: "shopper"})
	}
	there, err := c.Placement(ctx, o.Placement)
	if p, ok := errors.AsType[*api.Problem](err); ok && p.Kind() == "not-found" {
		if _, err := c.Put(ctx, o.Placement, want); err != nil {
			return fmt.Errorf("placement %q cannot be created: %w", o.Placement, err)
		}
		if o.Note != nil {
			o.Note(fmt.Sprintf("created placement %q with the policy %v", o.Placement, o.Policy["name"]))
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("placement %q: %w", o.Placement, err)
	}
	same := len(there.Features) == len(want.Features) && there.MaxItems >= o.Items && there.MaxSize >= o.Size &&
		there.Mode != "shadow"
	for j := range want.Features {
		same = same && there.Features[j].Name == want.Features[j].Name && there.Features[j].Kind == "number" &&
			(there.Features[j].From == "shopper") == (want.Features[j].From == "shopper")
	}
	if !same {
		return fmt.Errorf("placement %q: %w: these have %d items with %d numbers x0, x1, …, and show %d", o.Placement,
			ErrPlacement, o.Items, o.Features, o.Size)
	}
	if o.Note != nil && there.Policy["name"] != o.Policy["name"] {
		o.Note(fmt.Sprintf("placement %q has the policy %v: --policy is for a new placement", o.Placement,
			there.Policy["name"]))
	}
	return nil
}

// run is a run in progress.
type run struct {
	*Options
	world    *world
	schedule *schedule
	counts   *tally
	journal  journal
	name     string // the prefix of its decision ids
}

// all runs the connections until the schedule is over.
func (r *run) all(ctx context.Context, start time.Time) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var workers, reporting sync.WaitGroup
	for i := range r.Connections {
		workers.Go(func() {
			if err := r.work(ctx, r.from(i)); err != nil {
				stop(err)
			}
		})
	}
	working, end := context.WithCancel(context.WithoutCancel(ctx))
	if r.Progress != nil {
		reporting.Go(func() {
			for now := range wait.Every(working, time.Second) {
				r.Progress(r.counts.progress(now.Sub(start)))
			}
		})
	}
	workers.Wait()
	end()
	reporting.Wait()
	if err := context.Cause(ctx); err != ctx.Err() {
		return err
	}
	return nil
}

// transport returns a transport of one connection to the service itself: no proxy of the environment is between them.
func transport() *http.Transport {
	return &http.Transport{MaxConnsPerHost: 1, DisableCompression: true}
}

// work sends the requests of one connection. It returns an error if the journal cannot be written.
func (r *run) work(ctx context.Context, base string) error {
	one := transport()
	defer one.CloseIdleConnections()
	c := &client.Client{Base: base, Key: r.Key, HTTP: one, Patience: r.Patience,
		Retrying: func(error, time.Duration) { r.counts.count(func(t *tally) { t.retries++ }) }}
	if r.Patience == 0 {
		c.Patience = -1
	}
	come := &shoppers{world: r.world}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		now := time.Now()
		t, ok := r.schedule.next(now)
		if !ok {
			return nil
		}
		if wait := t.due.Sub(now); wait > 0 {
			timer.Reset(wait)
			select {
			case <-ctx.Done():
				if t.decision != "" {
					r.schedule.add(t)
				}
				return nil
			case <-timer.C:
			}
			late := time.Since(t.due)
			r.counts.count(func(all *tally) { all.late.add(late) })
		}
		if err := r.do(ctx, c, come, t); err != nil {
			return err
		}
	}
	return nil
}

// do sends a request and counts the result.
func (r *run) do(ctx context.Context, c *client.Client, come *shoppers, t task) error {
	if t.decision != "" {
		return r.reportOutcome(ctx, c, t)
	}
	a, err := c.DecidePrepared(ctx, r.Placement, r.name+"-"+strconv.Itoa(t.round), come.candidates(t.round).request)
	now := time.Now()
	if err != nil {
		r.failed(ctx, err)
		return nil
	}
	r.counts.count(func(all *tally) {
		all.decisions.add(now.Sub(t.due))
		if all.last = now; a.Repeated {
			all.repeated++
		}
	})
	if err := r.journal.write(decided{a.Decision, a.Items()}); err != nil {
		return err
	}
	if item, report := come.choose(t.round, a.Items(), r.Outcomes); report {
		r.schedule.add(task{due: now.Add(r.Delay), decision: a.Decision, choice: item})
	}
	return nil
}

func (r *run) reportOutcome(ctx context.Context, c *client.Client, t task) error {
	if err := c.Outcome(ctx, r.Placement, t.decision, t.choice); err != nil {
		r.failed(ctx, err)
		return nil
	}
	line, latency := reported{Decision: t.decision}, time.Since(t.due)
	r.counts.count(func(all *tally) {
		if all.outcomes.add(latency); t.choice != "" {
			line.Choice = &t.choice
			all.purchases++
		}
	})
	return r.journal.write(line)
}

// failed counts a request that failed or was interrupted.
func (r *run) failed(ctx context.Context, err error) {
	kind, interrupted := kindOf(err), ctx.Err() != nil
	r.counts.count(func(t *tally) {
		if !interrupted {
			t.errors[kind]++
		} else {
			t.unanswered++
		}
	})
}

func (r *run) result(start time.Time, interrupted bool) *Result {
	t := r.counts
	if interrupted {
		r.schedule.stop(time.Now())
	}
	result := &Result{
		Target: r.Rate, Decisions: t.decisions.latency(), Outcomes: t.outcomes.latency(), Purchases: t.purchases,
		Repeated: t.repeated, Retries: t.retries,
		Unsent: r.schedule.unsent, Unreported: len(r.schedule.outcomes), Errors: t.errors, Late: t.late.latency(),
		Unanswered: t.unanswered, Interrupted: interrupted,
	}
	if result.Decisions.Count > 0 {
		result.Seconds = t.last.Sub(start).Seconds()
		result.Achieved = float64(result.Decisions.Count) / result.Seconds
	}
	return result
}

// serverCPU returns the processor time of all processes in seconds, or 0 if one does not report it.
func serverCPU(ctx context.Context, o *Options) (sum float64) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for _, base := range o.Bases {
		seconds := processCPU(ctx, base, o.Key)
		if seconds == 0 {
			return 0
		}
		sum += seconds
	}
	return sum
}

func processCPU(ctx context.Context, base, key string) float64 {
	r, err := http.NewRequestWithContext(ctx, "GET", strings.TrimSuffix(base, "/")+"/metrics", nil)
	if err != nil {
		return 0
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	one := transport()
	defer one.CloseIdleConnections()
	answer, err := one.RoundTrip(r)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return 0
	}
	lines := bufio.NewScanner(io.LimitReader(answer.Body, 16<<20))
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "process_cpu_seconds_total "); ok {
			seconds, _ := strconv.ParseFloat(text, 64)
			return seconds
		}
	}
	return 0
}
