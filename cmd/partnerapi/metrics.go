package main

import (
	"errors"
	"log/slog"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/config"
)

// listenMetrics takes the address of the metrics; nil where they have none of
// their own.
func (c serveCmd) listenMetrics() (net.Listener, error) {
	if c.MetricsListen == "" {
		return nil, nil
	}
	return config.Listen("--metrics-listen", c.MetricsListen)
}

// showMetrics adds the metrics to the API, where they have no address of their
// own and nobody but this machine can reach the API: they name keys and tell
// how much each does.
func (s *service) showMetrics() {
	switch {
	case s.config.MetricsListen != "":
	case cli.OnLoopback(s.config.Listen):
		s.openToAll("/metrics", gin.WrapH(s.metricsHandler()))
	default:
		s.log.Info("metrics are off, as others can reach the API; give them an address with --metrics-listen")
	}
}

func (s *service) metricsHandler() http.Handler {
	return promhttp.HandlerFor(s.metrics, promhttp.HandlerOpts{})
}

// serveMetrics answers at the address of the metrics until the returned
// function is called.
func (s *service) serveMetrics(listener net.Listener) (stop func() error) {
	if listener == nil {
		return func() error { return nil }
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.metricsHandler())
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: readWithin, ReadTimeout: readWithin, WriteTimeout: readWithin,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	s.log.Info("metrics have an address of their own", "address", listener.Addr().String())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.log.Warn("the metrics cannot be served any more", "error", err)
		}
	}()
	return func() error {
		err := server.Close()
		<-ended
		return err
	}
}
