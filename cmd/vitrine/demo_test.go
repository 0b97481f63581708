package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/demo"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/host"
	"vitrine/service/setup"
)

// The demonstration runs in its own service.
func TestServeDemo(t *testing.T) {
	s := newService(t)
	s.demo = true
	url, _, stop := serving(t, s)
	expect.Contains(t, ask(t, 200, "GET", url+"/", ""), "desk/index.js", "the page is not the desk")
	for placement := range demo.Placements(demo.Seed, demo.Compare) {
		for stats := new(api.Stats); stats.Outcomes < 3; time.Sleep(10 * time.Millisecond) {
			answer, err := http.Get(url + "/v1/placements/" + placement + "/stats")
			fatal.If(t, err)
			if answer.StatusCode == http.StatusOK { // the placement is there soon
				err = json.NewDecoder(answer.Body).Decode(stats)
			}
			if answer.Body.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	expect.Error(t, stop(), nil)
	s.Listen = "127.0.0.1:0"
	_, _, stop = serving(t, s) // over its own remains
	expect.Error(t, stop(), nil)
}

// The demonstration does not overwrite a placement.
func TestDemoOverwritesNothing(t *testing.T) {
	s := newService(t)
	url, _, stop := serving(t, s)
	ask(t, 201, "PUT", url+"/v1/placements/auto",
		`{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"}}`)
	before := ask(t, 200, "GET", url+"/v1/placements", "")
	fatal.If(t, stop())
	s.demo = true
	expect.Part(s.run(t.Context(), slog.New(slog.DiscardHandler)))(t,
		`the placement "auto"`, "the demonstration over a placement of that name")
	s.demo = false
	url, _, stop = serving(t, s)
	if after := ask(t, 200, "GET", url+"/v1/placements", ""); after != before {
		t.Errorf("the placements are %s, were %s", after, before)
	}
	expect.Error(t, stop(), nil)
}

// A log that was opened again is served without the demonstration if one of its placements was changed meanwhile.
func TestDemoOfChangedPlacement(t *testing.T) {
	e := fatal.Or(engine.Open(t.Context(), engine.Options{Store: new(memlog.Store), Build: setup.NewLearner}))(t)
	defer e.Close()
	var log bytes.Buffer
	o := host.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	demonstration("data", &o)
	fatal.If(t, o.Opened(e))
	fatal.Or(e.Put(t.Context(), "auto", []byte(
		`{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"}}`), 0))(t)
	if err := o.Opened(e); err != nil || !strings.Contains(log.String(), "the demonstration is over") {
		t.Errorf("opened again: %v, %s", err, &log)
	}
	o.Serving(t.Context(), "127.0.0.1:1") // returns at once
}

// The requests of the README work as they stand, beside the demonstration that it starts before them.
func TestRequestsOfTheREADME(t *testing.T) {
	text := fatal.Or(os.ReadFile("../../README.md"))(t)
	s := newService(t)
	s.demo = true
	url, _, stop := serving(t, s)
	for ask(t, 200, "GET", url+"/v1/placements", "") == `{"placements":[]}` ||
		strings.Contains(ask(t, 200, "GET", url+"/v1/placements/auto/items", ""), `"count":0`) {
		time.Sleep(10 * time.Millisecond)
	}
	requests := regexp.MustCompile(`(?m)^curl (-X PUT )?localhost:8080(\S+) -d '([^']*)'$`).FindAllStringSubmatch(
		string(text), -1)
	expect.Equal(fatal.T(t), len(requests), 6, "requests")
	for i, status := range []int{201, 201, 201, 201, 201, 204} {
		method := "POST"
		if requests[i][1] != "" {
			method = "PUT"
		}
		ask(t, status, method, url+requests[i][2], requests[i][3])
	}
	expect.Error(t, stop(), nil)
}
