package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"

	"vitrine/internal/freeport"
)

// three plays docs/howto/from-one-machine-to-three.md: its servers run in the test, its services as processes.
type three struct {
	*testing.T
	ports *strings.Replacer
	jobs  []func() // end the commands that run beside the shell, from %1 on
}

// The commands of the page do what it shows. Which process leads, how long anything takes, and who runs it may differ.
func TestHowToThree(t *testing.T) {
	if strconv.IntSize == 32 {
		t.Skip("servers in a cluster panic on 32-bit machines: their statistics load 64-bit words that are not aligned")
	}
	page := string(readPage(t, "from-one-machine-to-three"))
	var ports []string
	for _, port := range []string{"4221", "4222", "4223", "6221", "6222", "6223", "8081", "8082", "8083"} {
		ports = append(ports, port, fmt.Sprint(freeport.Local(t)))
	}
	h := &three{T: t, ports: strings.NewReplacer(ports...)}
	t.Chdir(t.TempDir())
	for _, file := range regexp.MustCompile("(?s)This is `([\\w.]+)`[^`]*(?:`[^`]*`[^`]*)?```\\w*\n(.*?)```").FindAllStringSubmatch(page, -1) {
		write(t, file[1], h.ports.Replace(file[2]))
	}
	commands := 0
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(page, -1) {
		for _, part := range strings.Split(block[1], "$ ")[1:] {
			line, want, _ := strings.Cut(part, "\n")
			h.play(h.ports.Replace(line), want)
			commands++
		}
	}
	if commands != 16 {
		t.Errorf("%d commands on the page", commands)
	}
}

func (h *three) play(line, want string) {
	h.Helper()
	words := strings.Fields(line)
	switch {
	case strings.Contains(line, "nats-server"):
		h.jobs = append(h.jobs, h.nats(words[:3], words[5]))
	case words[0] == "vitrine" && words[1] == "serve":
		p := launch(h.T, exec.Command(*program, words[1:len(words)-3]...), isListening) // without 2> FILE &
		p.listening(h.T)
		h.jobs = append(h.jobs, p.kill)
	case words[0] == "kill":
		h.jobs[words[2][1]-'1']()
	default:
		want = comparable(want)
		for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
			diff := cmp.Diff(want, comparable(shell(h.T, line)))
			if diff == "" {
				return
			}
			if words[1] != "cluster" || time.Now().After(end) { // which waits for no follower
				h.Fatalf("%s: -page +program:\n%s", line, diff)
			}
		}
	}
}

// nats starts a server with the variables of its configuration, and returns what ends it.
func (h *three) nats(variables []string, file string) func() {
	h.Helper()
	for _, v := range variables {
		name, value, _ := strings.Cut(v, "=")
		if err := os.Setenv(name, value); err != nil {
			h.Fatal(err)
		}
		defer os.Unsetenv(name)
	}
	o, err := server.ProcessConfigFile(file)
	if err != nil {
		h.Fatal(err)
	}
	o.NoSigs, o.NoLog = true, true
	s, err := server.NewServer(o)
	if err != nil {
		h.Fatal(err)
	}
	s.Start()
	end := func() {
		s.Shutdown()
		s.WaitForShutdown()
	}
	h.Cleanup(end)
	return end
}

var different = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`process \d+ on \S+, since [\d-]+ [\d:]+`), "PROCESS"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDRESS"},
	{regexp.MustCompile(`[\d.]+ ms`), "MS"},
	{regexp.MustCompile(`[ \t]+`), " "},
	{regexp.MustCompile(`(?m) $`), ""},
}

// comparable returns an output without what may differ, its lines sorted.
func comparable(output string) string {
	for _, d := range different {
		output = d.pattern.ReplaceAllString(output, d.by)
	}
	lines := strings.Split(output, "\n")
	slices.Sort(lines)
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
