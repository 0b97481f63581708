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
	"encoding/json"
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

	"vitrine"
	"vitrine/env"
	"vitrine/internal/wait"
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
	client http.Client
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
	s.client.Transport = &http.Transport{MaxIdleConnsPerHost: under}
	s.client.Timeout = 20 * time.Second
	s.places = make(chan struct{}, under)
	for _, p := range placements {
		if status, text := s.ask("PUT", "/v1/placements/"+p.name, p.config); status != http.StatusCreated {
			return fmt.Errorf("placement %q: %d %s", p.name, status, text)
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
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "listening" {
			s.url = "http://" + line.Address
		}
	}
	if s.url == "" {
		return nil, errors.New("the service does not listen")
	}
	go func() { _, _ = io.Copy(io.Discard, pipe) }()
	return cmd, nil
}

// ask sends a request once; the status is 0 without an answer.
func (s *soak) ask(method, path, body string) (status int, text []byte) {
	r, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	// resent if the service has just closed the connection: the id makes both one request
	r.Header["Idempotency-Key"] = nil
	a, err := s.client.Do(r)
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer a.Body.Close()
	text, err = io.ReadAll(a.Body)
	if err != nil {
		return 0, []byte(err.Error())
	}
	return a.StatusCode, text
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

// expect counts unexpected answers.
func (s *soak) expect(status int, text []byte, want ...int) bool {
	if slices.Contains(want, status) {
		return true
	}
	if s.wrong.Add(1) <= 10 {
		fmt.Fprintf(os.Stderr, "soak: %d %s, want one of %v\n", status, text, want)
	}
	return false
}

// round sends one shopper.
func (s *soak) round(ctx context.Context, n int) {
	var shopper env.Shopper
	come := env.Shoppers{World: s.world, Seed: 1}
	if err := come.Meet(&shopper, n+1); err != nil {
		panic(err) // this world's contexts are valid
	}
	id := fmt.Sprint("d", n)
	body := fmt.Appendf(nil, `{"decision_id":%q,"items":[`, id)
	for i, revenue := range shopper.Context.Revenue {
		if i > 0 {
			body = append(body, ',')
		}
		body = fmt.Appendf(body, `{"id":"sku%d","revenue":%.2f,"features":{`, i, revenue)
		for j, v := range shopper.Context.Features.RawRowView(i) {
			if j > 0 {
				body = append(body, ',')
			}
			body = fmt.Appendf(body, `"x%d":%.3f`, j, v)
		}
		body = append(body, "}}"...)
	}
	body = append(body, "]}"...)
	path := "/v1/placements/" + placements[n%len(placements)].name + "/decisions"
	status, text := s.ask("POST", path, string(body))
	<-s.places
	s.sent.Add(1)
	if !s.expect(status, text, http.StatusCreated, http.StatusOK) {
		return
	}
	var answer struct{ Assortment []struct{ ID string } }
	if err := json.Unmarshal(text, &answer); err != nil {
		s.expect(0, text)
		return
	}
	var shown vitrine.Assortment
	for _, item := range answer.Assortment {
		i, err := strconv.Atoi(strings.TrimPrefix(item.ID, "sku"))
		if err != nil {
			s.expect(0, text)
			return
		}
		shown = append(shown, i)
	}
	slices.Sort(shown)
	choice := `{"choice":null}`
	if k := shopper.Choose(shown); k != vitrine.Outside {
		choice = fmt.Sprintf(`{"choice":"sku%d"}`, shown[k-1])
	}
	s.outcome(ctx, path+"/"+id+"/outcome", choice, rand.New(rand.NewPCG(1, uint64(n))))
}

// outcome reports a decision's outcome: a fifth never, some too late, some twice. If a placement's memory is full, the
// decision may be expired or forgotten.
func (s *soak) outcome(ctx context.Context, path, choice string, rng *rand.Rand) {
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
		status, text := s.ask("POST", path, choice)
		if s.expect(status, text, http.StatusNoContent, http.StatusOK, http.StatusConflict, http.StatusNotFound) &&
			status == http.StatusNoContent {
			s.reported.Add(1)
		} else {
			s.late.Add(1)
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
		status, text := s.ask("GET", "/metrics", "")
		if !s.expect(status, text, http.StatusOK) {
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
