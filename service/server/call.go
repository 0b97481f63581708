package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"vitrine/internal/hint"
	"vitrine/service/api"
	"vitrine/service/budget"
	"vitrine/service/keys"
	"vitrine/service/personalizer"
)

// call is a request in progress.
type call struct {
	*http.Request
	ctx    context.Context // the request's, plus the wrappers' additions
	w      recorder
	server *Server
	now    int64 // the time of arrival, Unix nanoseconds
	id     string

	key       keys.Key // of the caller
	signedIn  bool     // whether the key comes from a session
	placement string   // the call's placement, or ""
	contract  *personalizer.Route
	entry     func() uint64 // the last known entry of the log; nil for calls that cannot change anything

	placed  bool // it holds a place
	buffer  *bytes.Buffer
	memory  budget.Account
	problem *problem // that it was answered with
}

// Context, Now, Placement and Reserve are for package personalizer.

// Context returns the call's context instead of its request's: setting the request's would copy the request.
func (c *call) Context() context.Context { return c.ctx }

// Now returns when the request came, Unix nanoseconds.
func (c *call) Now() int64 { return c.now }

// Placement returns the placement of the call.
func (c *call) Placement() string { return c.placement }

// Reserve reserves memory for the work on the request, including its body, instead of the earlier reservation.
func (c *call) Reserve(bytes int64) error { return c.memory.Reserve(c.ctx, bytes) }

// turn waits for the key's turn to compute a long answer, as the last thing that it waits for.
func (c *call) turn() (leave func(), err error) { return c.server.turns.Take(c.ctx, c.key.Name) }

func (c *call) mine(placement string) bool { return keys.Covers(c.key.Placements, placement) }

// recorder remembers what was answered.
type recorder struct {
	http.ResponseWriter
	status int
}

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxKept limits the size of a buffer that is kept for reuse, in bytes.
const maxKept = 1 << 20

// scratch returns the call's buffer, emptied. It is valid until the call is answered.
func (c *call) scratch() *bytes.Buffer {
	if c.buffer == nil {
		c.buffer = buffers.Get().(*bytes.Buffer)
	}
	c.buffer.Reset()
	return c.buffer
}

func (c *call) release() {
	c.memory.KeepBody(0)
	c.memory.Keep(budget.Work, 0)
	keep(c.buffer)
}

func keep(b *bytes.Buffer) {
	if b != nil && b.Cap() <= maxKept {
		buffers.Put(b)
	}
}

// body reads the body, which is valid until the next call of scratch.
func (c *call) body() ([]byte, error) {
	coding, err := c.coding()
	if err != nil {
		return nil, err
	}
	limit, size := c.server.limits.Body, c.ContentLength
	if size > limit {
		if c.Header.Get("Expect") == "" { // otherwise the caller waits before sending the body
			c.drain()
		}
		return nil, tooLarge(limit)
	}
	if size < 0 { // unknown
		size = limit + 1
	}
	b, placed := c.scratch(), c.placed
	c.leave()
	if err := c.receive(b, size); err != nil {
		return nil, err
	}
	if int64(b.Len()) > limit {
		c.drain()
		return nil, tooLarge(limit)
	}
	if placed {
		if _, err := c.enter(); err != nil {
			return nil, err
		}
	}
	if coding != "" {
		if b, err = c.decompressed(coding); err != nil {
			return nil, err
		}
	}
	c.memory.KeepBody(int64(b.Len()))
	return b.Bytes(), nil
}

// nextPart is how many bytes of a body are reserved once those before them have come. Before any, it is budget.BodyStart.
const nextPart = 64 << 10

// receive reads up to size bytes of the body. It reserves memory as they come, and the call holds no place meanwhile: a
// body that is only announced keeps no other request out.
func (c *call) receive(b *bytes.Buffer, size int64) error {
	in := io.LimitedReader{R: c.Request.Body}
	for part := min(size, budget.BodyStart); ; part = min(part+nextPart, size) {
		if err := c.memory.GrowBody(c.ctx, part); err != nil {
			return err
		}
		in.N = part - int64(b.Len())
		b.Grow(int(in.N) + bytes.MinRead)
		_, err := b.ReadFrom(&in)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return problemf(http.StatusRequestTimeout, "slow", "the body did not arrive in time")
		case err == io.ErrUnexpectedEOF:
			return problemf(http.StatusBadRequest, "body", "the body ends before its Content-Length")
		case err != nil:
			return problemf(http.StatusBadRequest, "body", "the body cannot be read")
		case in.N > 0, part == size:
			return nil
		}
	}
}

