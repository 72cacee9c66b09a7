package ginop

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"partnerapi/domain"
)

// Metrics counts and times requests.
type Metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	keys     *prometheus.CounterVec
	refused  *prometheus.CounterVec
	partners *domain.Labels // of refused
	// moving counts writes rejected while their partner is moved to another cell; misdirected counts requests with
	// keys of other cells.
	moving, misdirected prometheus.Counter
}

const (
	// refusedPartners is how many partners have their own series; the others share one.
	refusedPartners = 1000
	// noPartner is the label of callers without a valid key.
	noPartner = "none"
)

// NewMetrics returns metrics that are registered with r.
func NewMetrics(r prometheus.Registerer) *Metrics {
	factory := promauto.With(r)
	m := &Metrics{
		requests: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "partnerapi_requests_total", Help: "Requests by version, operation and status.",
		}, []string{"version", "operation", "status"}),
		seconds: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name: "partnerapi_request_seconds", Help: "Duration of requests.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"version", "operation"}),
		keys: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "partnerapi_key_requests_total", Help: "Requests by version and key, to see who still uses the old version.",
		}, []string{"version", "key"}),
		refused: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "partnerapi_refusals_total", Help: "Requests that returned 429, by the key's partner.",
		}, []string{"partner"}),
		partners: domain.NewLabels(refusedPartners),
		moving: factory.NewCounter(prometheus.CounterOpts{
			Name: "partnerapi_move_refused_writes_total",
			Help: "Writes that returned 503 because their partner was moving to another cell.",
		}),
		misdirected: factory.NewCounter(prometheus.CounterOpts{
			Name: "partnerapi_misdirected_total", Help: "Requests that returned 421 because their key belongs to another cell.",
		}),
	}
	m.refused.WithLabelValues(noPartner) // creates the series, with 0
	return m
}

// observe counts and times an answered request. It also counts a 429 by the caller's partner, a 421, and a write that
// was rejected during a move (ErrMoving). The caller is the zero one if the key is invalid. A nil m counts nothing.
func (m *Metrics) observe(version, operation string, status int, took time.Duration, caller *domain.Caller, err error) {
	if m == nil {
		return
	}
	m.requests.WithLabelValues(version, operation, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(version, operation).Observe(took.Seconds())
	if caller.Prefix != "" {
		m.keys.WithLabelValues(version, caller.Prefix).Inc()
	}
	switch {
	case status == http.StatusTooManyRequests:
		label := noPartner
		if caller.Prefix != "" {
			label = m.partners.Of(caller.Partner.String())
		}
		m.refused.WithLabelValues(label).Inc()
	case status == http.StatusMisdirectedRequest:
		m.misdirected.Inc()
	case errors.Is(err, domain.ErrMoving):
		m.moving.Inc()
	}
}
