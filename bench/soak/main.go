// Command soak runs a decision service for a long time and samples its resources; bench/soak.sh runs it. Placements
// have little memory, so that they reach their limits within seconds. Outcomes come at once, later, twice, too late or
// never.
//
// The run passes if all requests were answered as expected, no learner refused a round, and no resource grew. Resources
// are the live heap (half of the next collection's goal), the resident set, goroutines and open files. A resource grew
// if the median over the last quarter of the samples exceeds the second quarter's by more than a tenth plus 2 MB or 8
// pieces. The first quarter is the warm-up. Medians are compared because the log's server holds one or two buffers of 8
// MB for the file that it is writing, and occasionally frees them.
package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"

	"vitrine"
	"vitrine/env"
	"vitrine/internal/wait"
	"vitrine/service/api"
	"vitrine/service/client"
	"vitrine/utility"
)

// Decisions are made for these placements in turn.
var placements = []struct{ name, config string }{
	{"linear", `{"max_size":5,"max_request_items":20,"memory_bytes":1000000,"attribution_window":"10s","policy":{"name":"onl-mnl"},"features":` + features + `}`},
	{"network", `{"max_size":5,"max_request_items":20,"memory_bytes":1000000,"attribution_window":"10s","policy":{"name":"onl-mnl","pilot":"map","update":"online","utility":{"kind":"mlp","hidden":[3]}},"features":` + features + `}`},
	{"explore", `{"max_size":5,"max_request_items":20,"memory_bytes":2000000,"attribution_window":"10s","mode":"explore","policy":{"name":"eps-greedy-mnl"},"features":` + features + `}`},
	{"full", `{"max_size":5,"max_request_items":20,"memory_bytes":1000000,"attribution_window":"1h","policy":{"name":"ofu-mnl-plus"},"features":` + features + `}`},
}

