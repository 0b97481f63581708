package server

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"vitrine/internal/hint"
	"vitrine/service/budget"
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

// decompressed replaces the body in the call's buffer by the decompressed one.
func (c *call) decompressed(coding string) (*bytes.Buffer, error) {
	limit := c.server.limits.Body
	size := limit
	if coding == asZstd {
		size += maxWindow
	}
	if err := c.memory.Take(c.ctx, budget.Work, size); err != nil {
		return nil, err
	}
	defer c.memory.Keep(budget.Work, 0)
	packed := c.buffer
	defer keep(packed)
	c.buffer = nil
	b, d := c.scratch(), decoders[coding].Get().(decoder)
	defer decoders[coding].Put(d)
	err := d.Reset(struct{ io.Reader }{packed}) // gzip reads its header; zstd would decompress all of a buffer at once
	if err == nil {
		_, err = b.ReadFrom(io.LimitReader(d, limit+1))
	}
	_ = d.Reset(strings.NewReader("")) // it keeps no body
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, problemf(http.StatusBadRequest, "body", "the body ends before its %s data does", coding)
	case err != nil:
		return nil, problemf(http.StatusBadRequest, "body", "the body is not %s, which its Content-Encoding says", coding)
	case int64(b.Len()) > limit:
		return nil, problemf(http.StatusRequestEntityTooLarge, "too-large", "the body has more than %d bytes when "+
			"it is decompressed", limit)
	}
	return b, c.memory.GrowBody(c.ctx, int64(b.Len()))
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
