package config

import (
	"context"
	"log/slog"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/output"
	"partnerapi/cmd/internal/telemetry"
)

// StartTelemetry opens the log of a process, and its traces, which
// are nil unless the variables OTEL_… ask for them. flush exports the last of those,
// within a bound.
func (f WorkFlags) StartTelemetry(
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

// Starting is s for the start of a process, whose error stream has a line for each step:
// as it is, or as lines of the log where that is JSON, so that every line can be parsed.
func (f WorkFlags) Starting(s cli.Env, log *slog.Logger) cli.Env {
	if f.LogFormat == "json" {
		s.Err = slog.NewLogLogger(log.Handler(), slog.LevelInfo).Writer()
	}
	return s
}
