//go:build !unix

package natslog

import (
	"fmt"
	"io/fs"
	"runtime"
)

type fileLock struct{}

func lockDir(dir string) (*fileLock, error) {
	return nil, fmt.Errorf("natslog: a log in a directory needs a file lock, which %s lacks: give the URL of a server", runtime.GOOS)
}

func keepHolds(dir string) error { return nil }

func hold(dir string) (*fileLock, error)    { return nil, fs.ErrNotExist }
func noHolds(dir string) (*fileLock, error) { return nil, fs.ErrNotExist }

func (*fileLock) held() bool     { return true }
func (*fileLock) release() error { return nil }
