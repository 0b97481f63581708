// Command scale plans a service for more decisions than one machine takes: docs/scale.md is its result.
//
//	go run ./bench/scale measure > bench/scale/measured.toml     measure the constants, about a minute
//	go run ./bench/scale plan                                    plan with them and those in given.toml
//
// The parts of the model are
//
//	costs.go    the constants
//	plan.go     how many services and processes a rate takes, and what is busy first
//	measure.go  the measurements
//	append.go   what the writers of several streams append: bench/streams.sh
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
	case len(args) == 5 && args[0] == "append": // of bench/streams.sh
		return appendTo(ctx, out, args[1], args[2:])
	case len(args) == 3 && args[0] == "visit": // of measure
		rounds, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		return visit(ctx, args[1], rounds)
	}
	return errors.New("usage: scale measure|plan")
}
