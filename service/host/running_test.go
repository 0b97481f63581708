package host

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// variables are those that may be set where the tests run.
var variables = []string{
	"OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
	"OTEL_EXPORTER_OTLP_PROTOCOL",
	"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_TRACES_SAMPLER",
	"OTEL_EXPORTER_OTLP_HEADERS",
	"OTEL_EXPORTER_OTLP_COMPRESSION", "OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_EXPORTER_OTLP_CERTIFICATE",
	"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "OTEL_EXPORTER_OTLP_CLIENT_KEY",
}

// asked runs a service that answers one request, with the caller's traceparent, and returns what was logged.
func asked(t *testing.T, traceparent string) string {
	t.Helper()
	return whileServing(t, func(address string) {
		r, _ := http.NewRequest("GET", "http://"+address+"/v1/placements", nil)
		r.Header.Set("Traceparent", traceparent)
		if status, _ := roundTrip(t, r); status != 200 {
			t.Errorf("status %d", status)
		}
	})
}

// roundTrip asks on a connection of its own.
func roundTrip(t testing.TB, r *http.Request) (status int, body string) {
	t.Helper()
	answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	expect.Error(t, err, nil)
	return answer.StatusCode, string(text)
}

// whileServing calls f while a service in a new directory answers requests, ends the service, and returns its log.
func whileServing(t *testing.T, f func(address string)) string {
	t.Helper()
	c := Default()
	c.Data, c.Listen = t.TempDir(), "127.0.0.1:0"
	var log bytes.Buffer
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	fatal.If(t, Run(ctx, c, Options{
		Version: "1.2.3", Logger: slog.New(slog.NewJSONHandler(&log, nil)),
		Serving: func(_ context.Context, address string) {
			defer stop()
			f(address)
		},
	}))
	return log.String()
}

// The service exports a span of a request over OTLP to where the standard variables say, and ends its export before it
// ends.
func TestTracesAreExported(t *testing.T) {
	var mu sync.Mutex
	var got []*traces.TracesData
	var header http.Header
	var path string
	to := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			body, _ = gzip.NewReader(body)
		}
		text, _ := io.ReadAll(body)
		request := new(traces.TracesData)
		expect.Error(t, proto.Unmarshal(text, request), nil)
		mu.Lock()
		defer mu.Unlock()
		got, header, path = append(got, request), r.Header, r.URL.Path
	}))
	defer to.Close()
	for _, v := range variables {
		t.Setenv(v, "")
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", to.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=shop")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
	asked(t, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	if len(got) != 1 || len(got[0].ResourceSpans) != 1 || header.Get("X-Tenant") != "shop" || path != "/v1/traces" {
		t.Fatalf("%v, header %v, path %s", got, header, path)
	}
	span := got[0].ResourceSpans[0].ScopeSpans[0].Spans[0]
	if span.Name != "GET /v1/placements" || !bytes.HasPrefix(span.TraceId, []byte{0x4b, 0xf9, 0x2f}) ||
		!bytes.HasSuffix(span.ParentSpanId, []byte{0x02, 0xb7}) {
		t.Errorf("%v", span)
	}
	var attributes []string
	for _, a := range got[0].ResourceSpans[0].Resource.Attributes {
		attributes = append(attributes, a.Key+"="+a.Value.GetStringValue())
	}
	for _, want := range []string{"service.name=vitrine", "service.version=1.2.3", "deployment.environment=test"} {
		if !slices.Contains(attributes, want) {
			t.Errorf("the resource has no %s: %q", want, attributes)
		}
	}
}

// Without the variables, or where they say no, there is no tracer. Variables that cannot be followed are a warning.
func TestNoTraces(t *testing.T) {
	for _, c := range []struct {
		set  []string
		warn string
	}{
		{nil, ""},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_SDK_DISABLED=true"}, ""},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_TRACES_EXPORTER=none"}, ""},
		{[]string{"OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"},
			"OTEL_EXPORTER_OTLP_PROTOCOL=grpc: must be http/protobuf"},
		{[]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:1",
			"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json", "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"},
			"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json: must be"},
	} {
		for _, v := range variables {
			t.Setenv(v, "")
		}
		for _, v := range c.set {
			name, value, _ := strings.Cut(v, "=")
			t.Setenv(name, value)
		}
		var log bytes.Buffer
		tracer, stop := tracer(t.Context(), "", slog.New(slog.NewJSONHandler(&log, nil)))
		stop()
		if tracer != nil || (c.warn == "") != (log.Len() == 0) || !strings.Contains(log.String(), c.warn) {
			t.Errorf("%q: a tracer %v, log %s", c.set, tracer != nil, log.String())
		}
	}
}

