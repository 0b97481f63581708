package filelog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"vitrine/internal/replace"
	"vitrine/service/eventlog"
)

// copyName is the file that marks a log whose copy is not finished.
const copyName = "copying"

// checkCopy refuses to write to a log whose copy is not finished, unless this store is to finish it. It marks a copy that
// begins, because the copy may be interrupted at any time.
func (s *Store) checkCopy() error {
	switch _, err := os.Stat(filepath.Join(s.options.Dir, copyName)); {
	case s.options.Copies && !Exists(s.options.Dir):
		return s.MarkCopy(context.Background(), true)
	case err == nil && !s.options.Copies:
		return fmt.Errorf("%w: %s", eventlog.ErrUnfinished, s.options.Dir)
	}
	return nil
}

// MarkCopy implements eventlog.Copied.
func (s *Store) MarkCopy(_ context.Context, unfinished bool) error {
	path := filepath.Join(s.options.Dir, copyName)
	if unfinished {
		return replace.Private(path, nil)
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	return replace.Sync(s.options.Dir)
}
