package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime"
)

// version is the release; it moves with CHANGELOG.md.
const version = "0.1.0-dev"

type versionCmd struct{}

// Run prints the version and what this program was built from.
func (versionCmd) Run(t terminal) error {
	build, err := buildID()
	if err != nil {
		return err
	}
	fmt.Fprintf(t.out, "vitrine %s (build %s, %s, %s/%s)\n", version, build, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}

// buildID identifies this very program by the checksum of its file: finished
// runs of another are not continued, so that no figure mixes two programs.
func buildID() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("cannot find this program's own file: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)[:6]), nil
}