const (
	width    = 5
	items    = 20
	features = `[{"name":"x0","kind":"number"},{"name":"x1","kind":"number"},{"name":"x2","kind":"number"},{"name":"x3","kind":"number"},{"name":"x4","kind":"number"}]`
	window   = 10 * time.Second
	under    = 64 // maximum number of concurrent decisions
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var s soak
	flag.StringVar(&s.vitrine, "vitrine", "vitrine", "the program")
	flag.StringVar(&s.data, "data", "", "the data directory")
	flag.StringVar(&s.csv, "csv", "soak.csv", "where the samples go")
	flag.DurationVar(&s.duration, "duration", 30*time.Minute, "how long")
	flag.DurationVar(&s.every, "every", 10*time.Second, "between samples")
	flag.IntVar(&s.rate, "rate", 200, "decisions a second")
	flag.Parse()
	s.world = &env.World{
		Items: items, Contexts: env.Gaussian{}, Revenues: env.UniformRevenue{Low: 0.5, High: 1.5},
		Truth: env.NewFamily(utility.NewLinear(width, false), -1, 1, rand.New(rand.NewPCG(1, 0))),
	}
	if err := s.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

type soak struct {
	vitrine, data, csv string
	duration, every    time.Duration
	rate               int

	url    string
	client *client.Client
	world  env.Environment
	places chan struct{} // for concurrent requests
	rounds sync.WaitGroup

	sent, skipped, wrong atomic.Int64
	reported, late       atomic.Int64
}

func (s *soak) run(ctx context.Context) error {
	service, err := s.start()
	if err != nil {
		return err
	}
	defer service.Process.Kill()
	s.client = &client.Client{Base: s.url, HTTP: &http.Transport{MaxIdleConnsPerHost: under}, Timeout: 20 * time.Second,
		Patience: -1}
	s.places = make(chan struct{}, under)
	for _, p := range placements {
		var config api.Placement
		if err := json.Unmarshal([]byte(p.config), &config); err != nil {
			return fmt.Errorf("placement %q: %w", p.name, err)
		}
		if _, err := s.client.Put(ctx, p.name, &config); err != nil {
			return fmt.Errorf("placement %q: %w", p.name, err)
		}
	}
	ctx, stop := context.WithTimeout(ctx, s.duration)
	defer stop()
	s.rounds.Go(func() { s.shop(ctx) })
	samples, err := s.sample(ctx)
	s.rounds.Wait()
	if err != nil {
		return err
	}
	if err := service.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := service.Wait(); err != nil {
		return fmt.Errorf("the service ended with %w", err)
	}
	return s.judge(samples)
}

// start starts the service, and reads its address.
func (s *soak) start() (*exec.Cmd, error) {
	if err := os.MkdirAll(s.data, 0o700); err != nil {
		return nil, err
	}
	file := filepath.Join(s.data, "service.toml")
	text := "listen = \"127.0.0.1:0\"\ndata = \".\"\n[snapshots]\nevery = \"30s\"\nkeep_every = \"20s\"\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(s.vitrine, "serve", "--config", file)
	pipe, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(pipe)
	for s.url == "" && lines.Scan() {
		var line struct{ Msg, Address string }
		if json.Unmarshal(lines.Bytes(), &line, json.MatchCaseInsensitiveNames(true)) == nil && line.Msg == "listening" {
			s.url = "http://" + line.Address
		}
	}
	if s.url == "" {
		return nil, errors.New("the service does not listen")
	}
	go func() { _, _ = io.Copy(io.Discard, pipe) }()
	return cmd, nil
}

// shop sends shoppers at the rate, however slowly the service answers. It does not catch up after a second in which the
// machine stood still.
func (s *soak) shop(ctx context.Context) {
	apart := time.Second / time.Duration(s.rate)
	next := time.Now()
	for n := 0; ctx.Err() == nil; n++ {
		time.Sleep(time.Until(next))
		if next = next.Add(apart); time.Since(next) > time.Second {
			s.skipped.Add(int64(time.Since(next) / apart))
			next = time.Now()
		}
		select {
		case s.places <- struct{}{}:
			s.rounds.Go(func() { s.round(ctx, n) })
		default:
			s.skipped.Add(1)
		}
	}
}

// expect counts unexpected errors.
func (s *soak) expect(err error) bool {
	if err != nil && s.wrong.Add(1) <= 10 {
		fmt.Fprintln(os.Stderr, "soak:", err)
	}
	return err == nil
}

// round sends one shopper.
func (s *soak) round(ctx context.Context, n int) {
	var shopper env.Shopper
	come := env.Shoppers{World: s.world, Seed: 1}
	if err := come.Meet(&shopper, n+1); err != nil {
		panic(err) // this world's contexts are valid
	}
	request := api.Request{Decision: fmt.Sprint("d", n)}
	for i := range shopper.Context.Revenue {
		item := api.Item{ID: fmt.Sprint("sku", i), Revenue: &shopper.Context.Revenue[i]}
		for j, v := range shopper.Context.Features.RawRowView(i) {
			item.Features = append(item.Features, api.Number(fmt.Sprint("x", j), v))
		}
		request.Items = append(request.Items, item)
	}
	placement := placements[n%len(placements)].name
	answer, err := s.client.Decide(context.WithoutCancel(ctx), placement, &request)
	<-s.places
	s.sent.Add(1)
	if !s.expect(err) {
		return
	}
	var shown vitrine.Assortment
	for _, item := range answer.Assortment {
		i, err := strconv.Atoi(strings.TrimPrefix(item.ID, "sku"))
		if !s.expect(err) {
			return
		}
		shown = append(shown, i)
	}
	slices.Sort(shown)
	choice := ""
	if k := shopper.Choose(shown); k != vitrine.Outside {
		choice = fmt.Sprint("sku", shown[k-1])
	}
	s.outcome(ctx, placement, request.Decision, choice, rand.New(rand.NewPCG(1, uint64(n))))
}

// outcome reports a decision's outcome: a fifth never, some too late, some twice. If a placement's memory is full, the
// decision may be expired or forgotten.
func (s *soak) outcome(ctx context.Context, placement, decision, choice string, rng *rand.Rand) {
	times, after := 1, time.Duration(0)
	switch fate := rng.IntN(20); {
	case fate < 4:
		return
	case fate == 4:
		after = window * 3 / 2
	case fate == 5:
		times = 2
	case fate < 12:
		after = time.Duration(rng.Int64N(int64(window / 4)))
	}
	if wait.For(ctx, after) != nil {
		return
	}
	for range times {
		err := s.client.Outcome(context.WithoutCancel(ctx), placement, decision, choice)
		if p, ok := errors.AsType[*api.Problem](err); ok && (p.Status == http.StatusConflict || p.Status == http.StatusNotFound) {
			s.late.Add(1)
		} else if s.expect(err) {
			s.reported.Add(1)
		}
	}
}

// A sample's metrics, one column each, summed over placements.
var columns = []string{
	"process_resident_memory_bytes", "go_memstats_next_gc_bytes", "go_memstats_heap_alloc_bytes", "go_goroutines",
	"process_open_fds",
	"vitrine_log_bytes", "vitrine_log_entries", "vitrine_learner_lag_rounds", "vitrine_pending",
	"vitrine_remembered_bytes",
	"vitrine_decisions_total", "vitrine_outcomes_total", "vitrine_expired_total", "vitrine_skipped_rounds_total",
	"process_cpu_seconds_total",
}

const (
	resident = iota
	nextGC
	heap
	goroutines
	files
	logBytes
	_
	lag
	_
	remembered
	decisions
	outcomes
	expired
	skippedRounds
	cpu
)

// sample writes samples until ctx ends.
func (s *soak) sample(ctx context.Context) (samples [][]float64, err error) {
	file, err := os.Create(s.csv)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	w := csv.NewWriter(file)
	if err := w.Write(append([]string{"seconds"}, columns...)); err != nil {
		return nil, err
	}
	begin := time.Now()
	for range wait.Every(ctx, s.every) {
		answer, err := http.Get(s.url + "/metrics")
		if !s.expect(err) {
			continue
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if !s.expect(err) {
			continue
		}
		v := parse(string(text))
		samples = append(samples, v)
		row := []string{strconv.FormatFloat(time.Since(begin).Seconds(), 'f', 1, 64)}
		for _, x := range v {
			row = append(row, strconv.FormatFloat(x, 'f', -1, 64))
		}
		if err := w.Write(row); err != nil {
			return nil, err
		}
		w.Flush()
		if err := w.Error(); err != nil {
			return nil, err
		}
		fmt.Printf("%7s s  resident %5.1f MB  live heap %5.1f MB  %3.0f goroutines  %3.0f files  log %7.1f MB  "+
			"lag %3.0f  remembered %.2f MB  %7.0f decisions\n",
			row[0], v[resident]/1e6, v[nextGC]/2e6, v[goroutines], v[files], v[logBytes]/1e6, v[lag], v[remembered]/1e6,
			v[decisions])
	}
	return samples, nil
}

// parse reads the columns from Prometheus text.
func parse(text string) []float64 {
	v := make([]float64, len(columns))
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if labels := strings.IndexByte(name, '{'); labels >= 0 {
			_, value, ok = strings.Cut(line, "} ")
			name = name[:labels]
		}
		at := slices.Index(columns, name)
		if !ok || at < 0 {
			continue
		}
		x, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err == nil {
			v[at] += x
		}
	}
	return v
}

// judge applies the rule.
func (s *soak) judge(samples [][]float64) error {
	n := len(samples)
	if n < 8 {
		return fmt.Errorf("%d samples are too few to judge", n)
	}
	var broken []string
	check := func(ok bool, format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		fmt.Println(text)
		if !ok {
			broken = append(broken, text)
		}
	}
	last := samples[n-1]
	fmt.Printf("%.0f decisions, %.0f outcomes, %.0f expired, %d reported, %d refused as late or forgotten, %d not "+
		"sent in time; %.0f µs of processor time a decision\n",
		last[decisions], last[outcomes], last[expired], s.reported.Load(), s.late.Load(), s.skipped.Load(),
		last[cpu]/last[decisions]*1e6)
	for _, m := range []struct {
		name         string
		column       int
		scale, grace float64
		unit         string
	}{
		{"live heap", nextGC, 2e6, 2, " MB"}, {"resident set", resident, 1e6, 2, " MB"},
		{"goroutines", goroutines, 1, 8, ""}, {"open files", files, 1, 8, ""},
	} {
		before, after := median(samples[n/4:n/2], m.column)/m.scale, median(samples[3*n/4:], m.column)/m.scale
		check(after <= 1.1*before+m.grace, "%s: %.1f%s in the last quarter, %.1f in the second", m.name, after, m.unit,
			before)
	}
	check(s.wrong.Load() == 0, "%d requests were not answered as they should be", s.wrong.Load())
	check(last[skippedRounds] == 0, "%.0f rounds were refused by the learners", last[skippedRounds])
	if broken != nil {
		return errors.New(strings.Join(broken, "; "))
	}
	return nil
}

func median(samples [][]float64, column int) float64 {
	var all []float64
	for _, v := range samples {
		all = append(all, v[column])
	}
	slices.Sort(all)
	return all[len(all)/2]
}
