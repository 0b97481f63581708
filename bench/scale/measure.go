package main

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pelletier/go-toml/v2"

	"vitrine/bench/rounds"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/load"
	"vitrine/service/server"
	"vitrine/service/setup"
)

// used returns this process's processor time so far, in microseconds.
func used() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e3
}

// measure measures the constants on a log in memory, and writes them.
func measure(ctx context.Context, w io.Writer, rounds int) error {
	c := costs{Machine: fmt.Sprintf("%s, %d cores, %s",
		processor(), runtime.NumCPU(), time.Now().UTC().Format(time.DateOnly))}
	served, err := serve(ctx, rounds)
	if err != nil {
		return err
	}
	store, err := record(ctx, "uniform", rounds)
	if err != nil {
		return err
	}
	extent, err := store.Extent(ctx)
	if err != nil {
		return err
	}
	c.Bytes = float64(extent.Bytes) / float64(rounds)
	if c.Follow, err = replay(ctx, store, rounds); err != nil {
		return err
	}
	if store, err = record(ctx, "onl-mnl", rounds); err != nil {
		return err
	}
	learned, err := replay(ctx, store, rounds)
	if err != nil {
		return err
	}
	c.Learn = learned - c.Follow
	c.Serve = served - reported*c.Learn
	for _, v := range []*float64{&c.Serve, &c.Follow, &c.Learn, &c.Bytes} {
		*v, _ = strconv.ParseFloat(strconv.FormatFloat(*v, 'g', 3, 64), 64)
	}
	return toml.NewEncoder(w).Encode(c)
}

// processor returns the name of the machine's processor.
func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "model name\t: "); ok {
			return strings.TrimSpace(name)
		}
	}
	return runtime.GOARCH
}

// serve returns the processor time per decision, including outcomes, in a service under load from another process.
func serve(ctx context.Context, rounds int) (float64, error) {
	e, err := engine.Open(ctx, engine.Options{Store: new(memlog.Store), Build: setup.NewLearner})
	if err != nil {
		return 0, err
	}
	defer e.Close()
	s := httptest.NewServer(server.New(server.Options{Engine: e}))
	defer s.Close()
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	before := used()
	visits := exec.CommandContext(ctx, self, "visit", s.URL, strconv.Itoa(rounds))
	visits.Stderr = os.Stderr
	if err := visits.Run(); err != nil {
		return 0, err
	}
	if err := e.Wait(ctx); err != nil {
		return 0, err
	}
	return (used() - before) / float64(rounds), nil
}

// visit sends shoppers to a service, to choose among 1000 catalogue items.
func visit(ctx context.Context, url string, n int) error {
	r, err := load.Run(ctx, load.Options{
		Bases: []string{url}, Placement: "home", Policy: map[string]any{"name": "onl-mnl"}, Decisions: n,
		Connections: 64,
		Items:       1000, Catalogue: true, Features: rounds.Features, User: 5, Size: rounds.Shown, Outcomes: reported,
		Seed: 1,
	})
	if err == nil && (r.Decisions.Count != int64(n) || len(r.Errors) > 0) {
		err = fmt.Errorf("%d decisions, errors %v", r.Decisions.Count, r.Errors)
	}
	return err
}

func record(ctx context.Context, policy string, n int) (*memlog.Store, error) {
	store := new(memlog.Store)
	return store, rounds.Write(ctx, store, policy, n, 8, func(int64) {})
}

// replay returns the processor time for reading a round from a log and learning it, as a follower does.
func replay(ctx context.Context, store *memlog.Store, rounds int) (float64, error) {
	runtime.GC()
	before := used()
	e, err := engine.Open(ctx, engine.Options{Store: store, Build: setup.NewLearner})
	if err != nil {
		return 0, err
	}
	defer e.Close()
	if err := e.Wait(ctx); err != nil {
		return 0, err
	}
	return (used() - before) / float64(rounds), nil
}
