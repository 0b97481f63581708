package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"vitrine/internal/hint"
	"vitrine/internal/sockets"
	"vitrine/service/api"
	"vitrine/service/load"
)

type loadCmd struct {
	URLs            []string      `arg:"" name:"url" help:"The URLs of the service's processes, such as http://127.0.0.1:8080."`
	Rate            string        `default:"1000" help:"Decisions a second, or max: as fast as the connections allow, a closed loop."`
	Arrivals        string        `default:"poisson" enum:"poisson,constant" help:"poisson: shoppers arrive independently of each other; constant: with equal gaps."`
	Duration        time.Duration `help:"End after this time (10s, without --decisions)."`
	Decisions       int           `placeholder:"N" help:"End after this number of decisions."`
	Connections     int           `default:"64" help:"Maximal number of concurrent requests."`
	Items           int           `default:"100" help:"Number of candidates in a decision."`
	Features        int           `default:"10" help:"Number of features of an item."`
	Catalogue       bool          `help:"Put the items into the placement's catalogue first. Requests then hold only features of the shopper."`
	ShopperFeatures int           `default:"5" help:"Number of shopper features, with --catalogue."`
	Size            int           `default:"5" help:"Maximal number of items shown."`
	Placement       string        `default:"load" placeholder:"NAME" help:"The placement that the shoppers visit. It is made if it does not exist."`
	Policy          string        `default:"onl-mnl" placeholder:"NAME" help:"The policy of a new placement: a name, or JSON with its parameters."`
	Outcomes        float64       `default:"0.9" placeholder:"SHARE" help:"Share of decisions whose outcome is reported; the others have none."`
	OutcomeDelay    time.Duration `help:"Time from a decision to its outcome (0s)."`
	Retry           time.Duration `help:"Retry failed requests for this time (0s: they are counted as errors)."`
	Seed            uint64        `default:"1" help:"Seed of the items and the shoppers."`
	KeyFile         string        `placeholder:"FILE" help:"File with the token of an API key."`
	AckLog          string        `placeholder:"FILE" help:"Append a line of JSON for every acknowledged decision and outcome."`
	JSON            bool          `name:"json" help:"Print the result as JSON."`
	AllowRemote     bool          `help:"Permit a service on another machine."`
}

func (loadCmd) Help() string {
	return `Simulated shoppers visit a running service. Each asks for a decision, takes one of the items or none by a hidden linear utility, and reports the outcome.

With several URLs, of processes that serve one log, connections begin at different ones. A request that one cannot answer goes to the next.

The loop is open: shoppers arrive at the stated rate whether or not the service keeps up. Latency is measured from the time a request was due, so it includes the wait for a free connection and the delay of the generator itself, which is also printed. An outcome is due when its decision was answered, or --outcome-delay later.

Ctrl-C prints what was measured so far.

` + examples("vitrine load http://127.0.0.1:8080 --rate 3000 --duration 30s", "vitrine load http://127.0.0.1:8080 --catalogue --rate max", "vitrine load http://127.0.0.1:8080 --rate 200 --duration 30m --retry 1m --ack-log acknowledged.jsonl")
}

