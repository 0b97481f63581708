package filelog_test

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/filelog"
	"vitrine/service/eventlog/logtest"
)

// appendUntilFull appends entries and returns how many are acknowledged before one is rejected for the given reason.
func appendUntilFull(t *testing.T, s eventlog.Log, why string) (acknowledged int) {
	t.Helper()
	for {
		_, err := s.Append(t.Context(), entry(acknowledged+1))
		if err == nil {
			acknowledged++
			continue
		}
		if !errors.Is(err, eventlog.ErrReopen) || !strings.Contains(err.Error(), why) {
			t.Fatalf("on a full disk: %v, want ErrReopen with %q", err, why)
		}
		expect.Fails(s.Append(t.Context(), entry(1)))(t, eventlog.ErrReopen)
		return acknowledged
	}
}

// wantAfter opens the log once there is room. It must contain the acknowledged entries and at most one more, and accept
// appends.
func wantAfter(t *testing.T, dir string, acknowledged int) {
	t.Helper()
	s := open(t, dir)
	defer s.Close()
	have := fatal.Or(logtest.Read(s, 1))(t)
	if len(have) < acknowledged || len(have) > acknowledged+1 {
		t.Fatalf("%d entries, %d acknowledged", len(have), acknowledged)
	}
	logtest.Want(t, s, 1, numbered(1, len(have))...)
	appendAll(t, s, numbered(len(have)+1, len(have)+3)...)
}

// The system stops a file from growing in the middle of a record. The test runs in its own process, because the limit
// applies to all of a process's files, and the testing package writes some too.
func TestFileLimit(t *testing.T) {
	const limited = "VITRINE_TEST_FILE_LIMIT"
	if os.Getenv(limited) == "" {
		child := exec.Command(os.Args[0], "-test.run=^TestFileLimit$")
		child.Env = append(os.Environ(), limited+"=1")
		if out, err := child.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	signal.Ignore(unix.SIGXFSZ)
	var before unix.Rlimit
	fatal.If(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &before))
	dir := t.TempDir()
	s := open(t, dir)
	limit := before
	limit.Cur = min(before.Cur, 100_000)
	fatal.If(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &limit))
	acknowledged := appendUntilFull(t, s, "file too large")
	s.Close()
	fatal.If(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &before))
	if acknowledged < 10 || acknowledged > math.MaxInt16 {
		t.Errorf("%d entries before the limit", acknowledged)
	}
	wantAfter(t, dir, acknowledged)
}

// A small file system fills up, and later gets more room.
func TestDiskFull(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("vitrine", disk, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("mounting a small file system: %v", err)
	}
	defer unix.Unmount(disk, unix.MNT_DETACH)
	ballast := filepath.Join(disk, "ballast")
	fatal.If(t, os.WriteFile(ballast, make([]byte, 500_000), 0o600))
	dir := filepath.Join(disk, "log")
	s := open(t, dir)
	acknowledged := appendUntilFull(t, s, "no space left")
	s.Close()
	fatal.If(t, os.Remove(ballast))
	wantAfter(t, dir, acknowledged)
}

// A segment that the system does not open is not damaged: it stays, and the error names the remedy.
func TestSegmentCannotBeOpened(t *testing.T) {
	// The thread ends with the test, and without the rights of the superuser over files.
	runtime.LockOSThread()
	dir := t.TempDir()
	segments := filled(t, dir)
	fatal.If(t, os.Chmod(filepath.Dir(dir), 0o755))
	fatal.If(t, os.Chmod(dir, 0o777))
	for _, path := range append(segments, filepath.Join(dir, "mark"), filepath.Join(dir, "lock")) {
		fatal.If(t, os.Chmod(path, 0o666))
	}
	reader := fatal.Or(filelog.Open(t.Context(), filelog.Options{Dir: dir, ReadOnly: true}))(t)
	defer reader.Close()
	before := contents(t, dir)
	for _, path := range []string{segments[1], segments[len(segments)-1]} {
		fatal.If(t, os.Chmod(path, 0))
		if os.Geteuid() == 0 {
			fatal.If(t, unix.Setfsuid(65534))
		}
		for _, readOnly := range []bool{true, false} {
			_, err := filelog.Open(t.Context(), filelog.Options{Dir: dir, ReadOnly: readOnly})
			if damage := new(eventlog.DamageError); errors.As(err, &damage) || !errors.Is(err, os.ErrPermission) ||
				!strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "as the owner") {
				t.Errorf("read only %v, %s: %v", readOnly, filepath.Base(path), err)
			}
		}
		_, err := logtest.Read(reader, 1)
		if damage := new(eventlog.DamageError); errors.As(err, &damage) || !errors.Is(err, os.ErrPermission) {
			t.Errorf("an open log: %v", err)
		}
		if os.Geteuid() == 0 {
			fatal.If(t, unix.Setfsuid(0))
		}
		fatal.If(t, os.Chmod(path, 0o666))
	}
	expect.Equal(t, contents(t, dir), before)
}

// A process that may open no more files does not take the log for damaged.
func TestTooManyOpenFiles(t *testing.T) {
	filelog.SetSegmentBytes(t, 4<<10)
	dir := t.TempDir()
	s := open(t, dir)
	for i := range 20 {
		appendAll(t, s, numbered(20*i+1, 20*i+20)...)
	}
	fatal.If(t, s.Close())
	var limit unix.Rlimit
	fatal.If(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	files := uint64(len(fatal.Or(os.ReadDir("/proc/self/fd"))(t)))
	for err := errors.New("not opened"); err != nil; files++ {
		fatal.If(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: files, Max: limit.Max}))
		s, err = filelog.Open(t.Context(), filelog.Options{Dir: dir})
		fatal.If(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
		if err != nil && (!errors.Is(err, unix.EMFILE) || errors.As(err, new(*eventlog.DamageError))) {
			t.Fatal(err)
		}
	}
	fatal.If(t, s.Close())
}
