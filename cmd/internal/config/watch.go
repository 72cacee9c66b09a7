package config

import (
	"context"
	"log/slog"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/output"
	"partnerapi/cmd/internal/telemetry"
)

// Watched opens what an operator watches a process by: its log, and its traces, which
// are nil unless the variables OTEL_… ask for them. flush exports the last of those,
// within a bound.
func (f WorkFlags) Watched(
	ctx context.Context, s cli.Env,
) (log *slog.Logger, traces *telemetry.Telemetry, flush func(), err error) {
	log = output.NewLog(s.Err, f.LogLevel, f.LogFormat)
	if traces, err = telemetry.Start(ctx, s.Version, log); err != nil || traces == nil {
		return log, nil, func() {}, err
	}
	return traces.Log(log), traces, func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), telemetry.FlushWithin)
		defer cancel()
		traces.Shutdown(last, log)
	}, nil
}

// Starting is s for the start of a process, of which its error stream tells line by line:
// as it is, or as lines of the log where that is JSON and somebody reads every line.
func (f WorkFlags) Starting(s cli.Env, log *slog.Logger) cli.Env {
	if f.LogFormat == "json" {
		s.Err = slog.NewLogLogger(log.Handler(), slog.LevelInfo).Writer()
	}
	return s
}
