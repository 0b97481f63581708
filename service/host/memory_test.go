package host

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/fstest"

	"vitrine/internal/expect"
)

func TestContainerMemory(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"no control groups", nil, 0},
		{"a container", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "536870912\n"},
			512 << 20},
		{"no limit", map[string]string{"proc/self/cgroup": "0::/a.slice\n",
			"sys/fs/cgroup/a.slice/memory.max": "max\n"}, 0},
		{"the limit of a parent", map[string]string{
			"proc/self/cgroup": "0::/a.slice/b.service\n", "sys/fs/cgroup/a.slice/memory.max": "1000\n",
			"sys/fs/cgroup/a.slice/b.service/memory.max": "2000\n",
		}, 1000},
		{"its own limit", map[string]string{
			"proc/self/cgroup": "0::/a.slice/b.service\n", "sys/fs/cgroup/a.slice/memory.max": "max\n",
			"sys/fs/cgroup/a.slice/b.service/memory.max": "2000\n",
		}, 2000},
		{"version 1", map[string]string{
			"proc/self/cgroup": "5:cpu,cpuacct:/docker/1\n4:memory:/docker/1\n",
			"sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes":      "3000\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":               "9223372036854771712\n",
			"sys/fs/cgroup/cpu,cpuacct/docker/1/memory.limit_in_bytes": "1\n",
		}, 3000},
	} {
		root := fstest.MapFS{}
		for path, text := range c.files {
			root[path] = &fstest.MapFile{Data: []byte(text)}
		}
		expect.Equal(t, containerMemory(root), c.want, c.name)
	}
}

func TestDefaultMemory(t *testing.T) {
	for _, c := range [][3]int64{{0, 0, 0}, {5, 0, 5}, {0, 5, 5}, {4, 5, 4}, {5, 4, 4}} {
		expect.Equal(t, minKnown(c[0], c[1]), c[2], "the least of", c[0], "and", c[1], "is")
	}
	if have := machineMemory(); (runtime.GOOS == "linux" || runtime.GOOS == "darwin") &&
		(have < 100<<20 || have > 1<<46) {
		t.Errorf("the machine has %d bytes of memory", have)
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(50 << 20))
	expect.Equal(t, defaultMemory(), 25<<20, "with a limit of 50 MiB the default is n bytes")
}

// A disk is nearly full below a twentieth and ten gigabytes. One of unknown size is not.
func TestFullness(t *testing.T) {
	for _, c := range []struct {
		free, all float64
		full      bool
	}{{0, 0, false}, {0, 1e9, true}, {4.9e9, 100e9, true}, {5e9, 100e9, false}, {9.9e9, 1e12, true}, {10e9, 1e12,
		false}} {
		for _, external := range []bool{false, true} {
			text := fullness(c.free, c.all, external)
			if (text != "") != c.full || c.full && strings.Contains(text, "Decisions are refused") == external {
				t.Errorf("%v of %v bytes, external %v: %q", c.free, c.all, external, text)
			}
		}
	}
	expect.Contains(t, fullness(2.5e6, 64e6, false), "2.5 of 64.0 MB are free", "a small disk")
	if free, all := diskSpace(t.TempDir()); (runtime.GOOS == "linux" || runtime.GOOS == "darwin") &&
		(free <= 0 || all <= free || all > 1<<60) {
		t.Errorf("%v of %v bytes are free", free, all)
	}
	if free, all := diskSpace("no such directory"); free != 0 || all != 0 {
		t.Errorf("an unknown disk has %v of %v bytes", free, all)
	}
}
