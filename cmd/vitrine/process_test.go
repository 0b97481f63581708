package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is the time that a test waits for an event that must happen. A busy machine replays a long log in
// minutes.
const patience = 5 * time.Minute

// process is a program that a test starts, kills and starts again.
type process struct {
	*exec.Cmd
	ready chan string   // receives the program's address when it is ready
	ended chan struct{} // closed after it

	mu     sync.Mutex
	stderr bytes.Buffer
}

// launch starts a program. ready returns its address from a line of its standard error, or "".
func launch(t *testing.T, cmd *exec.Cmd, ready func(line []byte) string) *process {
	t.Helper()
	p := &process{Cmd: cmd, ready: make(chan string, 1), ended: make(chan struct{})}
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		lines := bufio.NewScanner(pipe)
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
		_ = cmd.Wait() // the state says how it ended
	}()
	t.Cleanup(func() { p.kill() })
	return p
}

// said is the standard error so far.
func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

// kill ends the process at once, and waits for that.
func (p *process) kill() {
	_ = p.Process.Kill() // it may have ended by itself
	<-p.ended
}

// standsWhere ends the process, which says where its goroutines stand.
func (p *process) standsWhere() {
	_ = p.Process.Signal(syscall.SIGQUIT)
	select {
	case <-p.ended:
	case <-time.After(time.Minute): // it is frozen
		p.kill()
	}
}

// wait returns the exit status of a process that ends by itself.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.standsWhere()
		t.Fatalf("%s does not end:\n%s", p.Path, p.said())
	}
	return p.ProcessState.ExitCode()
}

// stop ends a process as an operator does.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(t); code != 0 {
		t.Fatalf("exit status %d:\n%s", code, p.said())
	}
}

// listening waits until the process is ready.
func (p *process) listening(t *testing.T) string {
	t.Helper()
	select {
	case at := <-p.ready:
		return at
	case <-p.ended:
	case <-time.After(patience):
		p.standsWhere()
	}
	t.Fatalf("%s is not ready:\n%s", p.Path, p.said())
	return ""
}

// killed reports whether SIGKILL ended the process.
func (p *process) killed() bool {
	status, ok := p.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// serviceFile writes a configuration in a directory of its own, and returns it and the data directory
// that it names.
func serviceFile(t *testing.T, more string) (file, data string) {
	t.Helper()
	dir := t.TempDir()
	file, data = filepath.Join(dir, "service.toml"), filepath.Join(dir, "data")
	text := "listen = \"127.0.0.1:0\"\ndata = \"data\"\n" + more
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, data
}

var program = flag.String("vitrine", "vitrine", "the program that the tests start as the service; by default the test itself")

// serve starts vitrine serve.
func serve(t *testing.T, file string, flags ...string) *process {
	t.Helper()
	return serveAt(t, nil, file, flags...)
}

// serveAt starts vitrine serve in a place.
func serveAt(t *testing.T, at *place, file string, flags ...string) *process {
	t.Helper()
	return launch(t, at.command(*program, append([]string{"serve", "--config", file}, flags...)...), isListening)
}

// isListening reads the address from a line of a service's log.
func isListening(text []byte) string {
	var line struct{ Msg, Address string }
	if json.Unmarshal(text, &line) != nil || line.Msg != "listening" {
		return ""
	}
	return "http://" + line.Address
}

// command gives vitrine arguments, and returns what it prints and its exit status.
func command(t *testing.T, args ...string) (output string, code int) {
	t.Helper()
	var both bytes.Buffer
	code = run(t.Context(), args, &both, &both)
	return both.String(), code
}

// sound has check find no fault in a log, and replay find that its snapshots are equal, with the one in the data
// directory.
func sound(t *testing.T, data string, snapshots ...string) {
	t.Helper()
	want := len(snapshots)
	if exists(filepath.Join(data, "state.snapshot")) {
		want++
	}
	if output, code := command(t, "check", data); code != 0 {
		t.Errorf("check: %s", output)
	}
	output, code := command(t, append([]string{"replay", data}, snapshots...)...)
	if equal := strings.Count(output, ": equal, at entry"); code != 0 || equal != want || want == 0 {
		t.Errorf("replay: %d of %d snapshots are equal: %s", equal, want, output)
	}
}
