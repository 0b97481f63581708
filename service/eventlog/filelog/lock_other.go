//go:build !unix

package filelog

import (
	"fmt"
	"runtime"
)

type fileLock struct{}

func lockDir(dir string) (*fileLock, error) {
	return nil, fmt.Errorf("filelog: a log in a directory needs a file lock, which %s lacks: give the URL of a server",
		runtime.GOOS)
}

// Hold keeps the entries of a directory's log until release.
func Hold(string) (release func() error, err error) { return func() error { return nil }, nil }

func hold(string) (*fileLock, error)    { return nil, nil }
func noHolds(string) (*fileLock, error) { return nil, nil }

func (*fileLock) Held() bool     { return true }
func (*fileLock) Release() error { return nil }
