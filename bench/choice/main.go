// Command choice reads a table of choices, fits a model to it on one core, and prints the cost: processor seconds per
// step, and the process's peak memory.
//
//	go run ./bench/choice TABLE SPEC.toml
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"vitrine/choice"
	"vitrine/internal/cpu"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "choice: want a table and a specification")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "choice:", err)
		os.Exit(1)
	}
}

func run(table, path string) error {
	runtime.GOMAXPROCS(1)
	spec, err := choice.ReadSpecFile(path)
	if err != nil {
		return err
	}
	start := cpu.Time()
	data, err := choice.Load(context.Background(), table, spec, nil)
	if err != nil {
		return err
	}
	read := cpu.Time()
	r, err := choice.Fit(context.Background(), spec, data, choice.Options{Workers: 1})
	if err != nil {
		return err
	}
	fitted := cpu.Time()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return err
	}
	fmt.Printf("vitrine: log-likelihood %.4f, converged %v, read %.3f s, fit %.3f s, at most %d MB\n",
		r.LogLikelihood, r.Converged, (read - start).Seconds(), (fitted - read).Seconds(), usage.Maxrss>>10)
	return nil
}
