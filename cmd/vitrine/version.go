package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/alecthomas/kong"
)

// version is the release; CHANGELOG.md has the same.
const version = "0.1.0-dev"

type versionCmd struct{}

// Run prints the version and the platform of this program.
func (versionCmd) Run(t terminal) error {
	v, err := fullVersion()
	if err != nil {
		return err
	}
	fmt.Fprintf(t.out, "vitrine %s (%s, %s/%s)\n", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}

// versionFlag is --version, which prints what the command version prints.
type versionFlag bool

// BeforeReset implements kong's hook, so that the flag needs no command.
func (versionFlag) BeforeReset(parser *kong.Kong) error {
	if err := (versionCmd{}).Run(terminal{parser.Stdout, parser.Stderr}); err != nil {
		return err
	}
	parser.Exit(0)
	return nil
}

// fullVersion is the release and, after a '+', the checksum of this program's own file. Runs of another
// program are not continued, so no figure mixes two programs.
func fullVersion() (string, error) {
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
	return version + "+" + hex.EncodeToString(h.Sum(nil)[:6]), nil
}
