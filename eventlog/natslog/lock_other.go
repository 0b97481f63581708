//go:build !unix

package natslog

import (
	"fmt"
	"runtime"
)

type dirLock struct{}

func lockDir(dir string) (*dirLock, error) {
	return nil, fmt.Errorf("natslog: a log in a directory needs a file lock, which %s lacks: give the URL of a server", runtime.GOOS)
}

func (*dirLock) release() error { return nil }
