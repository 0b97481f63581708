// Command replay times the replay of a long log; bench/replay.sh runs it.
//
// If the data directory contains no log, the command writes one as the service does: through the engine, with many
// concurrent callers that each report an outcome before the next decision. Then it times four steps, each from the
// first entry on: opening the log, in which the server verifies its files; reading it; reading and decoding it; and
// opening the engine, which applies all entries and learns from every round.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"vitrine/bench/rounds"
	"vitrine/internal/cpu"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/filelog"
	"vitrine/service/setup"
)

const target = 20 * 3000 // rounds a second: 20 times real time at 3000 a second

func main() {
	data := flag.String("data", "", "the data directory")
	number := flag.Int("rounds", 1_000_000, "of the log")
	program := flag.String("time", "", "a program to time, with the arguments, instead")
	flag.Parse()
	ctx := context.Background()
	var err error
	if *program != "" {
		err = command(*program, flag.Args())
	} else {
		err = run(ctx, *data, *number)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "replay:", err)
		os.Exit(1)
	}
}

// command times a program.
func command(name string, args []string) error {
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	begin := time.Now()
	err := cmd.Run()
	usage := *cmd.ProcessState.SysUsage().(*syscall.Rusage)
	fmt.Printf("%.1f s, %.1f s of processor time, %d MB resident at the peak\n",
		time.Since(begin).Seconds(), (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(),
		megabytes(usage))
	return err
}

func run(ctx context.Context, data string, n int) error {
	log := filepath.Join(data, "log")
	if _, err := os.Stat(log); err != nil {
		if err := write(ctx, log, n); err != nil {
			return err
		}
	}
	var store *filelog.Store
	err := timed("opening the log", 0, func() (err error) {
		store, err = filelog.Open(ctx, filelog.Options{Dir: log})
		return err
	})
	if err != nil {
		return err
	}
	defer store.Close()
	x, err := store.Extent(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%d entries, %d MB\n", x.Last+1-x.First, x.Bytes>>20)
	read := func(use func([]byte) error) func() error {
		return func() error {
			for entry, err := range store.Entries(ctx, 1) {
				if err == nil {
					err = use(entry)
				}
				if err != nil {
					return err
				}
			}
			return nil
		}
	}
	decode := func(entry []byte) error { _, err := eventlog.Decode(entry); return err }
	return errors.Join(
		timed("reading", n, read(func([]byte) error { return nil })),
		timed("reading and decoding", n, read(decode)),
		timed("opening the engine", n, func() error { return replay(ctx, store) }),
	)
}

// replay rebuilds the state from the log, like a start without a snapshot.
func replay(ctx context.Context, store *filelog.Store) error {
	e, err := engine.Open(ctx, engine.Options{Store: store, Build: setup.NewLearner})
	if err != nil {
		return err
	}
	defer e.Close()
	return e.Wait(ctx)
}

// timed prints how long f takes, and the rounds per second.
func timed(what string, rounds int, f func() error) error {
	used, begin := cpu.Time(), time.Now()
	if err := f(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	took := time.Since(begin).Seconds()
	fmt.Printf("%-22s %6.1f s, %6.1f s of processor time", what, took, (cpu.Time() - used).Seconds())
	if rounds > 0 {
		fmt.Printf(", %7.0f rounds a second, %.2f of the target", float64(rounds)/took, float64(rounds)/took/target)
	}
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return err
	}
	fmt.Printf(", %d MB resident at the peak so far\n", megabytes(usage))
	return nil
}

// megabytes returns the size of the resident set, which Linux reports in KB.
func megabytes(u syscall.Rusage) int64 { return int64(u.Maxrss) >> 10 }

// write creates a log of rounds.
func write(ctx context.Context, log string, n int) error {
	store, err := filelog.Open(ctx, filelog.Options{Dir: log})
	if err != nil {
		return err
	}
	defer store.Close()
	begin := time.Now()
	return rounds.Write(ctx, store, "onl-mnl", n, 256, func(n int64) {
		if n%100_000 == 0 {
			fmt.Printf("%d rounds are written, %.0f a second\n", n, float64(n)/time.Since(begin).Seconds())
		}
	})
}
