package host

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// tracer returns a tracer that exports spans over OTLP if the standard variables of OpenTelemetry ask for it
// (OTEL_TRACES_EXPORTER=otlp, or an endpoint in OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT;
// newCollector and the library read the rest), and otherwise nil. stop exports the last spans. Wrong variables only
// cause a warning, because the service can decide without traces.
func tracer(ctx context.Context, version string, logger *slog.Logger) (t trace.Tracer, stop func()) {
	if !asksForTraces() {
		return nil, func() {}
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { logger.Warn("traces", "cause", err.Error()) }))
	otel.SetLogger(logr.FromSlogHandler(logger.Handler()))
	to, err := newCollector(version)
	if err != nil {
		logger.Warn("traces are not exported", "cause", err.Error())
		return nil, func() {}
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(semconv.ServiceName("vitrine"),
		semconv.ServiceVersion(version)), resource.WithFromEnv())
	if err != nil {
		logger.Warn("traces lack attributes of their resource", "cause", err.Error())
	}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(otlptrace.NewUnstarted(to)), sdk.WithResource(about))
	return provider.Tracer("vitrine"), func() {
		ctx, cancel := context.WithTimeout(context.Background(), lastTraces)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			logger.Warn("the last traces were not exported", "cause", err.Error())
		}
	}
}

// lastTraces is the time for the last export.
const lastTraces = 5 * time.Second

// asksForTraces reports whether the environment asks for traces.
func asksForTraces() bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false
	}
	switch os.Getenv("OTEL_TRACES_EXPORTER") {
	case "otlp":
		return true
	case "":
		return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
	}
	return false
}
