package host

import (
	"cmp"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// defaultMemory returns what placements and requests share where the configuration does not say: half of the memory that
// the process may have. The other half is for what the garbage collector has not collected yet, and for the log.
func defaultMemory() int64 { return cmp.Or(availableMemory(), unknownMemory) / 2 }

// unknownMemory stands for the memory of a machine that does not say how much it has.
const unknownMemory = 2 << 30

// availableMemory returns the least of the machine's memory, the container's and GOMEMLIMIT; 0 if none is known.
func availableMemory() int64 {
	bytes := least(machineMemory(), containerMemory(os.DirFS("/")))
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		bytes = least(bytes, limit)
	}
	if strconv.IntSize == 32 {
		bytes = least(bytes, math.MaxInt32)
	}
	return bytes
}

// least returns the smaller of two numbers, of which 0 is none.
func least(a, b int64) int64 {
	if a == 0 || 0 < b && b < a {
		return b
	}
	return a
}

// containerMemory returns the limit of the control groups that the process is in, of Linux; 0 is none.
func containerMemory(root fs.FS) (bytes int64) {
	groups, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(groups)) { // 0::/system.slice/vitrine.service or 4:memory:/docker/1234
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, _ := strings.Cut(rest, ":")
		at, file := "sys/fs/cgroup", "memory.max"
		if controllers == "memory" {
			at, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		} else if controllers != "" {
			continue
		}
		for group = path.Clean("/" + group); ; group = path.Dir(group) { // a limit of a group is that of those in it
			text, _ := fs.ReadFile(root, path.Join(at, group, file))
			if limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && limit < 1<<60 {
				bytes = least(bytes, limit)
			}
			if group == "/" {
				break
			}
		}
	}
	return bytes
}
