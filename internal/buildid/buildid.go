// Package buildid identifies the running program, so that results of one program are not continued by another.
package buildid

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"sync"
)

// pattern matches the build ID that the go command puts near the beginning of a program: an ELF note, or text before
// the code. Its last part is a checksum of everything that was linked.
var pattern = regexp.MustCompile(`(?:\x04\x00\x00\x00Go\x00\x00|Go build ID: ")((?:[\w-]{20}/){3}[\w-]{20})`)

// beginning is the part of a file that may hold the build ID, in bytes.
const beginning = 64 << 10

// Sum returns 12 hexadecimal digits that differ between programs with different code: a checksum of the build ID.
// Stripping or signing a program does not change it. A program linked without a build ID gets a checksum of its file.
var Sum = sync.OnceValues(func() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("cannot find this program's own file: %w", err)
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	return sumOf(file)
})

func sumOf(file io.ReadSeeker) (string, error) {
	head := make([]byte, beginning)
	n, err := io.ReadFull(file, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	sum := sha256.New()
	if m := pattern.FindSubmatch(head[:n]); m != nil {
		sum.Write(m[1])
	} else {
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return "", err
		}
		if _, err := io.Copy(sum, file); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:6]), nil
}
