package natslog_test

import (
	"io/fs"
	"path/filepath"
	"testing"

	"vitrine/service/eventlog/natslog"
)

// onDisk returns the bytes of the files below a directory.
func onDisk(t *testing.T, dir string) (bytes uint64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		bytes += uint64(info.Size())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// What is removed is given back to the disk, but for what shares a file of 8 MB with what is left.
func TestSpaceIsGivenBack(t *testing.T) {
	for _, size := range []int{1000, 400_000} {
		natslog.SetSync(false)
		dir := t.TempDir()
		s := connect(t, natslog.Options{Dir: dir})
		natslog.SetSync(true)
		e := make([]byte, size)
		for range 5 {
			for range 5_000_000 / size {
				if _, err := s.Append(t.Context(), e); err != nil {
					t.Fatal(err)
				}
			}
			const within = 12_000_000
			first, err := s.FirstWithin(t.Context(), within)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.TruncateBefore(t.Context(), first); err != nil {
				t.Fatal(err)
			}
			x, err := s.Extent(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			have := onDisk(t, filepath.Join(dir, "jetstream"))
			t.Logf("entries of %d bytes: %d to %d, %d bytes, on disk %d", size, x.First, x.Last, x.Bytes, have)
			const fence = 1000 // the frame that is acknowledged before
			if x.Bytes > within+fence || have > within+9_000_000 {
				t.Errorf("entries %d to %d have %d bytes, and %d on disk, want %d", x.First, x.Last, x.Bytes, have, within)
			}
		}
	}
}
