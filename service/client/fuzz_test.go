package client_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"vitrine/service/api"
	"vitrine/service/client"
)

// A call returns an answer or an error, whatever the server sends.
func FuzzAnswers(f *testing.F) {
	for _, seed := range []struct {
		status         int
		mediaType, tag string
		body           string
	}{
		{201, "application/json", `"1"`, `{"decision_id":"a","assortment":[{"id":"x","position":1}],"policy_entry":2}`},
		{200, "application/json", "", `null`}, {200, "text/html", "", "<p>"}, {204, "", "", ""},
		{404, "application/problem+json", "",
			`{"type":"urn:vitrine:problem:not-found","errors":[{"pointer":"#/x"}]}`},
		{503, "application/problem+json", "", `{"type":3}`}, {200, "application/json", "",
			`{"role":"leader","lag_seconds":1e999}`}, {302, "", "", ""},
	} {
		f.Add(seed.status, seed.mediaType, seed.tag, []byte(seed.body))
	}
	f.Fuzz(func(t *testing.T, status int, mediaType, tag string, body []byte) {
		c := &client.Client{Base: "http://shop", Patience: -1,
			HTTP: roundTrip(func(r *http.Request) (*http.Response, error) {
				h := http.Header{"Content-Type": {mediaType}, "Etag": {tag}, "Retry-After": {tag}, "Location": {tag}}
				return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(bytes.NewReader(body)),
						Request: r},
					nil
			})}
		if a, err := c.Decide(t.Context(), "home", &api.Request{Items: []api.Item{{ID: "x"}}}); (a == nil) == (err == nil) {
			t.Errorf("%+v, %v", a, err)
		}
		if p, err := c.Process(t.Context()); (p == nil) == (err == nil) {
			t.Errorf("%+v, %v", p, err)
		}
		_ = c.Outcome(t.Context(), "home", "a", "x")
	})
}
