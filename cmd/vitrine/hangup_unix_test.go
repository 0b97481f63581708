//go:build unix

package main

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"vitrine/service/host"
)

// SIGHUP ends the service as SIGTERM does, with a snapshot: a terminal was closed, or an operator asks for a reload, and
// the supervisor starts the service again. Under nohup it goes on, and likewise
// if it was started with SIGINT ignored.
func TestHangUp(t *testing.T) {
	const config = `{"max_size":1,"features":[{"name":"x","kind":"number"}]}`
	file, data := serviceFile(t, "")
	p := program.Serve(t, file)
	ask(t, 201, "PUT", p.Listening()+"/v1/placements/home", config)
	p.Signal(unix.SIGHUP)
	p.Signal(unix.SIGHUP) // from the shell
	if code := p.Wait(); code != 0 {
		t.Errorf("exit status %d:\n%s", code, p.Said())
	}
	if _, err := os.Stat(filepath.Join(data, host.SnapshotFile)); err != nil {
		t.Error(err)
	}

	for signal, start := range map[unix.Signal][]string{
		unix.SIGHUP: {"nohup"}, unix.SIGINT: {"sh", "-c", `trap "" INT; exec "$@"`, "sh"}, // as in the background of a script
	} {
		p = executable(start[0]).Start(t, append(start[1:], string(*program), "serve", "--config", file)...)
		url := p.Listening()
		p.Signal(signal)
		for range 50 { // it has time to end
			ask(t, 200, "PUT", url+"/v1/placements/home", config)
		}
		p.Stop()
	}
}
