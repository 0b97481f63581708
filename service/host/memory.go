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

// defaultMemory returns the default of [limits] memory: half of the memory that is available to the
// process. The other half is for garbage that is not collected yet, and for the log.
func defaultMemory() int64 { return cmp.Or(availableMemory(), unknownMemory) / 2 }

// unknownMemory is assumed if the available memory is not known.
const unknownMemory = 2 << 30

// availableMemory returns the smallest of the machine's memory, the container's and GOMEMLIMIT, or 0 if all are
// unknown.
func availableMemory() int64 {
	bytes := minKnown(machineMemory(), containerMemory(os.DirFS("/")))
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		bytes = minKnown(bytes, limit)
	}
	if strconv.IntSize == 32 {
		bytes = minKnown(bytes, math.MaxInt32)
	}
	return bytes
}

// minKnown returns the smaller of two numbers; 0 is an unknown number.
func minKnown(a, b int64) int64 {
	if a == 0 || 0 < b && b < a {
		return b
	}
	return a
}

// containerMemory returns the memory limit of the process's control groups on Linux, or 0 without a limit.
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
		for group = path.Clean("/" + group); ; group = path.Dir(group) { // the limits of parents hold too
			text, _ := fs.ReadFile(root, path.Join(at, group, file))
			if limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && limit < 1<<60 {
				bytes = minKnown(bytes, limit)
			}
			if group == "/" {
				break
			}
		}
	}
	return bytes
}
