package portable_test

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"vitrine/internal/fatal"
	"vitrine/internal/long"
)

// The compiler for arm64 may fuse x*y + z. In the packages that compute a learner's state it must do so only for
// math.FMA; the conversion float64(x*y) + z prevents it elsewhere. The test disassembles a program for arm64.
func TestNothingIsFusedThatIsNotWrittenSo(t *testing.T) {
	long.Test(t)
	program := filepath.Join(t.TempDir(), "vitrine")
	build := exec.Command("go", "build", "-trimpath", "-o", program, "../../cmd/vitrine")
	build.Env = append(os.Environ(), "GOOS=darwin", "GOARCH=arm64", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	module := strings.TrimSpace(string(fatal.Or(exec.Command("go", "list", "-m").Output())(t)))
	packages := "^" + regexp.QuoteMeta(module) +
		`(/assortment|/bandit|/env|/experiment|/internal/gram|/internal/kernel|/internal/portable` +
		`|/mdp|/mle|/service/engine|/service/learner|/service/page|/utility)?\.`
	out := fatal.Or(exec.Command("go", "tool", "objdump", "-s", packages, program).Output())(t)
	var (
		text  = regexp.MustCompile(`^TEXT (\S+)\(SB\) (\S+)`)
		fused = regexp.MustCompile(`^\s+(\S+\.go):(\d+)\s.*\sFN?M(ADD|SUB)D\s`)
		where string
		dir   string
		lines = map[string][]string{}
		found int
	)
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		if m := text.FindStringSubmatch(s.Text()); m != nil {
			where, dir = m[1], filepath.Join("..", "..", strings.TrimPrefix(filepath.Dir(m[2]), module))
			continue
		}
		m := fused.FindStringSubmatch(s.Text())
		if m == nil {
			continue
		}
		number, _ := strconv.Atoi(m[2])
		path := filepath.Join(dir, m[1])
		if lines[path] == nil {
			source, err := os.ReadFile(path)
			if err != nil {
				continue // inlined from another package; docs/adr/0065-one-order.md covers gonum
			}
			lines[path] = strings.Split(string(source), "\n")
		}
		if number > len(lines[path]) {
			continue
		}
		switch line := strings.TrimSpace(lines[path][number-1]); {
		case strings.Contains(line, "math.FMA("):
			found++
		case strings.Contains(line, "rng.Float64()"): // a power of two times an integer is exact
		default:
			t.Errorf("%s, %s:%d is fused: %s", where, m[1], number, line)
		}
	}
	if found < 30 {
		t.Errorf("%d instructions of math.FMA found, want those of the kernels at least", found)
	}
}
