package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"vitrine/internal/fatal"
	"vitrine/internal/freeport"
	"vitrine/service/eventlog/natslog/natstest"
	"vitrine/service/host"
)

// patience is the time that a test waits for an event that must happen. A busy machine replays a long log in minutes.
const patience = 5 * time.Minute

var (
	program = (*executable)(flag.String("vitrine", "vitrine", "the program that the tests start as the "+
		"service; by default the test itself"))
	killSeed = flag.Uint64("kill-seed", 1, "of the moments at which tests strike")
)

// executable is the name or path of the vitrine program under test.
type executable string

// Command runs the program to its end, and returns what it prints and its exit status.
func (p executable) Command(t *testing.T, args ...string) (output string, code int) {
	t.Helper()
	cmd := exec.Command(string(p), args...)
	said, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(said), cmd.ProcessState.ExitCode()
}

// Serve starts vitrine serve with a configuration file.
func (p executable) Serve(t *testing.T, file string, flags ...string) *process {
	t.Helper()
	return p.Start(t, append([]string{"serve", "--config", file}, flags...)...)
}

// Start starts the program as a service.
func (p executable) Start(t *testing.T, args ...string) *process {
	t.Helper()
	return p.startAt(t, here, args...)
}

func (p executable) startAt(t *testing.T, at *place, args ...string) *process {
	t.Helper()
	return launch(t, at.command(string(p), args...), func(text []byte) string {
		var line struct{ Msg, Address string }
		if json.Unmarshal(text, &line) != nil || line.Msg != "listening" {
			return ""
		}
		return "http://" + line.Address
	})
}

// Sound checks that vitrine check finds no fault in a log, and that vitrine replay finds its snapshots equal: the given
// ones, and the data directory's.
func (p executable) Sound(t *testing.T, data string, snapshots ...string) {
	t.Helper()
	want := len(snapshots)
	if _, err := os.Stat(filepath.Join(data, host.SnapshotFile)); err == nil {
		want++
	}
	if output, code := p.Command(t, "check", data); code != 0 {
		t.Errorf("check: %s", output)
	}
	output, code := p.Command(t, append([]string{"replay", data}, snapshots...)...)
	if equal := strings.Count(output, ": equal, at entry"); code != 0 || equal != want || want == 0 {
		t.Errorf("replay: %d of %d snapshots are equal: %s", equal, want, output)
	}
}

// serviceFile writes a configuration to a new directory. It returns its path and its data directory.
func serviceFile(t *testing.T, more string) (file, data string) {
	t.Helper()
	dir := t.TempDir()
	file, data = filepath.Join(dir, "service.toml"), filepath.Join(dir, "data")
	fatal.If(t, os.WriteFile(file, []byte("listen = \"127.0.0.1:0\"\ndata = \"data\"\n"+more), 0o600))
	return file, data
}

// process is a running program. It is killed at the end of the test.
type process struct {
	*exec.Cmd
	t     *testing.T
	ready chan string   // receives the program's address when it is ready
	ended chan struct{} // closed after it

	mu     sync.Mutex
	stderr bytes.Buffer
}

// launch starts a program. ready returns its address from a line of its standard error, or "".
func launch(t *testing.T, cmd *exec.Cmd, ready func(line []byte) string) *process {
	t.Helper()
	p := &process{Cmd: cmd, t: t, ready: make(chan string, 1), ended: make(chan struct{})}
	pipe := fatal.Or(cmd.StderrPipe())(t)
	fatal.If(t, cmd.Start())
	go func() {
		defer close(p.ended)
		lines := bufio.NewScanner(pipe)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			if at := ready(lines.Bytes()); at != "" {
				select {
				case p.ready <- at:
				default: // it is ready once more, at the same address
				}
			}
			p.mu.Lock()
			fmt.Fprintf(&p.stderr, "%s\n", lines.Bytes())
			p.mu.Unlock()
		}
		if err := lines.Err(); err != nil {
			p.mu.Lock()
			fmt.Fprintf(&p.stderr, "reading the log of the program: %v\n", err)
			p.mu.Unlock()
		}
		_ = cmd.Wait() // the state says how it ended
	}()
	t.Cleanup(p.Kill)
	return p
}

// Said returns the standard error so far.
func (p *process) Said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

