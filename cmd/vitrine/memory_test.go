package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vitrine/internal/fatal"
	"vitrine/internal/long"
	"vitrine/service/api"
)

var (
	memoryRate = flag.String("memory-rate", "200", "decisions a second that TestMemoryWaits asks for")
	memoryTime = flag.Duration("memory-time", time.Second, "how long it asks for them")
)

// A placement with the default memory makes decisions at a high rate, without outcomes. No decision expires or is
// evicted meanwhile, and outcomes of the first ones are accepted and learned.
func TestMemoryWaits(t *testing.T) {
	long.Test(t)
	file, data := serviceFile(t, "")
	p := program.Serve(t, file)
	url := p.Listening()
	list := filepath.Join(t.TempDir(), "acknowledged.jsonl")
	output, err := exec.Command(string(*program), "load", url, "--rate", *memoryRate, "--duration", memoryTime.String(),
		"--outcomes", "0", "--ack-log", list).CombinedOutput()
	fatal.If(t, err, "load", output)
	stats := func() (s api.Stats) {
		t.Helper()
		fatal.If(t, json.Unmarshal([]byte(ask(t, 200, "GET", url+"/v1/placements/load/stats", "")), &s))
		return s
	}
	s, shown := stats(), decisionsIn(t, list)
	if s.Expired+s.ExpiredEarly > 0 || uint64(s.Pending) != s.Decisions || s.Decisions < uint64(len(shown)) {
		t.Errorf("of %d decisions, %d of them acknowledged, %d wait, %d have expired and %d were evicted", s.Decisions,
			len(shown), s.Pending, s.Expired, s.ExpiredEarly)
	}
	first := shown[:min(100, len(shown))]
	for _, a := range first {
		ask(t, 204, "POST", url+"/v1/placements/load/decisions/"+a.Decision+"/outcome",
			fmt.Sprintf(`{"choice":%q}`, a.Shown[0]))
	}
	learned := stats()
	for deadline := time.Now().Add(patience); learned.Lag > 0 && time.Now().Before(deadline); learned = stats() {
		time.Sleep(10 * time.Millisecond)
	}
	if n := uint64(len(first)); n == 0 || learned.Outcomes != n || learned.Learned != n || learned.Skipped > 0 {
		t.Errorf("of %d outcomes %d were accepted and %d learned", n, learned.Outcomes, learned.Learned)
	}
	resident := residentSet(p)
	p.Stop()
	program.Sound(t, data)
	if t.Failed() {
		return
	}
	t.Logf("verdict: %d decisions in %v, %.0f a second of %s asked, and no outcomes: none expired or was evicted. "+
		"The outcomes of the first %d were accepted and learned. Memory used: %.1f MB, enough for %.0f s at this "+
		"rate. Resident set: %s",
		len(shown), *memoryTime, float64(len(shown))/memoryTime.Seconds(), *memoryRate, len(first),
		float64(s.Memory)/1e6, s.MemorySeconds, resident)
}

// acknowledgedDecision is load's record of a decision.
type acknowledgedDecision struct {
	Decision string   `json:"decision_id"`
	Shown    []string `json:"shown"`
}

// decisionsIn reads the decisions that load wrote to a file.
func decisionsIn(t *testing.T, path string) (all []acknowledgedDecision) {
	t.Helper()
	file := fatal.Or(os.Open(path))(t)
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var a acknowledgedDecision
		fatal.If(t, json.Unmarshal(lines.Bytes(), &a))
		all = append(all, a)
	}
	fatal.If(t, lines.Err())
	return all
}

// residentSet returns the resident memory of a process, if the system supports /proc.
func residentSet(p *process) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		var kB int
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kB); n == 1 {
			return fmt.Sprintf("%.0f MB", float64(kB)*1024/1e6)
		}
	}
	return "unknown"
}
