// Command vitrine is the one program of the project. It runs the decision service and looks after its log, plays
// learners of multinomial-logit contextual bandits on the experiments of the ONL-MNL paper and on your own, and fits
// choice models.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"vitrine"
	"vitrine/experiment"
	"vitrine/figure"
	"vitrine/internal/commandline"
	"vitrine/internal/hint"
)

func main() {
	ends := []os.Signal{syscall.SIGTERM}
	for _, end := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		if !signal.Ignored(end) { // nohup ignores SIGHUP, and a script's shell SIGINT in the background
			ends = append(ends, end)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	context.AfterFunc(ctx, func() { signal.Ignore(syscall.SIGHUP); stop() }) // a second Ctrl-C ends it at once, a second SIGHUP does not
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// cli lists the commands. For each of them kong appends the text of its method Help to the help of its flags, and calls
// its method Run.
type cli struct {
	Reproduce reproduceCmd `cmd:"" help:"Play panels of the paper and draw their regret."`
	Run       runCmd       `cmd:"" help:"Play experiments of your own, from TOML files."`
	Merge     mergeCmd     `cmd:"" help:"Join the shards of a run that were played on many machines."`
	Plot      plotCmd      `cmd:"" help:"Draw again from the CSV of earlier runs."`
	Dump      dumpCmd      `cmd:"" help:"Write worlds and their customers as NumPy arrays, for learners in other languages."`
	Tune      tuneCmd      `cmd:"" help:"Search the parameters of a policy, and judge the best on fresh seeds."`
	Optimize  optimizeCmd  `cmd:"" help:"Find the best assortment for given utilities, revenues and rules."`
	Fit       fitCmd       `cmd:"" help:"Fit a choice model to a table of choices."`
	Predict   predictCmd   `cmd:"" help:"Predict choices with a fitted model."`
	Pilot     pilotCmd     `cmd:"" help:"Make a fitted model the first estimate of a placement's policy."`
	Assess    assessCmd    `cmd:"" help:"Report on another program's log: its contents, its gaps, and how to start a placement from it."`
	Evaluate  evaluateCmd  `cmd:"" help:"Estimate what other policies would have earned, from the log of a decision service."`
	Check     checkCmd     `cmd:"" help:"Verify the log of a decision service."`
	Log       logCmd       `cmd:"" help:"Move the log of a decision service."`
	Backup    backupCmd    `cmd:"" help:"Copy the log and the snapshot of a decision service, which may be running."`
	Replay    replayCmd    `cmd:"" help:"Replay the log of a decision service, and compare the result with its snapshots."`
	Export    exportCmd    `cmd:"" help:"Write the decisions of a decision service as lines of JSON."`
	Import    importCmd    `cmd:"" help:"Import another program's log into a placement, which then learns from it."`
	Report    reportCmd    `cmd:"" help:"Write a page about an experiment of a decision service."`
	Items     itemsCmd     `cmd:"" help:"Put items into the catalogue of a decision service, and list them."`
	Keys      keysCmd      `cmd:"" help:"Make and withdraw the API keys of a decision service."`
	Cluster   clusterCmd   `cmd:"" help:"Show which process of a decision service leads, and how far the others are behind."`
	Health    healthCmd    `cmd:"" help:"Ask a decision service whether it is alive."`
	Describe  describeCmd  `cmd:"" help:"Describe a policy, utility, world or constraint: options, defaults, ranges."`
	List      listCmd      `cmd:"" help:"List the names that a file may use, and the experiments."`
	Load      loadCmd      `cmd:"" help:"Send simulated shoppers to a decision service, and measure their latency."`
	Serve     serveCmd     `cmd:"" help:"Serve decisions over HTTP, and learn from their outcomes."`
	Version   versionCmd   `cmd:"" help:"Print the version."`

	Help       helpCmd       `cmd:"" help:"Print the help of a command."`
	Completion completionCmd `cmd:"" help:"Print the completion script of a shell."`
	Complete   completeCmd   `cmd:"" hidden:""`
	Man        manCmd        `cmd:"" hidden:"" help:"Print the page of the manual."`

	ShowVersion versionFlag `name:"version" help:"Print the version."`
}

const description = `Vitrine learns what to put in the window: at most K of N items, of which a customer takes one or none.

The paper's main figure, 30 seeds of four panels, to ./out:

    vitrine reproduce main

The decision service, with simulated shoppers, at http://127.0.0.1:8080:

    vitrine serve --demo

Data goes to standard output, messages to standard error. The exit status is 0 for success, 1 for a failure, 2 for a wrong command line.`

// terminal is where a command writes.
type terminal struct {
	out, err io.Writer
}

// printer is standard output. It keeps the first error, because most commands print without looking.
type printer struct {
	io.Writer
	err error
}

func (p *printer) Write(text []byte) (int, error) {
	n, err := p.Writer.Write(text)
	p.err = cmp.Or(p.err, err)
	return n, err
}

func (t terminal) note(message string) { fmt.Fprintf(t.err, "vitrine: %s\n", hint.Message(message)) }
func (t terminal) warn(message string) { t.note("warning: " + message) }

// present draws the results in a directory, prints them, and says where they are.
func (t terminal) present(dir string, draw func(dir string, formats ...figure.Format) error,
	print func(io.Writer)) error {
	if err := draw(dir); err != nil {
		return err
	}
	print(t.out)
	fmt.Fprintf(t.err, "vitrine: results are in %s\n", dir)
	return nil
}

// printJSON prints a value, indented.
func (t terminal) printJSON(v any) error {
	text, err := json.Marshal(v, json.Deterministic(true), jsontext.Multiline(true))
	if err == nil {
		_, err = fmt.Fprintf(t.out, "%s\n", text)
	}
	return err
}

// usageError is an error of the command line, exit status 2.
type usageError struct{ error }

// usagef returns a usage error with the message.
func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// exit ends the parsing of a command line that asks for help, with the exit status.
type exit int

// run runs a command line and returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (code int) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case exit:
			code = int(v)
		default:
			panic(v)
		}
	}()
	parser, err := kong.New(&cli{},
		kong.Name("vitrine"),
		kong.Description(description),
		kong.Writers(stdout, stderr),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Exit(func(code int) { panic(exit(code)) }),
	)
	if err != nil {
		panic(fmt.Sprintf("vitrine: the command line is ill-formed: %v", err))
	}
	if _, err := vitrine.KernelPath(); err != nil {
		return report(stderr, hint.New(usageError{err}, "the paths are in docs/adr/0065-one-order.md"), nil)
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(commandline.JoinNegative(args))
	if err == nil {
		err = commandline.CheckNames(command)
	}
	if err != nil {
		if parse, ok := errors.AsType[*kong.ParseError](err); ok {
			command = parse.Context
		}
		return report(stderr, usageError{err}, command)
	}
	command.BindTo(ctx, (*context.Context)(nil))
	command.Bind(parser)
	out := &printer{Writer: stdout}
	err = cmp.Or(command.Run(terminal{out, stderr}), out.err)
	var denied *fs.PathError
	within := func(f *kong.Flag) bool {
		path, err := filepath.Rel(f.Target.String(), denied.Path)
		return f.Name == "out" && err == nil && (filepath.IsLocal(path) || strings.Trim(path, `./\`) == "") // or above it
	}
	if errors.As(err, &denied) && errors.Is(err, fs.ErrPermission) && hint.Of(err) == "" &&
		slices.ContainsFunc(command.Selected().Flags, within) {
		err = hint.New(err, "choose a directory that you may write to with --out")
	}
	return report(stderr, err, command)
}

// report prints an error of a command, if there is one, and returns the exit status. The command may be nil.
func report(w io.Writer, err error, command *kong.Context) int {
	switch {
	case err == nil:
		return 0
	case nobodyReads(err):
		return 1
	}
	message := err.Error()
	if errors.Is(err, context.Canceled) {
		message = "interrupted"
	}
	fmt.Fprintf(w, "vitrine: error: %s\n", hint.Message(message))
	var usage usageError
	switch text := hint.Of(err); {
	case text != "":
		fmt.Fprintf(w, "vitrine: hint: %s\n", hint.Message(text))
	case errors.Is(err, experiment.ErrInterrupted):
		fmt.Fprintln(w, "vitrine: hint: finished runs are kept; give the same command again to continue")
	case errors.As(err, &usage):
		name := "vitrine"
		if command != nil && command.Selected() != nil {
			name = command.Selected().FullPath()
		}
		fmt.Fprintf(w, "vitrine: hint: see %s --help\n", name)
	}
	if errors.As(err, &usage) {
		return 2
	}
	return 1
}

// nobodyReads reports whether the reader of standard output, such as head, closed it.
func nobodyReads(err error) bool {
	var path *fs.PathError
	return errors.As(err, &path) && path.Path == os.Stdout.Name() && errors.Is(path, syscall.EPIPE)
}

// examples is the tail of a command's help.
func examples(lines ...string) string {
	return "Examples:\n\n    " + strings.Join(lines, "\n    ")
}