// Signal sends a signal to the process.
func (p *process) Signal(s os.Signal) {
	p.t.Helper()
	fatal.If(p.t, p.Process.Signal(s))
}

// Kill ends the process at once, and waits for that.
func (p *process) Kill() {
	_ = p.Process.Kill() // it may have ended by itself
	<-p.ended
}

// standsWhere ends the process, which says where its goroutines stand.
func (p *process) standsWhere() {
	_ = p.Process.Signal(syscall.SIGQUIT)
	select {
	case <-p.ended:
	case <-time.After(time.Minute): // it is frozen
		p.Kill()
	}
}

// Wait returns the exit status of a process that ends by itself.
func (p *process) Wait() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.standsWhere()
		p.t.Fatalf("%s does not end:\n%s", p.Path, p.Said())
	}
	return p.ProcessState.ExitCode()
}

// Stop ends the process as an operator does.
func (p *process) Stop() {
	p.t.Helper()
	p.Signal(syscall.SIGTERM)
	if code := p.Wait(); code != 0 {
		p.t.Fatalf("exit status %d:\n%s", code, p.Said())
	}
}

// Ready waits until the process is ready and returns its address, or "" if the process ended first.
func (p *process) Ready() (at string) {
	p.t.Helper()
	select {
	case at = <-p.ready:
	case <-p.ended:
	case <-time.After(patience):
		p.standsWhere()
		p.t.Fatalf("%s is not ready:\n%s", p.Path, p.Said())
	}
	return at
}

// Listening returns the address of a process that must get ready.
func (p *process) Listening() string {
	p.t.Helper()
	at := p.Ready()
	if at == "" {
		p.t.Fatalf("%s ended, %v:\n%s", p.Path, p.ProcessState, p.Said())
	}
	return at
}

// killed reports whether SIGKILL ended the process.
func (p *process) killed() bool {
	status, ok := p.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// natsMain is the main function of the program nats-server, which tests start as a process with the settings that a
// log needs: nats-server ADDRESS DIR. In a cluster the servers' addresses for each other follow, its own first.
func natsMain() {
	err := func() error {
		o := server.Options{StoreDir: os.Args[2], NoSystemAccount: len(os.Args) == 3}
		if err := splitAddress(os.Args[1], &o.Host, &o.Port); err != nil {
			return err
		}
		if routes := os.Args[3:]; len(routes) > 0 {
			o.ServerName, o.Cluster.Name = routes[0], "c"
			if err := splitAddress(routes[0], &o.Cluster.Host, &o.Cluster.Port); err != nil {
				return err
			}
			for _, address := range routes {
				o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: address})
			}
		}
		s, err := natstest.Start(o)
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, s.ClientURL())
		s.WaitForShutdown()
		return nil
	}()
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func splitAddress(address string, host *string, port *int) error {
	name, number, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	*host = name
	*port, err = strconv.Atoi(number)
	return err
}

// natsProcess is a NATS server that is killed and started again at one address.
type natsProcess struct {
	Dir string // of its streams
	*process
	t       *testing.T
	address string
	routes  []string // of its cluster, its own one first
	at      *place   // nil is this machine
}

// startNATS starts the program nats-server.
func startNATS(t *testing.T) *natsProcess {
	t.Helper()
	s := &natsProcess{t: t, address: fmt.Sprint("127.0.0.1:", freeport.Local(t)), Dir: t.TempDir()}
	s.Start()
	return s
}

// Start starts a killed server again.
func (s *natsProcess) Start() {
	s.t.Helper()
	s.process = launch(s.t, s.at.command("nats-server", append([]string{s.address, s.Dir}, s.routes...)...),
		func(line []byte) string {
			if text := string(line); strings.HasPrefix(text, "nats://") {
				return text
			}
			return ""
		})
	s.Listening()
}

// URL returns the server's URL.
func (s *natsProcess) URL() string { return "nats://" + s.address }

// held reports a test's finding, for bench/attack/attack.sh.
func held(t *testing.T, said string) {
	if !t.Failed() {
		t.Log("verdict: " + said)
	}
}

// command gives vitrine arguments, and returns what it prints and its exit status.
func command(t *testing.T, args ...string) (output string, code int) {
	t.Helper()
	var both bytes.Buffer
	code = run(t.Context(), args, &both, &both)
	return both.String(), code
}
