package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/config"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/figures"
	"partnerapi/cmd/internal/gc"
	"partnerapi/cmd/internal/telemetry"
	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/phishing"
	"partnerapi/platform/report"
	"partnerapi/platform/site"
	v2 "partnerapi/v2"
	"partnerapi/v2/op/ginop"
)

type serveCmd struct{ config.ServeFlags }

// stopWithin is how long requests under way may take to finish after the
// service was told to stop.
const stopWithin = 30 * time.Second

// readWithin is how long a request may take to arrive; one that does not is
// answered 408. Answers have as long again, and more: the time to write them
// begins with the request's headers.
const readWithin = time.Minute

// connectionWaits are how long the server waits for those who call.
type connectionWaits struct {
	headers time.Duration // for a request's headers; then the connection is closed
	request time.Duration // for all of a request; then 408
	idle    time.Duration // for the next request; then the connection is closed
}

// waits are those of serve. Only a test has others.
var waits = connectionWaits{headers: 10 * time.Second, request: readWithin, idle: 2 * time.Minute}

// Run serves until ctx ends, and then finishes the requests under way.
func (c serveCmd) Run(ctx context.Context, s cli.Env) (err error) {
	gc.Relax()
	// The port is taken first: a second service on the same address says so at
	// once, and does not touch the data.
	listener, err := config.Listen("--listen", c.Listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	c.Listen = listener.Addr().String() // with the port, where any was asked for
	metrics, err := c.listenMetrics()
	if err != nil {
		return err
	}
	if metrics != nil {
		defer metrics.Close()
	}
	log, traces, flush, err := c.StartTelemetry(ctx, s)
	if err != nil {
		return err
	}
	defer flush()
	use := database.Lasting{Log: log, Connections: c.Connections, Tracer: traces.Statements(), Migrate: !c.NoMigrate}
	d, shut, err := c.OpenLasting(ctx, c.Starting(s, log), use)
	if err != nil {
		return err
	}
	defer database.Closing(shut, &err)
	if err := c.FixCell(ctx, d); err != nil {
		return err
	}
	if err := c.CheckConnections(ctx, d, log, !c.NoWork); err != nil {
		return err
	}
	demo, err := c.fill(ctx, d)
	if err != nil {
		return err
	}
	r, err := openResources(ctx, d, c.WorkFlags, c.Flags, log)
	if err != nil {
		return err
	}
	defer r.close()
	if err := c.makeDemoReports(ctx, d, r, log); err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	address := cmp.Or(strings.TrimRight(c.PublicURL, "/"), cli.ReachedAt(listener.Addr().String()))
	service, err := c.assemble(running, d, address, r, log, traces)
	if err != nil {
		return err
	}
	if err := greet(ctx, s.Out, service, address, demo); err != nil {
		return err
	}
	defer database.Closing(service.serveMetrics(metrics), &err)
	return service.run(running, stop, listener)
}

// assemble builds the service, with the background work where it is to do that.
func (c serveCmd) assemble(
	ctx context.Context, d *db.DB, address string, r resources, log *slog.Logger, traces *telemetry.Telemetry,
) (*service, error) {
	s, err := c.build(ctx, d, address, r, log, traces)
	if err != nil || c.NoWork {
		return s, err
	}
	if s.work, err = newBackground(ctx, d, address, c.WorkFlags, c.DataDir, r, log, traces); err != nil {
		return nil, err
	}
	s.work.register(s.metrics)
	return s, nil
}

// Validate refuses flags that no service could run with, as part of the
// command line.
func (c serveCmd) Validate() error { return c.Check() }

// build wires the service at an address.
func (c serveCmd) build(
	ctx context.Context, d *db.DB, address string, r resources, log *slog.Logger, traces *telemetry.Telemetry,
) (*service, error) {
	secret, err := d.CursorSecret(ctx)
	if err != nil {
		return nil, err
	}
	reportSecret, err := d.ReportSecret(ctx)
	if err != nil {
		return nil, err
	}
	c.PublicURL = strings.TrimRight(c.PublicURL, "/")
	links := report.NewLinks(reportSecret, address, d.Now)
	s := &service{config: c, db: d, clock: domain.SystemClock{}, after: time.After, log: log}
	s.documents = &site.Documents{PublicURL: c.PublicURL, Address: address, Now: s.clock.Now}
	if s.cells, err = otherCells(ctx, d, c.PublicURL); err != nil {
		return nil, err
	}
	options := []v2.Option{v2.WithReportLinks(links.To), withWebhooks(r)}
	if s.cells != nil {
		options = append(options, v2.WithCursorSecrets(s.cells.CursorSecrets))
	}
	s.api = v2.New(d, secret, options...)
	s.api.Set.Trace = traces.Calls()
	sources, err := figures.SourcesOf(ctx, d)
	if err != nil {
		return nil, err
	}
	s.metrics = figures.NewRegistry(version, sources)
	s.watchDisks(c.Flags, c.StoreFlag)
	if err := s.openEdge(ctx, r, traces); err != nil {
		return nil, err
	}
	if err := c.traceRequests(s.engine, traces); err != nil {
		return nil, err
	}
	surface := s.edge.Mount(s.engine, &s.api.Set, c.Release)
	if err := openDocuments(surface, s.api, c.Release, s.documents); err != nil {
		return nil, err
	}
	if err := s.mountMCP(address, secret); err != nil {
		return nil, err
	}
	for _, e := range extensions {
		if err := e.Mount(ctx, s.host()); err != nil {
			return nil, err
		}
	}
	if err := s.trackSimulations(ctx); err != nil {
		return nil, err
	}
	report.NewDownloads(d, links, r.store, s.log).Mount(s.engine)
	if err := s.showPages(); err != nil {
		return nil, err
	}
	s.health()
	s.showMetrics()
	return s, nil
}

// otherCells is what a process knows of other cells, nil where there are none. They are
// told where this one's links begin.
func otherCells(ctx context.Context, d *db.DB, publicURL string) (*db.Cells, error) {
	cells, err := d.OtherCells(ctx)
	if err != nil || cells == nil {
		return nil, err
	}
	return cells, d.ShowCell(ctx, publicURL)
}

// openEdge makes what every request passes, and the engine.
func (s *service) openEdge(ctx context.Context, r resources, traces *telemetry.Telemetry) (err error) {
	c, d := s.config, s.db
	var budgets ginop.Store
	if c.RedisURL != "" {
		if s.redis, err = openRedis(ctx, c.RedisURL); err != nil {
			return err
		}
		newRedisMetrics(s.redis, s.metrics)
		budgets = redisBudgets{s.redis, s.clock}
	}
	keys := ginop.NewKeys(d.CallerByDigest, s.clock, c.Demo)
	if s.cells != nil {
		keys.Elsewhere, keys.Left = s.cells.Elsewhere, s.cells.Left
	}
	s.edge = ginop.NewEdge(ginop.Config{
		Keys: keys, Limits: ginop.DefaultLimits, Shared: budgets,
		Once: d.Once, Reserve: d.Reserve, Finish: d.Finish, Secrets: sealer(r.keys), Reach: d.Reach, Audit: d.Audit, InTx: d.Tx, Log: s.log,
		Metrics: ginop.NewMetrics(s.metrics), Tracing: traces.Operations(),
	})
	s.engine, err = s.edge.Engine(c.TrustedProxies)
	return err
}

// trackSimulations adds the pages that the links of simulated mails lead to.
func (s *service) trackSimulations(ctx context.Context) error {
	networks, err := phishing.ParseNetworks(s.config.ScannerNets)
	if err != nil {
		return err
	}
	secret, err := s.db.TrackingSecret(ctx)
	if err != nil {
		return err
	}
	tokens := phishing.NewTokens(secret)
	if s.cells != nil {
		tokens = tokens.Accept(s.cells.TrackingSecrets)
	}
	pages := phishing.NewPages(s.db, tokens, networks, s.log)
	if s.cells != nil {
		pages.Forward(s.cells.LinksOf)
	}
	pages.Mount(s.engine)
	return nil
}

// run answers requests, and does the background work, until ctx ends or one of
// them fails, which stop then tells the rest.
func (s *service) run(ctx context.Context, stop context.CancelFunc, listener net.Listener) error {
	server := &http.Server{
		Handler: ginop.Compress(s.engine), ReadHeaderTimeout: waits.headers, ReadTimeout: waits.request,
		WriteTimeout: 2 * waits.request, IdleTimeout: waits.idle,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	s.beside(ctx, "record the use of keys", s.recordUses)
	if s.cells != nil {
		s.beside(ctx, "follow the moves of partners", func(ctx context.Context) { s.cells.Watch(ctx, s.log) })
	}
	failed, worked := make(chan error, 1), make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	go func() { worked <- s.runWork(ctx) }()
	var err error
	select {
	case err = <-failed:
		err = fmt.Errorf("serve: %w", err)
	case err = <-worked: // it ends before ctx only where it fails
		worked <- nil
	case <-ctx.Done():
		s.drain()
	}
	s.log.Info("stopping: finishing the requests under way")
	stop()
	finish, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	err = errors.Join(err, server.Shutdown(finish), <-worked)
	s.group.Wait()
	for _, end := range append([]func(context.Context){s.recordUse}, s.atEnd...) {
		last, done := context.WithTimeout(context.WithoutCancel(ctx), recordWithin)
		end(last)
		done()
	}
	if s.redis != nil {
		err = errors.Join(err, s.redis.Close())
	}
	return err
}

// drain tells balancers that the service stops, and gives them time to send
// their requests elsewhere.
func (s *service) drain() {
	s.stopping.Store(true)
	if s.config.Drain > 0 {
		s.log.Info("stopping: not ready any more, requests are taken for a while", "drain", s.config.Drain)
		<-s.after(s.config.Drain)
	}
}

// runWork does the background work, where this process is to do it.
func (s *service) runWork(ctx context.Context) error {
	if s.work == nil {
		<-ctx.Done()
		return nil
	}
	return s.work.run(ctx)
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