// A busy collector is asked again, later. What is sent follows the variables: the address for traces as it is, headers,
// gzip and the collector's certificate.
func TestCollectorIsBusy(t *testing.T) {
	defer func(p time.Duration) { firstPause = p }(firstPause)
	firstPause = time.Millisecond
	asked := 0
	to := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		unzipped, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		text, _ := io.ReadAll(unzipped)
		got := new(traces.TracesData)
		if err := proto.Unmarshal(text, got); err != nil || got.ResourceSpans[0].SchemaUrl != "x" ||
			r.URL.Path != "/own" || r.Header.Get("X-Tenant") != "a shop" {
			t.Errorf("%v at %s, header %v: %v", got, r.URL, r.Header, err)
		}
	}))
	defer to.Close()
	certificate := filepath.Join(t.TempDir(), "collector.pem")
	fatal.If(t, os.WriteFile(certificate,
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: to.Certificate().Raw}), 0o600))
	for _, v := range variables {
		t.Setenv(v, "")
	}
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", to.URL+"/own")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "a=b, x-tenant = a%20shop")
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", certificate)
	c := fatal.Or(newCollector("1"))(t)
	defer c.client.CloseIdleConnections()
	fatal.If(t, c.UploadTraces(t.Context(), []*traces.ResourceSpans{{SchemaUrl: "x"}}))
	expect.Equal(t, asked, 3, "asked n times")
	wrong := httptest.NewServer(http.NotFoundHandler())
	defer wrong.Close()
	c.url = strings.Replace(wrong.URL, "//", "//shop:secret@", 1)
	if err := c.UploadTraces(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "404 Not Found") ||
		strings.Contains(err.Error(), "secret") {
		t.Errorf("a wrong address: %v", err)
	}
	asked = 0
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.UploadTraces(ctx, nil); err == nil || asked != 0 {
		t.Errorf("a call that has ended: %v, asked %d times", err, asked)
	}
}

func TestWrongVariablesOfTheCollector(t *testing.T) {
	for variable, want := range map[string]string{
		"ENDPOINT=collector:4318":     "OTEL_EXPORTER_OTLP_ENDPOINT: must be a URL",
		"ENDPOINT=grpc://a:secret@b":  "OTEL_EXPORTER_OTLP_ENDPOINT: must be a URL",
		"HEADERS=secret":              "OTEL_EXPORTER_OTLP_HEADERS: must be a list",
		"COMPRESSION=brotli":          "must be gzip or none",
		"TIMEOUT=10s":                 "must be a number of milliseconds",
		"CERTIFICATE=running_test.go": "must be a file of certificates in PEM",
		"CERTIFICATE=nowhere.pem":     "OTEL_EXPORTER_OTLP_CERTIFICATE: open nowhere.pem",
	} {
		for _, v := range variables {
			t.Setenv(v, "")
		}
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv("OTEL_EXPORTER_OTLP_"+name, value)
		if _, err := newCollector("1"); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", variable, err, want)
		}
	}
}

// A collector that is away costs a warning.
func TestCollectorIsAway(t *testing.T) {
	for _, v := range variables {
		t.Setenv(v, "")
	}
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:1/v1/traces")
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "100")
	if log := asked(t, ""); !strings.Contains(log, `"level":"WARN","msg":"traces","cause":"`) &&
		!strings.Contains(log, "the last traces were not exported") {
		t.Errorf("no warning:\n%s", log)
	}
}

// The service measures appends to its log, and shows the epoch of their writer.
func TestLogIsMeasured(t *testing.T) {
	whileServing(t, func(address string) {
		put, _ := http.NewRequest("PUT", "http://"+address+"/v1/placements/home",
			strings.NewReader(`{"max_size":1,"features":[{"name":"x","kind":"number"}]}`))
		if status, text := roundTrip(t, put); status != 201 {
			t.Errorf("%d %s", status, text)
		}
		get, _ := http.NewRequest("GET", "http://"+address+"/metrics", nil)
		_, text := roundTrip(t, get)
		for _, want := range []string{"\nvitrine_log_append_seconds_count 1\n", "\nvitrine_snapshot_age_seconds "} {
			expect.Contains(t, text, want, "/metrics")
		}
	})
}

// get asks for a path and accepts any answer.
func (r *running) get(path string) (status int, text string) {
	q, _ := http.NewRequest("GET", r.url+path, nil)
	return roundTrip(r, q)
}
