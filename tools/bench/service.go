package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"partnerapi/cmd/internal/cli"
	"partnerapi/db"
	"partnerapi/domain"
	v2 "partnerapi/v2"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
	"partnerapi/v2/op/mcp"
	"partnerapi/v2/op/openapi"
)

// uncounted are limits that count every request and reject none.
var uncounted = ginop.Limits{PerKey: 1e12, PerAddress: 1e12, PerClientFactor: 1e9}

// newService returns the service as the command serve wires it, except for the limits: keys, budgets, headers, metrics,
// MCP, and a log at level info that is discarded.
func newService(ctx context.Context, p params) http.Handler {
	cli.RelaxGC()
	d := must(db.Open(p.URL))
	secret := must(d.CursorSecret(ctx))
	core := v2.New(d, secret)
	log := discarded()
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	edge := ginop.NewEdge(ginop.Config{
		Keys: ginop.NewKeys(d.CallerByDigest, domain.SystemClock{}, false), Limits: uncounted,
		Once: d.Once, Reserve: d.Reserve, Finish: d.Finish, Log: log, Metrics: ginop.NewMetrics(metrics),
	})
	engine := must(edge.Engine(nil))
	edge.Mount(engine, &core.Set, op.Latest)
	server := must(mcp.New(mcp.Config{
		Operations: api.Operations, Release: op.Latest, Document: must(openapi.ForRelease(api.Interface, op.Latest)),
		Prefix: "/v2", Handler: engine, Secret: secret, Count: edge.Count, CountMessage: edge.CountMessage,
		Parse: edge.Parse, Envelope: edge.Envelope, Version: "bench", Log: log,
	}))
	edge.Protocol(engine, ginop.Protocol{Path: mcp.Path, Before: server.CheckOrigin, Serve: server.Serve, Fault: server.Fault})
	mountV1(ctx, d, core, edge, engine, log) // v1-line
	return engine
}

// discarded returns a log at level info that is discarded.
func discarded() *slog.Logger {
	return slog.New(slog.NewTextHandler(nowhere{io.Discard}, &slog.HandlerOptions{Level: slog.LevelInfo}))
}

// nowhere hides that its writer is io.Discard, for which a logger may omit the work of formatting.
type nowhere struct{ io.Writer }
