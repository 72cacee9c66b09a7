package ginop

import (
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"

	"partnerapi/domain"
)

// Metrics counts and times requests.
type Metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	keys     *prometheus.CounterVec
}

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
	r.MustRegister(m.requests, m.seconds, m.keys)
	return m
}

// observe logs and counts a request that has been answered.
func (e *Edge) observe(c *gin.Context, s *Surface, operation, id string, took time.Duration, err error) {
	status := c.Writer.Status()
	caller := domain.CallerFrom(c.Request.Context())
	if e.Metrics != nil {
		e.Metrics.requests.WithLabelValues(s.prefix[1:], operation, strconv.Itoa(status)).Inc()
		e.Metrics.seconds.WithLabelValues(s.prefix[1:], operation).Observe(took.Seconds())
		if caller.Prefix != "" {
			e.Metrics.keys.WithLabelValues(s.prefix[1:], caller.Prefix).Inc()
		}
	}
	level := slog.LevelInfo
	if status >= 500 {
		level = slog.LevelError
	}
	ctx := c.Request.Context()
	if !e.Log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("request_id", id), slog.String("method", c.Request.Method), slog.String("path", c.Request.URL.Path),
		slog.String("operation", operation), slog.Int("status", status), slog.Duration("took", took), slog.String("key", caller.Prefix),
	}
	var known *domain.Error
	switch {
	case err == nil:
	case !errors.As(err, &known):
		attrs = append(attrs, slog.String("error", err.Error()))
	case known.Cause != nil:
		attrs = append(attrs, slog.String("error", known.Error()))
	}
	e.Log.LogAttrs(ctx, level, "request", attrs...)
}