func (c loadCmd) Run(ctx context.Context, t terminal) (err error) {
	o, err := c.options()
	if err != nil {
		return err
	}
	if c.AckLog != "" {
		f, err := os.OpenFile(c.AckLog, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
		if err != nil {
			return err
		}
		defer f.Close()
		o.Acknowledged = f
	}
	pace := &pace{w: t.err, terminal: terminalColumns(t.err) > 0}
	o.Progress, o.Note = pace.report, func(message string) { fmt.Fprintf(t.err, "vitrine: %s\n", message) }
	result, err := load.Run(ctx, *o)
	pace.close()
	if result != nil {
		if c.JSON {
			if err := t.printJSON(result); err != nil {
				return err
			}
		} else {
			result.Print(t.out, o)
		}
		for _, w := range result.Warnings() {
			t.warn(w)
		}
	}
	switch refused := new(api.Problem); {
	case errors.Is(err, load.ErrPlacement):
		return hint.New(err, "name another one with --placement: a missing placement is made")
	case err != nil && result == nil && !(errors.As(err, &refused) && refused.Kind() == "invalid"):
		return hint.New(err, "is this the URL of vitrine serve? If it has API keys, --key-file names a file with "+
			"a token that has the scopes decide, outcome, read and admin")
	case err != nil:
		return err
	case result.Decisions.Count == 0:
		return errors.New("no decision was answered")
	}
	return nil
}

// options checks the flags.
func (c loadCmd) options() (*load.Options, error) {
	if err := c.checkURLs(); err != nil {
		return nil, err
	}
	o := &load.Options{
		Bases: c.URLs, Placement: c.Placement, Decisions: c.Decisions, Duration: c.Duration, Connections: c.Connections,
		Items: c.Items, Features: c.Features, Size: c.Size, Catalogue: c.Catalogue, Outcomes: c.Outcomes,
		Delay: c.OutcomeDelay, Patience: c.Retry, Seed: c.Seed,
		Poisson: c.Arrivals == "poisson", Policy: map[string]any{"name": c.Policy},
	}
	if c.Catalogue {
		o.User = c.ShopperFeatures
	}
	if err := c.checkNumbers(); err != nil {
		return nil, usageError{err}
	}
	var err error
	if c.Rate != "max" {
		if o.Rate, err = strconv.ParseFloat(c.Rate, 64); err != nil || !(o.Rate > 0 && o.Rate <= 1e6) {
			return nil, usagef("--rate %s: must be a number above 0 and at most 1000000, or max", c.Rate)
		}
	}
	if o.Duration == 0 && o.Decisions == 0 {
		o.Duration = 10 * time.Second
	}
	if strings.HasPrefix(c.Policy, "{") {
		o.Policy = nil
		if err := json.Unmarshal([]byte(c.Policy), &o.Policy); err != nil {
			return nil, usagef("--policy: not JSON: %v", err)
		}
	}
	o.Key, err = readToken(c.KeyFile)
	return o, err
}

// checkURLs refuses addresses that are no URLs, and services on other machines.
func (c loadCmd) checkURLs() error {
	for _, address := range c.URLs {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return usagef("%q: must be a URL such as http://127.0.0.1:8080", address)
		}
		if !c.AllowRemote && !sockets.IsLoopback(u.Hostname()) {
			return hint.New(usagef("%s is not on this machine", address), "load can stop a "+
				"service from serving others: use it on your own, with --allow-remote on another machine")
		}
	}
	return nil
}

// checkNumbers refuses numbers out of their range.
func (c loadCmd) checkNumbers() error {
	maxItems := 100_000
	if c.Catalogue {
		maxItems = 1_000_000
	}
	for _, n := range []struct {
		flag           string
		value, maximum int
	}{{"connections", c.Connections, 10_000}, {"items", c.Items, maxItems}, {"features", c.Features, 1000},
		{"shopper-features", c.ShopperFeatures, 1000}, {"size", c.Size, c.Items}} {
		if n.value < 1 || n.value > n.maximum {
			return fmt.Errorf("--%s %d: must be from 1 to %d", n.flag, n.value, n.maximum)
		}
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{{"duration", c.Duration}, {"outcome-delay", c.OutcomeDelay}, {"retry", c.Retry},
		{"decisions", time.Duration(c.Decisions)}} {
		if d.value < 0 {
			return fmt.Errorf("--%s: must not be negative", d.flag)
		}
	}
	if !(c.Outcomes >= 0 && c.Outcomes <= 1) {
		return fmt.Errorf("--outcomes %v: must be from 0 to 1", c.Outcomes)
	}
	return nil
}

// pace shows the progress of a run: on a terminal each second on one line, elsewhere a line now and then.
type pace struct {
	w        io.Writer
	terminal bool
	last     time.Duration
}

func (p *pace) report(g load.Progress) {
	text := fmt.Sprintf("vitrine: %v: %d decisions, %.0f a second, p99 %s ms, %d failed", g.Elapsed.Round(time.Second),
		g.Decisions, float64(g.Decisions)/g.Elapsed.Seconds(), load.Milliseconds(g.P99), g.Failed)
	switch {
	case p.terminal:
		fmt.Fprintf(p.w, "\r\x1b[K%s", text)
	case g.Elapsed-p.last >= lineEvery:
		p.last = g.Elapsed
		fmt.Fprintln(p.w, text)
	}
}

func (p *pace) close() {
	if p.terminal {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
