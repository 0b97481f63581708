// Package decompress reads data that may be compressed.
package decompress

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Coding is how data are compressed.
type Coding string

// The codings, by the first bytes of the data.
const (
	None Coding = ""
	Gzip Coding = "gzip"
	Zstd Coding = "zstd"
)

// Reader returns the data of r decompressed, and how they were compressed. The data are r itself if they were not.
func Reader(r *bufio.Reader) (io.Reader, Coding, error) {
	head, _ := r.Peek(4) // an error is that of the first Read, too
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(r)
		return z, Gzip, err
	case bytes.Equal(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
		return z, Zstd, err
	}
	return r, None, nil
}
