package server_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/server"
)

const chunkedWithLength = "POST /v1/placements/home/try HTTP/1.1\r\nHost: localhost\r\nContent-Type: " +
	"application/json\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"

// exchange sends text and returns the answers, and whether the server closed the connection after them.
func exchange(t *testing.T, c net.Conn, text string, answers int) (list []*http.Response, closed bool) {
	t.Helper()
	defer c.Close()
	fatal.If(t, c.SetDeadline(time.Now().Add(patience)))
	fatal.Or(io.WriteString(c, text))(t)
	in := bufio.NewReader(c)
	for range answers {
		a, err := http.ReadResponse(in, nil)
		fatal.If(t, err, len(list), "answers")
		fatal.Or(io.Copy(io.Discard, a.Body))(t)
		list = append(list, a)
	}
	last := list[len(list)-1]
	if !last.Close {
		return list, false
	}
	_, err := in.ReadByte()
	return list, err == io.EOF
}

// A request with two lengths of its body may hide a second request from a proxy: it is refused, and nothing after it is
// read.
func TestTwoLengths(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", plain)
	address, _ := s.run(server.Listen{})
	const after = "GET /v1/placements HTTP/1.1\r\nHost: localhost\r\n\r\n"
	for name, request := range map[string]string{
		"length first": chunkedWithLength,
		"encoding first": strings.Replace(chunkedWithLength, "Content-Length: 5\r\nTransfer-Encoding: chunked",
			"Transfer-Encoding: chunked\r\nContent-Length: 5", 1),
		"other case":    strings.Replace(chunkedWithLength, "Content-Length", "cOntent-lEngth", 1),
		"bare newlines": strings.ReplaceAll(chunkedWithLength, "\r\n", "\n"),
		"long header": strings.Replace(chunkedWithLength, "Content-Length",
			"X-Long: "+strings.Repeat("x", 10_000)+"\r\nContent-Length", 1),
	} {
		c := fatal.Or(net.Dial("tcp", address))(t)
		answers, closed := exchange(t, c, request+after, 1)
		if answers[0].StatusCode != 400 || !closed {
			t.Errorf("%s: status %d, closed %v, want 400 and an end", name, answers[0].StatusCode, closed)
		}
	}
	// Behind another request on the connection its head cannot always be seen. Bytes after it are not read all the
	// same.
	c := fatal.Or(net.Dial("tcp", address))(t)
	if _, closed := exchange(t, c, after+chunkedWithLength+after, 2); !closed {
		t.Error("a request behind one with two lengths is read")
	}
	// A body with one length that looks like the head of such a request is accepted.
	const innocent = "Transfer-Encoding: chunked\r\n\r\n\r\nContent-Length: 5\r\n\r\n"
	body := "POST /v1/placements/home/try HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n35\r\n" +
		innocent + "\r\n0\r\n\r\n"
	expect.Equal(fatal.T(t), len(innocent), 0x35)
	c = fatal.Or(net.Dial("tcp", address))(t)
	if answers, _ := exchange(t, c, body, 1); answers[0].Close {
		t.Error("a chunked body ends its connection")
	}
}

// Over TLS the head of a request cannot be seen: a chunked one is the last of its connection.
func TestTwoLengthsOverTLS(t *testing.T) {
	s := started(t, nil)
	dir := t.TempDir()
	certify(t, dir, 1)
	address, _ := s.run(server.Listen{Certificate: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")})
	c := fatal.Or(tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true}))(t)
	if _, closed := exchange(t, c, chunkedWithLength+"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 1); !closed {
		t.Error("a request behind one with two lengths is read")
	}
}
