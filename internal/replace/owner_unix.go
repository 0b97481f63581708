//go:build unix

package replace

import (
	"os"
	"syscall"
)

// own gives f the owner and the group of another file.
func own(f *os.File, like os.FileInfo) error {
	owner := like.Sys().(*syscall.Stat_t)
	return f.Chown(int(owner.Uid), int(owner.Gid))
}
