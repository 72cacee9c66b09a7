// Package v2test runs the service for tests: on the test's own database, behind a real HTTP server on a free port of
// the loopback interface. Every response is validated against the OpenAPI document. An older version of the interface
// adds its tables and its routes through options.
package v2test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/gin-gonic/gin"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/db/pg"
	"partnerapi/domain"
	"partnerapi/platform/seal"
	v2 "partnerapi/v2"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
	"partnerapi/v2/op/mcp"
	"partnerapi/v2/op/openapi"
	"partnerapi/v2/op/openapi/openapitest"
)

// Noon is the time of tests, unless they set the clock: the middle of a day, so that a few hours before or after are in
// the same day.
var Noon = worldtest.Noon

// ReportLink is the prefix of the links to reports' files, before the report's id.
const ReportLink = "https://reports.example/reports/"

// Harness is a running service.
type Harness struct {
	worldtest.Rows
	T      testing.TB
	DB     *db.DB
	API    *v2.API
	Edge   *ginop.Edge
	Engine *gin.Engine
	Clock  *domain.ManualClock
	URL    string
	// Statements counts the statements that the database was sent.
	Statements *worldtest.Statements
	// Receivers are the endpoints of subscriptions.
	Receivers *Receivers
	// Keys encrypt stored secrets; nil with Options.NoKey.
	Keys *seal.Keys

	transport http.RoundTripper
}

// Options configure a Harness. The zero Options mean the highest release, the limits of production, and only the routes
// of v2.
type Options struct {
	Release op.Release
	Limits  ginop.Limits
	Demo    bool
	// Schema is worldtest.Schema with the tables of an older version.
	Schema dbtest.Schema
	// Mount adds an older version's routes.
	Mount func(*Harness) error
	// MCP adds an MCP server, if the release has one. New sets the fields that depend on the service.
	MCP *mcp.Config
	// Wrap returns a transport that also validates an older version's responses.
	Wrap func(*Harness, http.RoundTripper) http.RoundTripper
	// Audit enables the audit trail.
	Audit bool
	// Keys encrypt stored secrets; nil means new keys. With NoKey the service has none.
	Keys  *seal.Keys
	NoKey bool
	// Log gets every line of the log; nil means that the test's output gets errors only.
	Log io.Writer
	// EdgeClock makes the edge go by Clock too: its budgets then stand still with it.
	EdgeClock bool
	// URL is the address of a database to use instead of a new one.
	URL string
	// Pooled puts a PgBouncer between the service and its database, with three connections that transactions share.
	Pooled bool
}

// New starts a service, which stops at the end of the test.
func New(t testing.TB, o Options) *Harness {
	t.Helper()
	o = o.withDefaults()
	h := &Harness{T: t, Clock: domain.NewManualClock(Noon), Statements: &worldtest.Statements{}}
	if o.URL == "" {
		o.URL = dbtest.URL(t, o.Schema)
	}

	d, err := o.open(t, db.WithClock(h.Clock), db.WithTracer(h.Statements), db.WithStrictLocks())
	if err != nil {
		t.Fatal(err)
	}
	h.DB, h.Rows = d, worldtest.RowsOf(t, d)
	t.Cleanup(func() { _ = d.Close() })
	secret, err := d.CursorSecret(t.Context())
	h.Must(err)
	edge := ginop.Config{
		Address: func(*http.Request) string { return openapi.ExampleAddress },
		Keys:    ginop.NewKeys(d.CallerByDigest, h.Clock, o.Demo), Limits: o.Limits, Once: d.Once, Reserve: d.Reserve, Finish: d.Finish,
		Log: h.logger(o.Log),
	}
	if o.EdgeClock {
		edge.Clock = h.Clock
	}
	h.API = v2.New(d, secret, v2.WithReportLinks(func(r domain.Report) string { return ReportLink + r.ID.String() }),
		v2.WithRelease(o.Release), h.webhooks(o, &edge))
	if o.Audit {
		edge.Audit, edge.InTx = d.Audit, d.Tx
	}

	h.Edge = ginop.NewEdge(edge)
	h.Engine, err = h.Edge.Engine(nil)
	h.Must(err)
	h.Edge.Mount(h.Engine, &h.API.Set, o.Release)
	if o.Mount != nil {
		h.Must(o.Mount(h))
	}
	if o.MCP != nil && o.Release >= mcp.Since {
		h.Must(h.mountMCP(*o.MCP, o.Release))
	}

	server := httptest.NewServer(h.Engine)
	t.Cleanup(server.Close)
	h.URL, h.transport = server.URL, server.Client().Transport
	documented := openapitest.Shared(t, "v2 "+o.Release.String(), func() (*openapi3.T, error) {
		return openapi.ForRelease(api.Interface, o.Release)
	})
	h.transport = documented.Wrap(t, h.transport)
	if o.Wrap != nil {
		h.transport = o.Wrap(h, h.transport)
	}
	return h
}

