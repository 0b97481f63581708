package natslog

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/nats-io/nats-server/v2/server"
)

// embed starts a server in the process, without a port, with its files in the directory. Every message is
// synced to disk before it is acknowledged.
func (s *Store) embed() (err error) {
	dir := s.options.Dir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if s.lock, err = lockDir(dir); err != nil {
		return err
	}
	if err := keepHolds(dir); err != nil {
		return err
	}
	if s.mark, err = openMark(filepath.Join(dir, "mark")); err != nil {
		return err
	}
	if err := dropIndexes(dir); err != nil {
		return err
	}
	if err := s.verifyBlocks(); err != nil {
		return err
	}
	s.server, err = server.NewServer(&server.Options{
		ServerName:         "vitrine",
		DontListen:         true,
		NoSigs:             true,
		JetStream:          true,
		StoreDir:           dir,
		SyncAlways:         syncAlways,
		JetStreamMaxStore:  math.MaxInt64 / 2, // the disk is the limit
		JetStreamMaxMemory: 1 << 20,
		NoSystemAccount:    true,
	})
	if err != nil {
		return fmt.Errorf("natslog: %s: %w", dir, err)
	}
	s.complaints = &complaints{to: s.options.Logger}
	s.server.SetLoggerV2(s.complaints, false, false, false)
	s.server.Start()
	if s.complaints.fatal.Load() {
		return fmt.Errorf("natslog: the server of %s does not start: %s", dir, s.complaints.last())
	}
	if !s.server.ReadyForConnections(s.options.Patience) {
		return fmt.Errorf("natslog: the server of %s is not ready after %v", dir, s.options.Patience)
	}
	if !s.server.JetStreamEnabled() {
		return fmt.Errorf("natslog: the files in %s cannot be opened: %s", dir, s.complaints.last())
	}
	return nil
}

// dropIndexes removes the server's summaries of its files, so that it reads the files and verifies every
// record when it starts. With a summary it would trust a record's sequence before it verifies the checksum,
// and fill memory with the numbers up to it: a flipped bit could exhaust the machine's memory.
func dropIndexes(dir string) error {
	paths, err := fs.Glob(os.DirFS(dir), "jetstream/*/streams/*/msgs/index.db")
	for _, path := range paths {
		err = errors.Join(err, os.Remove(filepath.Join(dir, path)))
	}
	return err
}

// syncAlways is false only in the measurement of the cost of syncing.
var syncAlways = true

// complaints passes on a server's warnings and errors, and remembers the last error until it is reset.
type complaints struct {
	to    *slog.Logger
	error atomic.Pointer[string]
	fatal atomic.Bool // it has given up
}

func (*complaints) Noticef(string, ...any) {}
func (*complaints) Debugf(string, ...any)  {}
func (*complaints) Tracef(string, ...any)  {}

func (c *complaints) Warnf(format string, args ...any) { c.to.Warn(fmt.Sprintf(format, args...)) }

func (c *complaints) Errorf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	c.error.Store(&text)
	c.to.Error(text)
}

func (c *complaints) Fatalf(format string, args ...any) {
	c.Errorf(format, args...)
	c.fatal.Store(true)
}

func (c *complaints) forget() { c.error.Store(nil) }

// last returns the last error, or "".
func (c *complaints) last() string {
	if text := c.error.Load(); text != nil {
		return *text
	}
	return ""
}
