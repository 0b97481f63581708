package server

import (
	"cmp"
	"log/slog"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// beginTrace takes over the caller's trace (W3C Trace Context). With a tracer it begins a span of the request, except
// for probes and streams, the routes without a limit. The answer's Traceparent names that span, otherwise the caller's.
func (s *Server) beginTrace(c *call, rt *route) {
	ctx, carrier := c.ctx, propagation.HeaderCarrier(c.Header)
	if c.Header["Traceparent"] != nil {
		ctx = propagation.TraceContext{}.Extract(ctx, carrier)
	}
	if s.options.Tracer != nil && rt.limited {
		ctx, _ = s.options.Tracer.Start(ctx, cmp.Or(rt.method, "HTTP")+" "+rt.path,
			trace.WithSpanKind(trace.SpanKindServer),
			trace.WithAttributes(semconv.HTTPRequestMethodKey.String(rt.method), semconv.HTTPRoute(rt.path),
				attribute.String("vitrine.request_id", c.id)))
	}
	c.ctx = ctx
	if own := trace.SpanContextFromContext(ctx); own.IsValid() {
		propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(ctx, own.WithTraceState(trace.TraceState{})),
			propagation.HeaderCarrier(c.w.Header()))
	}
}

// endTrace ends the request's span, if any.
func (c *call) endTrace() {
	span := trace.SpanFromContext(c.ctx)
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(semconv.HTTPResponseStatusCode(c.w.status))
	if c.problem != nil {
		span.SetAttributes(semconv.ErrorTypeKey.String(c.problem.Kind()))
	}
	if c.w.status >= 500 {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// traceAttributes returns a request's trace for the log.
func (c *call) traceAttributes() []slog.Attr {
	own := trace.SpanContextFromContext(c.ctx)
	if !own.IsValid() {
		return nil
	}
	return []slog.Attr{slog.String("trace_id", own.TraceID().String()), slog.String("span_id", own.SpanID().String())}
}
