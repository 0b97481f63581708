package decompress_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"
	"testing"

	"github.com/klauspost/compress/zstd"

	"vitrine/internal/decompress"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

func TestReader(t *testing.T) {
	const text = "id,price\nsku1,2.5\n"
	var zipped, zstandard bytes.Buffer
	g := gzip.NewWriter(&zipped)
	z := fatal.Or(zstd.NewWriter(&zstandard))(t)
	for _, w := range []io.WriteCloser{g, z} {
		fatal.Or(io.WriteString(w, text))(t)
		fatal.If(t, w.Close())
	}
	for _, v := range []struct {
		data   string
		coding decompress.Coding
		want   string
	}{
		{text, decompress.None, text},
		{"", decompress.None, ""},
		{"i", decompress.None, "i"},
		{zipped.String(), decompress.Gzip, text},
		{zstandard.String(), decompress.Zstd, text},
	} {
		r, coding, err := decompress.Reader(bufio.NewReader(bytes.NewBufferString(v.data)))
		fatal.If(t, err)
		got, err := io.ReadAll(r)
		if err != nil || string(got) != v.want || coding != v.coding {
			t.Errorf("%q: %q, %q, %v", v.data, coding, got, err)
		}
	}
	for _, data := range []string{
		zipped.String()[:5], zipped.String()[:zipped.Len()-3], zstandard.String()[:zstandard.Len()-3],
	} {
		r, _, err := decompress.Reader(bufio.NewReader(bytes.NewBufferString(data)))
		if err == nil {
			_, err = io.ReadAll(r)
		}
		expect.Refused(err)(t, len(data), "bytes of compressed data are read without an error")
	}
}
