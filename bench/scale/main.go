// Command scale plans a service for more decisions than one machine can make. docs/scale.md is its result.
//
//	go run ./bench/scale measure > bench/scale/measured.toml     measure the constants, about a minute
//	go run ./bench/scale plan                                    plan with them and those in given.toml
//
// The parts of the model are
//
//	costs.go    the constants
//	plan.go     the services and processes that a rate needs, and the first bottleneck
//	measure.go  the measurements
//	append.go   appends by the writers of several streams: bench/streams.sh
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	switch {
	case len(args) == 1 && args[0] == "measure":
		return measure(ctx, out, 50_000)
	case len(args) == 1 && args[0] == "plan":
		c, err := readCosts("bench/scale")
		if err != nil {
			return err
		}
		plan(out, c)
		return nil
	case len(args) == 5 && args[0] == "append": // used by bench/streams.sh
		return appendTo(ctx, out, args[1], args[2:])
	case len(args) == 3 && args[0] == "visit": // used by measure
		rounds, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		return visit(ctx, args[1], rounds)
	}
	return errors.New("usage: scale measure|plan")
}
