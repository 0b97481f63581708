package server_test

import (
	"fmt"
	"strings"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"vitrine/internal/expect"
	"vitrine/service/engine"
	"vitrine/service/server"
)

const (
	callersTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	callersSpan  = "00f067aa0ba902b7"
	traceparent  = "00-" + callersTrace + "-" + callersSpan + "-01"
)

// Without a tracer the caller's trace appears in the answer and in the log, if it is in the standard's form.
func TestTraceWithoutATracer(t *testing.T) {
	s := started(t, nil)
	a := s.want(404, "GET", "/v1/placements/home", "", "Traceparent", traceparent)
	expect.Equal(t, a.header.Get("Traceparent"), traceparent, "Traceparent")
	if want := `"trace_id":"` + callersTrace + `","span_id":"` + callersSpan +
		`"`; !strings.Contains(s.log.String(), want) {
		t.Errorf("the log has no %s:\n%s", want, s.log)
	}
	for _, bad := range []string{"", "00", "00-" + strings.Repeat("0", 32) + "-" + callersSpan + "-01",
		"ff-" + callersTrace + "-" + callersSpan + "-01", strings.ToUpper(traceparent), traceparent + "-x",
		"vitrine_token"} {
		s := started(t, nil)
		if got := s.ask("GET", "/v1/placements", "", "Traceparent", bad).header.Get("Traceparent"); got != "" ||
			strings.Contains(s.log.String(), "trace_id") {
			t.Errorf("%q: Traceparent %q\n%s", bad, got, s.log)
		}
	}
}

// With a tracer a request is a span of the caller's trace, except for probes, pages and streams.
func TestSpans(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder))
	s := started(t, func(o *server.Options, _ *engine.Options) { o.Tracer = provider.Tracer("test") })
	a := s.want(201, "PUT", "/v1/placements/home", home, "Traceparent", traceparent, "Tracestate", "shop=1",
		"X-Request-Id", "abc")
	s.want(404, "GET", "/v1/placements/none", "")
	s.want(405, "POST", "/v1/placements", "")
	for _, path := range []string{"/healthz", "/readyz", "/docs", "/"} {
		s.want(200, "GET", path, "")
	}
	spans := recorder.Ended()
	if len(spans) != 2 {
		t.Fatalf("%d spans: %v", len(spans), spans)
	}
	first := spans[0]
	if got := fmt.Sprint(first.SpanContext().TraceID(), first.Parent().SpanID(), first.Parent().IsRemote(),
		first.SpanContext().TraceState()); got != callersTrace+" "+callersSpan+" true shop=1" {
		t.Errorf("a span of %s", got)
	}
	if want := fmt.Sprintf("00-%s-%s-01", callersTrace, first.SpanContext().SpanID()); a.header.Get(
		"Traceparent") != want {
		t.Errorf("Traceparent: %q, want %q", a.header.Get("Traceparent"), want)
	}
	if want := fmt.Sprintf(`"span_id":"%s"`, first.SpanContext().SpanID()); !strings.Contains(s.log.String(), want) {
		t.Errorf("the log has no %s:\n%s", want, s.log)
	}
	for i, want := range []string{
		"server PUT /v1/placements/{name} [http.request.method=PUT http.route=/v1/placements/{name} " +
			"vitrine.request_id=abc http.response.status_code=201] Unset",
		"server GET /v1/placements/{name} [http.request.method=GET http.route=/v1/placements/{name} " +
			"vitrine.request_id=ID http.response.status_code=404 error.type=not-found] Unset",
	} {
		var attributes []string
		for _, a := range spans[i].Attributes() {
			attributes = append(attributes, fmt.Sprintf("%s=%s", a.Key, a.Value.String()))
		}
		got := fmt.Sprintf("%s %s %s %s", spans[i].SpanKind(), spans[i].Name(), attributes, spans[i].Status().Code)
		if i == 1 {
			got = got[:strings.Index(got, "request_id=")] + "request_id=ID" + got[strings.Index(got, " http.response"):]
		}
		expect.Equal(t, got, want)
	}
	if spans[1].Parent().IsValid() {
		t.Errorf("a request without a trace has the parent %v", spans[1].Parent())
	}
	s.engine.Close()
	s.want(503, "POST", "/v1/placements/home/decisions", `{`+items+`}`)
	if spans := recorder.Ended(); spans[len(spans)-1].Status().Code.String() != "Error" {
		t.Errorf("a 503 is no error: %v", spans[len(spans)-1].Status())
	}
}
