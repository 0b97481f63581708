package host

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"vitrine/internal/wait"
)

// collector sends spans to an OpenTelemetry collector: OTLP over HTTP with protocol buffers. The exporter's own client
// does the same, and brings gRPC along. Source: https://opentelemetry.io/docs/specs/otel/protocol/exporter/
type collector struct {
	url    string // with its password, if it has one
	header http.Header
	zips   bool
	client *http.Client
}

const (
	ofTraces  = "OTEL_EXPORTER_OTLP_TRACES_"
	ofSignals = "OTEL_EXPORTER_OTLP_"
)

// variable returns a variable of the exporter, and its full name. One for traces comes before one for all signals.
func variable(name string) (value, full string) {
	if v := os.Getenv(ofTraces + name); v != "" {
		return v, ofTraces + name
	}
	return os.Getenv(ofSignals + name), ofSignals + name
}

// newCollector returns the collector that the variables name.
func newCollector(version string) (*collector, error) {
	c := &collector{header: http.Header{"Content-Type": {"application/x-protobuf"},
		"User-Agent": {"vitrine/" + version}}}
	wrong := func(name, value, want string) (*collector, error) {
		return nil, fmt.Errorf("%s=%s: must be %s", name, value, want)
	}
	if p, name := variable("PROTOCOL"); p != "" && p != "http/protobuf" {
		return wrong(name, p, "http/protobuf, which most collectors take at port 4318")
	}
	address, name := variable("ENDPOINT")
	u, err := url.Parse(cmp.Or(address, "http://localhost:4318"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s: must be a URL such as http://collector:4318", name) // it may contain a password
	}
	if strings.HasPrefix(name, ofTraces) {
		u.Path = cmp.Or(u.Path, "/")
	} else {
		u = u.JoinPath("v1/traces")
	}
	c.url = u.String()
	if pairs, name := variable("HEADERS"); pairs != "" {
		for pair := range strings.SplitSeq(pairs, ",") {
			key, value, ok := strings.Cut(pair, "=")
			value, err := url.PathUnescape(strings.TrimSpace(value))
			if !ok || err != nil {
				return nil, fmt.Errorf("%s: must be a list such as name=value,other=value",
					name) // a value may be secret
			}
			c.header.Set(strings.TrimSpace(key), value)
		}
	}
	switch z, name := variable("COMPRESSION"); z {
	case "gzip":
		c.zips = true
		c.header.Set("Content-Encoding", "gzip")
	case "", "none":
	default:
		return wrong(name, z, "gzip or none")
	}
	limit, name := variable("TIMEOUT")
	ms, err := strconv.Atoi(cmp.Or(limit, "10000"))
	if err != nil || ms <= 0 {
		return wrong(name, limit, "a number of milliseconds")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	c.client = &http.Client{Timeout: time.Duration(ms) * time.Millisecond, Transport: transport}
	transport.TLSClientConfig, err = collectorTLS()
	return c, err
}

// collectorTLS returns the certificates that the variables name, nil for the system's.
func collectorTLS() (*tls.Config, error) {
	c := new(tls.Config)
	if path, name := variable("CERTIFICATE"); path != "" {
		pem, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s=%s: must be a file of certificates in PEM", name, path)
		}
	}
	certificate, name := variable("CLIENT_CERTIFICATE")
	if key, _ := variable("CLIENT_KEY"); certificate != "" && key != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	if c.RootCAs == nil && c.Certificates == nil {
		return nil, nil
	}
	return c, nil
}

// Start and Stop are there for the exporter only.
func (c *collector) Start(context.Context) error { return nil }
func (c *collector) Stop(context.Context) error  { return nil }

// firstPause is the time before a busy collector is asked again.
var firstPause = time.Second

// UploadTraces sends spans. While the collector is busy it asks again, with longer and longer pauses, until ctx ends.
func (c *collector) UploadTraces(ctx context.Context, spans []*traces.ResourceSpans) error {
	body, err := proto.Marshal(&traces.TracesData{ResourceSpans: spans}) // the bytes of an ExportTraceServiceRequest
	if err != nil {
		return err
	}
	if c.zips {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		if _, err := w.Write(body); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		body = b.Bytes()
	}
	for pause := firstPause; ; pause = min(2*pause, 30*time.Second) {
		asked, err := c.send(ctx, body)
		if !errors.Is(err, errCollectorBusy) || wait.For(ctx, max(pause, asked)) != nil {
			return err
		}
	}
}

var errCollectorBusy = errors.New("the collector is busy")

// send sends spans once. A busy collector may say how long to wait.
func (c *collector) send(ctx context.Context, body []byte) (wait time.Duration, err error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	q.Header = c.header
	r, err := c.client.Do(q)
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
	switch r.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(r.Header.Get("Retry-After"))
		return time.Duration(seconds) * time.Second, fmt.Errorf("%w: %s %s", errCollectorBusy, r.Status, text)
	case http.StatusOK:
		if len(text) > 0 && r.Header.Get(
			"Content-Type") == "application/x-protobuf" { // a partial success, whose message has a reason
			otel.Handle(fmt.Errorf("the collector did not take all spans: %q", text))
		}
		return 0, err
	}
	return 0, fmt.Errorf("%s: %s %s", q.URL.Redacted(), r.Status, text)
}
