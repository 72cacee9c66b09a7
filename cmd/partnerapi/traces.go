package main

import (
	"context"
	"io"
	"log/slog"

	"github.com/gin-gonic/gin"

	"partnerapi/cmd/internal/telemetry"
	"partnerapi/domain"
)

// watched opens what an operator watches a process by: its log, and its traces, which
// are nil unless the variables OTEL_… ask for them. flush exports the last of those,
// within a bound.
func (f workFlags) watched(
	ctx context.Context, logs io.Writer,
) (log *slog.Logger, traces *telemetry.Telemetry, flush func(), err error) {
	log = newLog(logs, f.LogLevel, f.LogFormat)
	if traces, err = telemetry.Start(ctx, version, log); err != nil || traces == nil {
		return log, nil, func() {}, err
	}
	return traces.Log(log), traces, func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), telemetry.FlushWithin)
		defer cancel()
		traces.Shutdown(last, log)
	}, nil
}

// progress takes what the start tells, line by line: as it is, or as lines of the log
// where that is JSON and somebody reads every line.
func (f workFlags) progress(to io.Writer, log *slog.Logger) io.Writer {
	if f.LogFormat == "json" {
		return slog.NewLogLogger(log.Handler(), slog.LevelInfo).Writer()
	}
	return to
}

// traceRequests makes a span of every request but those that watch the service. The
// trace that a request belongs to is believed of trusted proxies.
func (c serveCmd) traceRequests(engine *gin.Engine, traces *telemetry.Telemetry) error {
	if traces == nil {
		return nil
	}
	trusted, err := domain.ParseNetworks(c.TrustedProxies)
	if err != nil {
		return err
	}
	engine.Use(traces.Requests(trusted, "/healthz", "/readyz", "/metrics"))
	return nil
}
