package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"

	"github.com/gin-gonic/gin"
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

// uncounted are limits under which every request is counted and none refused.
var uncounted = ginop.Limits{PerKey: 1e12, PerAddress: 1e12, PerClientFactor: 1e9}

// older is a version of the interface before v2, where there is one.
var older struct {
	migrate  func(context.Context, *db.DB) error
	mount    func(context.Context, *db.DB, *v2.API, *ginop.Edge, *gin.Engine, *slog.Logger) error
	measures func(*bench) []measure
	large    func(*sizes) []measure
}

// newService is the service as the command serve wires it, but for the limits:
// keys, budgets, headers, metrics, agents, and a log at level info, into nothing.
func newService(ctx context.Context, p params) http.Handler { return openService(ctx, p) }

// newSilentService is the service, whose writes write no events.
func newSilentService(ctx context.Context, p params) http.Handler {
	return openService(ctx, p, db.WithoutEvents())
}

func openService(ctx context.Context, p params, options ...db.Option) http.Handler {
	cli.RelaxGC()
	d := must(db.Open(p.URL, options...))
	secret := must(d.CursorSecret(ctx))
	core := v2.New(d, secret)
	log := slog.New(slog.NewTextHandler(justNothing{io.Discard}, &slog.HandlerOptions{Level: slog.LevelInfo}))
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	edge := ginop.NewEdge(ginop.Config{
		Keys: ginop.NewKeys(d.CallerByDigest, domain.SystemClock{}, false), Limits: uncounted,
		Once: d.Once, Reserve: d.Reserve, Finish: d.Finish, Log: log, Metrics: ginop.NewMetrics(metrics),
	})
	engine := must(edge.Engine(nil))
	edge.Mount(engine, &core.Set, op.Latest)
	mountAgents(edge, engine, secret, log)
	if older.mount != nil {
		check(older.mount(ctx, d, core, edge, engine, log))
	}
	return engine
}

// mountAgents adds the MCP server.
func mountAgents(edge *ginop.Edge, engine *gin.Engine, secret []byte, log *slog.Logger) {
	document := must(openapi.ForRelease(api.Interface, op.Latest))
	server := must(mcp.New(mcp.Config{
		Operations: api.Operations, Release: op.Latest, Document: document, Prefix: "/v2", Handler: engine, Secret: secret,
		Count: edge.Count, CountMessage: edge.CountMessage, Parse: edge.Parse, Envelope: edge.Envelope, Version: "bench", Log: log,
	}))
	edge.Protocol(engine, ginop.Protocol{Path: mcp.Path, Before: server.CheckOrigin, Serve: server.Serve, Fault: server.Fault})
}

// justNothing hides that its writer is io.Discard, for which a logger may skip
// the work of making the line.
type justNothing struct{ io.Writer }
