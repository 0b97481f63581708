package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/freeport"
	"vitrine/service/eventlog/natslog/natstest"
)

// three plays pages about three servers and three services: the servers run in the test, the services as processes.
type three struct {
	*testing.T
	ports *strings.Replacer
	pages map[string]string
	jobs  []func() // end the commands that run beside the shell, from %1 on
}

// The commands of the page work as shown. The leader, times and the user may differ.
func TestHowToThree(t *testing.T) {
	h := newThree(t)
	h.files("from-one-machine-to-three")
	expect.Equal(t, h.playAll(h.commands("from-one-machine-to-three")), 20, "commands on the page")
}

func newThree(t *testing.T) *three {
	if strconv.IntSize == 32 {
		t.Skip("servers in a cluster panic on 32-bit machines: their statistics load 64-bit words that are not aligned")
	}
	var ports []string
	for _, port := range []string{"4221", "4222", "4223", "6221", "6222", "6223", "8081", "8082", "8083"} {
		ports = append(ports, port, fmt.Sprint(freeport.Local(t)))
	}
	h := &three{T: t, ports: strings.NewReplacer(ports...), pages: map[string]string{}}
	h.pages["from-one-machine-to-three"] = string(readPage(t, "from-one-machine-to-three"))
	t.Chdir(t.TempDir())
	return h
}

// files writes the files of a page.
func (h *three) files(name string) {
	h.Helper()
	for _, file := range regexp.MustCompile(
		"(?s)This is `([\\w.]+)`[^`]*(?:`[^`]*`[^`]*)?```\\w*\n(.*?)```").FindAllStringSubmatch(h.pages[name], -1) {
		write(h.T, file[1], h.ports.Replace(file[2]))
	}
}

// commands returns the commands of a page, each with what it prints.
func (h *three) commands(name string) (list []string) {
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(h.pages[name], -1) {
		list = append(list, strings.Split(block[1], "$ ")[1:]...)
	}
	return list
}

func (h *three) playAll(commands []string) int {
	h.Helper()
	for _, c := range commands {
		line, want, _ := strings.Cut(c, "\n")
		h.play(h.ports.Replace(line), want)
	}
	return len(commands)
}

func (h *three) play(line, want string) {
	h.Helper()
	words := strings.Fields(line)
	switch {
	case strings.Contains(line, "nats-server"):
		h.jobs = append(h.jobs, h.nats(words[:3], words[5]))
	case words[0] == "vitrine" && words[1] == "serve":
		p := program.Start(h.T, words[1:len(words)-3]...) // without 2> FILE &
		p.Listening()
		h.jobs = append(h.jobs, p.Kill)
	case words[0] == "kill" && words[1] != "-9": // and wait: the shell gives its number to the next job
		h.jobs[len(h.jobs)-1]()
		h.jobs = h.jobs[:len(h.jobs)-1]
	case words[0] == "kill":
		for _, word := range words[1:] {
			if job, is := strings.CutPrefix(word, "%"); is {
				h.jobs[job[0]-'1']()
			}
		}
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
		fatal.If(h, os.Setenv(name, value))
		defer os.Unsetenv(name)
	}
	o := fatal.Or(server.ProcessConfigFile(file))(h)
	s := natstest.Serve(h.T, *o)
	return func() { natstest.Stop(s) }
}

var different = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`process \d+ on \S+, since [\d-]+ [\d:]+`), "PROCESS"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDRESS"},
	{regexp.MustCompile(`[\d.]+ ms`), "MS"},
	{regexp.MustCompile(`hash [0-9a-f]{32}`), "HASH"},
	{regexp.MustCompile(`[ \t]+`), " "},
	{regexp.MustCompile(`(?m) $`), ""},
	{regexp.MustCompile(`(?m)(ADDRESS \d \w+ \d+(?: MS)?) \d+`), "$1 EPOCH"},
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
