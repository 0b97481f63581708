package server

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

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

// maxWindow is how much of what was decompressed a decoder of zstd keeps, in bytes: what RFC 9659 asks of senders.
const maxWindow = 8 << 20

// decoders and encoders are by coding.
var (
	decoders = map[string]*sync.Pool{
		asGzip: {New: func() any { return new(gzip.Reader) }},
		asZstd: {New: func() any {
			// Without goroutines: concurrency 1 decodes in Read.
			d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
			if err != nil {
				panic(err)
			}
			return d
		}},
	}
	encoders = map[string]*sync.Pool{
		asGzip: {New: func() any { w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed); return w }},
		asZstd: {New: func() any {
			w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithLowerEncoderMem(true))
			if err != nil {
				panic(err)
			}
			return w
		}},
	}
)

// coding returns the coding of the body, "" if it has none.
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
	return "", problemf(http.StatusUnsupportedMediaType, "media-type", "the Content-Encoding must be %s", hint.List([]string{asZstd, asGzip}))
}

// errCoding is the error of a body that is not in its coding.
var errCoding = errors.New("the body is not in its Content-Encoding")

// decoded reads what a compressed body becomes. done must be called after the last read.
func decoded(coding string, body io.Reader) (r io.Reader, done func()) {
	d := &decoding{decoder: decoders[coding].Get().(decoder), body: failing{Reader: body}}
	return d, func() {
		_ = d.decoder.Reset(strings.NewReader("")) // it keeps no body
		decoders[coding].Put(d.decoder)
	}
}

// decoding reads what a body becomes. Its errors are errCoding and those of reading the body.
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

// accepted returns the coding of an answer, "" for none: the caller's favourite, and zstd if it has none (RFC 9110, section 12.5.3).
func accepted(h http.Header) (best string) {
	most := 0.0
	given := strings.ToLower(strings.Join(h.Values("Accept-Encoding"), ","))
	for _, coding := range []string{asZstd, asGzip} {
		if q := quality(given, coding); q > most {
			best, most = coding, q
		}
	}
	return best
}

// quality returns how much the caller likes a coding, by its name or by "*".
func quality(given, coding string) (q float64) {
	for part := range strings.SplitSeq(given, ",") {
		name, parameters, _ := strings.Cut(part, ";")
		if name = strings.TrimSpace(name); name != coding && name != "*" {
			continue
		}
		v := 1.0
		if key, value, ok := strings.Cut(parameters, "="); ok && strings.TrimSpace(key) == "q" {
			var err error
			if v, err = strconv.ParseFloat(strings.TrimSpace(value), 64); err != nil {
				v = 0
			}
		}
		if name == coding {
			return v
		}
		q = v
	}
	return q
}

// encoded returns a body in a coding.
func encoded(coding string, body []byte) []byte {
	type encoder interface {
		io.WriteCloser
		Reset(io.Writer)
	}
	e := encoders[coding].Get().(encoder)
	defer encoders[coding].Put(e)
	var b growing
	e.Reset(&b)
	_, _ = e.Write(body) // growing takes everything
	_ = e.Close()
	e.Reset(nil)
	return b
}

type growing []byte

func (g *growing) Write(b []byte) (int, error) { *g = append(*g, b...); return len(b), nil }
