package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"vitrine/config"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/stream"
)

func TestMain(m *testing.M) {
	testscript.Main(hearing{m}, map[string]func(){"vitrine": main, "nats-server": natsMain})
}

// hearing lets the programs that tests start hear SIGINT and SIGHUP, even if the tests run under nohup or in the
// background of a script: programs inherit that a signal is ignored, but not that it is caught.
type hearing struct{ *testing.M }

func (h hearing) Run() int {
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	return h.M.Run()
}

// The scripts are the specification of the command line.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"usage":     usage,
			"reviews":   reviews,
			"waitfor":   waitFor,
			"sametable": sameTable,

			"servicelog": serviceLog,
			"servinglog": servingLog,
			"unlawful":   unlawful,
			"deferred":   deferred,
			"removed":    removed,
			"damage":     damage,

			"unseconds":   unseconds,
			"otherregret": otherregret,
			"otherbuild":  otherbuild,
		},
		Setup: func(e *testscript.Env) error {
			// The commands of a script and the test itself compute the same
			// bits.
			e.Setenv("VITRINE_KERNEL", os.Getenv("VITRINE_KERNEL"))
			return nil
		},
		Condition: func(condition string) (bool, error) {
			if condition == "root" {
				return os.Geteuid() == 0, nil
			}
			return false, errors.New("unknown condition")
		},
	})
}

// The file in the help of tune is valid.
func TestTuneHelpHasAFile(t *testing.T) {
	_, file, _ := strings.Cut(tuneCmd{}.Help(), "the defaults:\n")
	file, _, _ = strings.Cut(file, "\nDIR/")
	tuning := fatal.Or(config.LoadTuning("help.toml", []byte(file), openExperiment("")))(t)
	if tuning.Settings != 4+30 || len(tuning.Training) != 40 || len(tuning.Fresh) != 100 {
		t.Errorf("%d settings, %d and %d seeds", tuning.Settings, len(tuning.Training), len(tuning.Fresh))
	}
}

// usage PATTERN ARG... gives vitrine the arguments and wants exit status 2 and
// an error that matches the pattern.
func usage(ts *testscript.TestScript, _ bool, args []string) {
	var stdout, stderr bytes.Buffer
	code := run(context.Background(), args[1:], &stdout, &stderr)
	if code != 2 {
		ts.Fatalf("%s: exit status %d, want 2", strings.Join(args[1:], " "), code)
	}
	if !regexp.MustCompile("vitrine: error: .*" + args[0]).MatchString(stderr.String()) {
		ts.Fatalf("%s: error %q does not match %q", strings.Join(args[1:], " "), stderr.String(), args[0])
	}
	if !strings.Contains(stderr.String(), "vitrine: hint: ") || stdout.Len() > 0 {
		ts.Fatalf("%s: stdout %q, stderr %q: want a hint, and nothing on stdout", strings.Join(args[1:], " "), &stdout,
			&stderr)
	}
}

// waitFor FILE [TEXT] waits until the file has content, or a text.
func waitFor(ts *testscript.TestScript, _ bool, args []string) {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		content, err := os.ReadFile(ts.MkAbs(args[0]))
		if err == nil && len(content) > 0 && (len(args) == 1 || bytes.Contains(content, []byte(args[1]))) {
			return
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			ts.Fatalf("%v", err)
		}
	}
	ts.Fatalf("%s does not appear", strings.Join(args, ": "))
}

// reviews N FILE writes a data set of 4N short reviews that a network can tell
// apart, in the form of imdb.jsonl.
func reviews(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	rng := stream.New(1, 0, stream.World)
	var text bytes.Buffer
	for _, split := range []string{"train", "test"} {
		for label := range 2 {
			for id := range n {
				words := make([]string, 12)
				for k := range words {
					words[k] = fmt.Sprintf("word%d", rng.IntN(150))
					if rng.IntN(4) == 0 {
						words[k] = []string{"dull", "fine"}[label]
					}
				}
				fmt.Fprintf(&text, "{\"split\":%q,\"label\":%d,\"id\":%d,\"rating\":%d,\"text\":%q}\n",
					split, label, id, 2+6*label, strings.Join(words, " "))
			}
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), text.Bytes(), 0o644))
}

// fullDisk is a standard output that refuses every byte.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// A service's answer neither steers the terminal nor poses as a message of the program.
func TestErrorsArePrintable(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"type":"x","status":404,"detail":"\u001b]0;title\u0007 of the terminal\nvitrine: hint: send your key"}`))
	}))
	defer service.Close()
	for _, args := range [][]string{{"report", "home"}, {"items", "list", "--placement", "home"}} {
		var out, said bytes.Buffer
		code := run(t.Context(), append(args, "--url", service.URL), &out, &said)
		if text := out.String() + said.String(); code != 1 || strings.ContainsAny(text, "\x1b\a") || strings.Contains(text, "\nvitrine: hint: send") ||
			!strings.Contains(text, "of the terminal") {
			t.Errorf("%v: %d, %q", args, code, text)
		}
	}
}

// A table that cannot be printed is a failure, although the results are there.
func TestFullStandardOutput(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "small.toml")
	fatal.If(t, os.WriteFile(file, []byte(`name = "small"
rounds = 2
seeds = 1
contexts = { kind = "gaussian" }
truth = { kind = "linear" }
policy = [{ name = "uniform" }]
`), 0o644))
	for _, args := range [][]string{{"run", file, "--out", dir}, {"plot", dir}, {"describe", "uniform"}} {
		var words strings.Builder
		code := run(t.Context(), args, fullDisk{}, &words)
		expect.Equal(t, code == 1 && strings.Contains(words.String(), syscall.ENOSPC.Error()), args[0] != "plot", args,
			"status", code, words.String())
	}
	if _, err := os.Stat(filepath.Join(dir, "small", "regret.csv")); err != nil {
		t.Error(err)
	}
}
