package load

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
)

func TestKindsOfErrors(t *testing.T) {
	listener := fatal.Or(net.Listen("tcp", "127.0.0.1:0"))(t)
	address := "http://" + listener.Addr().String()
	listener.Close()
	_, refused := http.Get(address)
	expired, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	for want, err := range map[string]error{
		"connection refused": refused, "connection broken": io.EOF, "timeout": expired.Err(), "other": errors.New("x"),
		"503 busy": &api.Problem{Status: 503, Type: "urn:vitrine:problem:busy"}, "502": &api.Problem{Status: 502},
	} {
		expect.Equal(t, kindOf(err), want, err, "is")
	}
}