// jsonBody is body for a body that must be JSON.
func (c *call) jsonBody() ([]byte, error) {
	if _, err := c.mediaType(asJSON); err != nil {
		return nil, err
	}
	return c.body()
}

// drain discards up to 64 MiB of the body: most callers read the answer only after sending all of it, and a closed
// connection would be reset.
func (c *call) drain() {
	c.leave()
	_, _ = io.CopyN(io.Discard, c.Request.Body, 64<<20)
}

func tooLarge(limit int64) error {
	return problemf(http.StatusRequestEntityTooLarge, "too-large",
		"the body has more than %d bytes: send less in a request", limit)
}

// The types of bodies.
const (
	asJSON = "application/json"
	asForm = "application/x-www-form-urlencoded" // which curl -d sends, also with JSON
)

// mediaType returns the type of the body, which must be one of legal.
func (c *call) mediaType(legal ...string) (string, error) {
	given := c.Header.Get("Content-Type")
	if given == "" || given == asForm {
		return asJSON, nil
	}
	if slices.Contains(legal, given) {
		return given, nil
	}
	t, _, err := mime.ParseMediaType(given)
	for _, l := range legal {
		if err == nil && t == l {
			return t, nil
		}
	}
	return "", problemf(http.StatusUnsupportedMediaType, "media-type", "the Content-Type must be %s", hint.List(legal))
}

// read decodes a small body and refuses unknown keys.
func (c *call) read(dst any) error { return c.decode(dst, json.RejectUnknownMembers(true)) }

// readReport is read for numbers that callers report: a null, into which JavaScript turns NaN, is an error.
func (c *call) readReport(dst any) error {
	return c.decode(dst, json.RejectUnknownMembers(true), withoutNulls)
}

var withoutNulls = json.WithUnmarshalers(json.JoinUnmarshalers(json.UnmarshalFromFunc(notNull[*float64]),
	json.UnmarshalFromFunc(notNull[**float64]), json.UnmarshalFromFunc(notNull[**int])))

func notNull[T any](in *jsontext.Decoder, _ T) error {
	if in.PeekKind() == 'n' {
		return errors.New("null: must be a number; leave it out if there is none")
	}
	return errors.ErrUnsupported
}

// Decode decodes a body and ignores unknown keys.
func (c *call) Decode(dst any) error { return c.decode(dst) }

func (c *call) decode(dst any, options ...json.Options) error {
	body, err := c.jsonBody()
	if err != nil {
		return err
	}
	if jsontext.Value(body).Kind() == 'n' { // null would leave dst unchanged
		return &api.FieldError{Message: "must be an object"}
	}
	if err := json.Unmarshal(body, dst, options...); err != nil {
		return api.InText(body, api.JSONError(err))
	}
	return c.key.Check(dst)
}

// answer sends a body. It compresses a long one if the caller accepts that.
func (c *call) answer(status int, mediaType string, body []byte) error {
	h := c.w.Header()
	h["Content-Type"] = []string{mediaType}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	if len(body) < minCompressed {
		c.begin(status)
		_, _ = c.w.Write(body) // fails only if the caller is gone
		return nil
	}
	c.nameEntry(status)
	compressed(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write(body)
	}))(&c.w, c.Request)
	return nil
}

func (c *call) begin(status int) {
	c.nameEntry(status)
	c.w.WriteHeader(status)
}

// nameEntry names the last known entry in the answer to a call that may have made a change.
func (c *call) nameEntry(status int) {
	if c.entry == nil || status >= 300 {
		return
	}
	if entry := c.entry(); entry > 0 {
		c.w.Header()[api.EntryHeader] = []string{strconv.FormatUint(entry, 10)}
	}
}

// answerJSON answers with a value.
func (c *call) answerJSON(status int, v any) error {
	b := c.scratch()
	if err := json.MarshalWrite(b, v, json.Deterministic(true)); err != nil {
		return fmt.Errorf("an answer does not marshal: %w", err)
	}
	return c.answer(status, asJSON, b.Bytes())
}

func (c *call) reply(found any, err error) error {
	if err != nil {
		return err
	}
	return c.answerJSON(http.StatusOK, found)
}

// done answers a change without content, or with the error.
func (c *call) done(err error) error {
	if err != nil {
		return err
	}
	return c.nothing()
}

func (c *call) nothing() error {
	c.begin(http.StatusNoContent)
	return nil
}

// Headers that are the same in every answer, in the canonical form of http.Header.
var (
	noStore = []string{"no-store"}
	noSniff = []string{"nosniff"}
)
