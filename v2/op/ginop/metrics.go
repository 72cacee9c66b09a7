package ginop

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"partnerapi/domain"
)

// Metrics counts and times requests.
type Metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	keys     *prometheus.CounterVec
	refused  *prometheus.CounterVec
	partners *domain.Labels // of refused
}

const (
	// refusedPartners bounds how many partners have a series of their own; the others
	// share one.
	refusedPartners = 1000
	// noPartner is the label of callers without a valid key.
	noPartner = "none"
)

// NewMetrics registers the metrics of requests.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "partnerapi_requests_total", Help: "Requests by version, operation and status.",
		}, []string{"version", "operation", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "partnerapi_request_seconds", Help: "How long requests took.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"version", "operation"}),
		keys: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "partnerapi_key_requests_total", Help: "Requests by version and key: who still uses the old one.",
		}, []string{"version", "key"}),
	}
	m.refused = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "partnerapi_refusals_total", Help: "Requests answered 429, by the key's partner.",
	}, []string{"partner"})
	m.refused.WithLabelValues(noPartner) // 0 is shown too
	m.partners = domain.NewLabels(refusedPartners)
	r.MustRegister(m.requests, m.seconds, m.keys, m.refused)
	return m
}

// count counts a request that has been answered; key is the prefix of its key,
// empty where it had no valid one.
func (m *Metrics) count(version, operation string, status int, took time.Duration, key string) {
	if m == nil {
		return
	}
	m.requests.WithLabelValues(version, operation, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(version, operation).Observe(took.Seconds())
	if key != "" {
		m.keys.WithLabelValues(version, key).Inc()
	}
}

// refuse counts a request that was answered 429; the caller is the zero one where the
// request had no valid key.
func (m *Metrics) refuse(caller *domain.Caller) {
	if m == nil {
		return
	}
	label := noPartner
	if caller.Prefix != "" {
		label = m.partners.Of(caller.Partner.String())
	}
	m.refused.WithLabelValues(label).Inc()
}
