//go:build linux || darwin

package replace

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// own gives f the owner and the group of the file at path.
func own(f *os.File, path string, like os.FileInfo) error {
	if n, _ := unix.Getxattr(path, "system.posix_acl_access", nil); n > 0 { // the group's mode would be the list's mask
		return errors.New("it has an access control list: remove it with setfacl -b, and let a group read the file")
	}
	owner := like.Sys().(*syscall.Stat_t)
	return f.Chown(int(owner.Uid), int(owner.Gid))
}