// mountMCP adds an MCP server for the release.
func (h *Harness) mountMCP(c mcp.Config, release op.Release) (err error) {
	if c.Document, err = openapi.ForRelease(api.Interface, release); err != nil {
		return err
	}
	c.Operations, c.Release, c.Prefix, c.Handler = api.Operations, release, "/v2", h.Engine
	c.Count, c.CountMessage, c.Parse, c.Envelope = h.Edge.Count, h.Edge.CountMessage, h.Edge.Parse, h.Edge.Envelope
	c.Log, c.Reach = h.logger(nil), h.DB.Reach
	server, err := mcp.New(c)
	if err != nil {
		return err
	}
	h.Edge.Protocol(h.Engine, ginop.Protocol{Path: mcp.Path, Before: server.CheckOrigin, Serve: server.Serve, Fault: server.Fault})
	return nil
}

// webhooks returns the option with h.Receivers as endpoints and, unless NoKey, with h.Keys, which it sets in edge too.
// At the end of the test, a fault of the Receivers fails it.
func (h *Harness) webhooks(o Options, edge *ginop.Config) v2.Option {
	h.Receivers = &Receivers{db: h.DB}
	h.T.Cleanup(func() {
		if err := h.Receivers.fault(); err != nil {
			h.T.Error(err)
		}
	})
	if o.NoKey {
		return v2.WithWebhooks(h.Receivers, nil)
	}
	if h.Keys = o.Keys; h.Keys == nil {
		var err error
		h.Keys, err = seal.ParseKeys(seal.NewKey())
		h.Must(err)
	}
	edge.Secrets = h.Keys
	return v2.WithWebhooks(h.Receivers, h.Keys)
}

func (o Options) withDefaults() Options {
	if o.Release == 0 {
		o.Release = op.Latest
	}
	if o.Limits == (ginop.Limits{}) {
		o.Limits = ginop.DefaultLimits
	}
	if o.Schema.Name == "" {
		o.Schema = worldtest.Schema
	}
	return o
}

// open opens the database, through a pooler if Pooled is set. It fails the test unless HasPooler finds that pooler.
func (o Options) open(t testing.TB, options ...db.Option) (*db.DB, error) {
	t.Helper()
	if !o.Pooled {
		return db.Open(o.URL, options...)
	}
	url := dbtest.PgBouncer(t, o.URL, "transaction", 3)
	if found, err := pg.HasPooler(t.Context(), url); err != nil || !found {
		t.Fatalf("no pooler is found; %v", err)
	}
	return db.Open(url, append(options, db.WithPooler(o.URL, false))...)
}

// Unlimited are limits above the requests of any test.
var Unlimited = ginop.Limits{PerKey: 1e9, PerAddress: 1e9, PerClientFactor: 1e6}

func (h *Harness) logger(to io.Writer) *slog.Logger {
	if to != nil {
		return slog.New(slog.NewTextHandler(to, nil))
	}
	return slog.New(slog.NewTextHandler(h.T.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
}

// AwaitOutage returns when no connection of the pool answers any more: processes of a killed server outlive it by a
// moment.
func (h *Harness) AwaitOutage() {
	h.T.Helper()
	for failed := 0; failed < 50; failed++ { // in a row
		if h.DB.Ping(h.T.Context()) == nil {
			failed = 0
		}
	}
}
