package server_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

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

// A request with two lengths of its body may hide a second request from a proxy, so the server does not read on after a
// body without a length.
func TestTwoLengths(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", plain)
	address, _ := s.run(server.Listen{})
	const after = "GET /v1/placements HTTP/1.1\r\nHost: localhost\r\n\r\n"
	for name, c := range map[string]struct {
		request string
		answers int
	}{
		"length first": {chunkedWithLength, 1},
		"encoding first": {strings.Replace(chunkedWithLength, "Content-Length: 5\r\nTransfer-Encoding: chunked",
			"Transfer-Encoding: chunked\r\nContent-Length: 5", 1), 1},
		"bare newlines":  {strings.ReplaceAll(chunkedWithLength, "\r\n", "\n"), 1},
		"behind another": {after + chunkedWithLength, 2},
		"to no path": {"OPTIONS * HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" +
			"0\r\n\r\n", 1},
		"only an encoding": {strings.Replace(chunkedWithLength, "Content-Length: 5\r\n", "", 1), 1},
		"HTTP/1.0": {strings.Replace(chunkedWithLength, "HTTP/1.1\r\n", "HTTP/1.0\r\nConnection: keep-alive\r\n",
			1), 1},
	} {
		conn := fatal.Or(net.Dial("tcp", address))(t)
		if _, closed := exchange(t, conn, c.request+after, c.answers); !closed {
			t.Errorf("%s: a request after it is read", name)
		}
	}
}
