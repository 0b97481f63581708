//go:build unix

package keys

import (
	"os"

	"vitrine/internal/flock"
)

// lockDir waits for an exclusive lock on a directory.
func lockDir(path string) (unlock func() error, err error) {
	l, err := flock.Take(path, os.O_RDONLY, flock.Exclusive)
	if err != nil {
		return nil, err
	}
	return l.Release, nil
}
