package server

import (
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"vitrine/service/alert"
	"vitrine/service/engine"
	"vitrine/service/keys"
	"vitrine/service/metrics"
)

// requestMetrics is a server's registry of Prometheus metrics. A series of requests begins with the first request of its
// labels.
type requestMetrics struct {
	registry *prometheus.Registry
	latency  *prometheus.HistogramVec
	requests *prometheus.CounterVec
	refusals *prometheus.CounterVec
	refused  *prometheus.CounterVec
	page     http.Handler
}

func newMetrics(o Options, inProgress func() int, problems func() []alert.Problem) *requestMetrics {
	m := &requestMetrics{
		registry: prometheus.NewRegistry(),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "vitrine_request_seconds", Help: "Time from a request's header to the end of its answer, " +
				"without probes, pages and streams.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 5},
		}, []string{"method", "route"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vitrine_requests_total", Help: "Requests answered, by the class of their status.",
		}, []string{"method", "route", "status"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vitrine_refusals_total", Help: "Requests answered with a problem, by its kind.",
		}, []string{"cause"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vitrine_decisions_refused_total", Help: "Requests for decisions that their callers must mend, with a 4xx " +
				"status other than 409 and 429, by placement: empty if there is no such placement, or no key.",
		}, []string{"placement"}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "vitrine_build_info", Help: "1; the labels say what this program is.",
		ConstLabels: prometheus.Labels{"version": o.Version, "goversion": runtime.Version()},
	})
	build.Set(1)
	m.registry.MustRegister(m.latency, m.requests, m.refusals, m.refused, build,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "vitrine_requests_in_progress",
			Help: "Requests in progress, without probes, pages, streams, and requests whose bodies are on their way."},
			func() float64 { return float64(inProgress()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "vitrine_requests_limit", Help: "Requests that may be " +
			"in progress, [limits] concurrent."},
			func() float64 { return float64(o.Limits.Concurrent) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "vitrine_process_problems", Help: "Problems of the process: a " +
			"nearly full disk, a log that it cannot reach or could not take over, a certificate that expires soon, an unreadable file, " +
			"missing or damaged keys of shoppers, more shoppers than keys."},
			func() float64 { return float64(alert.NumBad(problems())) }),
		metrics.New(metrics.Sources{Engine: o.Engine, Log: o.Log, Appends: o.Appends, Alerts: o.Alerts, Budget: o.Budget,
			Reopened: o.Reopened, SnapshotAge: o.SnapshotAge, SnapshotEvery: o.SnapshotEvery, ClockSkew: o.ClockSkew, Leads: func() bool {
				return o.Engine.Role() == engine.Leader && (o.Unreached == nil || o.Unreached() <= maxUnreached)
			}}),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.page = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes})
	return m
}

// series holds the metrics of a route. The first request that needs one creates it.
type series struct {
	latency  func() prometheus.Observer   // nil for a route without a limit
	answered [6]func() prometheus.Counter // by the class of the status
	refusals *prometheus.CounterVec
	refused  *prometheus.CounterVec // of a route for decisions, else nil
}

func (m *requestMetrics) series(rt *route) *series {
	all := &series{refusals: m.refusals}
	for class := range all.answered {
		all.answered[class] = sync.OnceValue(func() prometheus.Counter {
			return m.requests.WithLabelValues(rt.method, rt.path, strconv.Itoa(class)+"xx")
		})
	}
	if rt.scope == keys.ScopeDecide {
		all.refused = m.refused
	}
	if rt.limited {
		all.latency = sync.OnceValue(func() prometheus.Observer {
			return m.latency.WithLabelValues(rt.method, rt.path)
		})
	}
	return all
}

// maxScrapes is the number of scrapes at a time; others get 503.
const maxScrapes = 8

// isRefusal reports whether a status says that the caller or the placement has to change: not by waiting, or while
// nobody listens.
func isRefusal(status int) bool {
	switch status {
	case http.StatusConflict, http.StatusTooManyRequests, http.StatusRequestTimeout, statusGone:
		return false
	}
	return status/100 == 4
}

// observe counts an answered request.
func (s *series) observe(c *call, took time.Duration) {
	s.answered[c.w.status/100]().Inc()
	if s.latency != nil {
		s.latency().Observe(took.Seconds())
	}
	if c.problem != nil {
		s.refusals.WithLabelValues(c.problem.Kind()).Inc()
	}
	if s.refused != nil && isRefusal(c.w.status) {
		placement := c.placement
		if _, err := c.server.engine.Config(placement); err != nil || !c.mine(placement) { // or callers could name any number of series
			placement = ""
		}
		s.refused.WithLabelValues(placement).Inc()
	}
}

func (s *Server) serveMetrics(c *call) error {
	s.metrics.page.ServeHTTP(&c.w, c.WithContext(c.ctx))
	return nil
}
