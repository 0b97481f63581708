package replace_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/replace"
)

// A file with an access control list is refused: its list would be lost, and the list's mask would become the group's
// mode.
func TestSharedRefusesLists(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.toml")
	fatal.If(t, os.WriteFile(path, []byte("before"), 0o600))
	acl := binary.LittleEndian.AppendUint32(nil, 2)
	for _, entry := range [][3]uint32{{0x01, 6, ^uint32(0)}, {0x02, 4, 777}, {0x04, 0, ^uint32(0)}, {0x10, 4, ^uint32(0)},
		{0x20, 0, ^uint32(0)}} { // user::rw-, user:777:r--, group::---, mask::r--, other::---
		acl = binary.LittleEndian.AppendUint16(acl, uint16(entry[0]))
		acl = binary.LittleEndian.AppendUint16(acl, uint16(entry[1]))
		acl = binary.LittleEndian.AppendUint32(acl, entry[2])
	}
	if err := unix.Setxattr(path, "system.posix_acl_access", acl, 0); err != nil {
		t.Skipf("the file system has no access control lists: %v", err)
	}
	expect.Contains(t, replace.Shared(path, []byte("after")).Error(), "access control list")
	expect.Equal(t, string(fatal.Or(os.ReadFile(path))(t)), "before")
}
