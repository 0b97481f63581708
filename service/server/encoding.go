package server

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"vitrine/internal/hint"
)

// The codings of bodies, in the order in which the service prefers them for answers.
const (
	asZstd = "zstd"
	asGzip = "gzip"
)

// decoder reads a compressed body, and is used again.
type decoder interface {
	io.Reader
	Reset(io.Reader) error
}

// maxWindow bounds the decompressed bytes that a zstd decoder keeps, as RFC 9659 demands of senders.
const maxWindow = 8 << 20

// decoders pools the decoders of each coding.
var decoders = map[string]*sync.Pool{
	asGzip: {New: func() any { return new(gzip.Reader) }},
	asZstd: {New: func() any {
		// Without goroutines: concurrency 1 decodes in Read.
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			panic(err)
		}
		return d
	}},
}

// coding returns the body's coding, or "".
func (c *call) coding() (string, error) {
	given := c.Header.Values("Content-Encoding")
	if len(given) == 0 {
		return "", nil
	}
	switch coding := strings.ToLower(strings.TrimSpace(strings.Join(given, ","))); coding {
	case "", "identity":
		return "", nil
	case asGzip, "x-gzip":
		return asGzip, nil
	case asZstd:
		return asZstd, nil
	}
	c.w.Header().Set("Accept-Encoding", asZstd+", "+asGzip) // RFC 9110, section 12.5.3
	return "", problemf(http.StatusUnsupportedMediaType, "media-type", "the Content-Encoding must be %s",
		hint.List([]string{asZstd, asGzip}))
}

var errCoding = errors.New("the body is not in its Content-Encoding")

// decoded returns a reader of the decompressed body. Call done after the last read.
func decoded(coding string, body io.Reader) (r io.Reader, done func()) {
	d := &decoding{decoder: decoders[coding].Get().(decoder), body: failing{Reader: body}}
	return d, func() {
		_ = d.decoder.Reset(strings.NewReader("")) // it keeps no body
		decoders[coding].Put(d.decoder)
	}
}

// decoding reads a decompressed body. Its errors are errCoding and the body's own.
type decoding struct {
	decoder decoder
	body    failing
	begun   bool
}

// Read implements io.Reader.
func (d *decoding) Read(b []byte) (n int, err error) {
	if !d.begun {
		d.begun = true
		err = d.decoder.Reset(&d.body) // gzip reads its header
	}
	if err == nil {
		if n, err = d.decoder.Read(b); err == nil || err == io.EOF {
			return n, err
		}
	}
	return n, cmp.Or(d.body.err, errCoding)
}

// failing is a reader that remembers its error.
type failing struct {
	io.Reader
	err error
}

func (f *failing) Read(b []byte) (int, error) {
	n, err := f.Reader.Read(b)
	if err != nil && err != io.EOF {
		f.err = err
	}
	return n, err
}

// minCompressed is the size from which on answers are compressed, in bytes: smaller ones fit into a packet or two.
const minCompressed = 2 << 10

// compressed sends an answer in the coding that its caller prefers, or zstd if the caller has no preference.
var compressed = func() func(http.Handler) http.HandlerFunc {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(minCompressed),
		gzhttp.ContentTypeFilter(func(string) bool { return true }),
		gzhttp.EnableZstd(true), gzhttp.PreferZstd(true), gzhttp.CompressionLevel(gzip.BestSpeed),
		gzhttp.ZstdCompressionLevel(int(zstd.SpeedFastest)))
	if err != nil {
		panic(err)
	}
	return wrap
}()
