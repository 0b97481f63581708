// Package decompress reads data that may be compressed.
package decompress

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Coding is a compression format.
type Coding string

// The codings, recognised by the first bytes of the data.
const (
	None Coding = ""
	Gzip Coding = "gzip"
	Zstd Coding = "zstd"
)

// Reader decompresses the data of r and returns their coding. If they are not compressed, it returns r itself.
func Reader(r *bufio.Reader) (io.Reader, Coding, error) {
	head, _ := r.Peek(4) // the first Read will return the same error
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
