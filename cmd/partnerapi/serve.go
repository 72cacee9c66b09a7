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

	"github.com/alecthomas/kong"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/config"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/figures"
	"partnerapi/cmd/internal/telemetry"
	"partnerapi/db"
	"partnerapi/db/cells"
	"partnerapi/domain"
	"partnerapi/platform/lease"
	"partnerapi/platform/phishing"
	"partnerapi/platform/report"
	"partnerapi/platform/site"
	v2 "partnerapi/v2"
	"partnerapi/v2/op/ginop"
)

type serveCmd struct{ config.ServeFlags }

// stopWithin is how long requests in progress may take to finish when the service stops.
const stopWithin = 30 * time.Second

// readWithin is the timeout for reading a request, which is then answered 408. Responses have longer: their write
// timeout starts with the request's headers.
const readWithin = time.Minute

// connectionTimeouts are the timeouts of the server for its clients.
type connectionTimeouts struct {
	headers time.Duration // for a request's headers; then the connection is closed
	request time.Duration // for all of a request; then 408
	idle    time.Duration // for the next request; then the connection is closed
}

// timeouts are the timeouts of serve. Tests change them.
var timeouts = connectionTimeouts{headers: 10 * time.Second, request: readWithin, idle: 2 * time.Minute}

// Run opens the listeners, the database and the other resources, and serves until ctx ends. It then finishes the
// requests in progress.
func (c serveCmd) Run(ctx context.Context, s cli.Env, line *kong.Context) (err error) {
	cli.RelaxGC()
	// The port is taken first, so that a second service on the same address fails before it touches the data.
	listener, err := config.Listen("--listen", c.Listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	c.Listen = listener.Addr().String() // with the port that was chosen for port 0
	metrics, err := config.Listen("--metrics-listen", c.MetricsListen)
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
	if err := warnOfVariables(ctx, log, line.Model); err != nil {
		return err
	}
	options := database.ServeOptions{
		Log: log, Connections: c.Connections, Tracer: traces.Statements(), Migrate: !c.NoMigrate,
	}
	d, shut, err := c.OpenForServe(ctx, c.StartupEnv(s, log), options)
	if err != nil {
		return err
	}
	defer database.CloseInto(shut, &err)
	defer func() { err = database.ExplainDenied(d, err) }()
	if err := c.FixCell(ctx, d); err != nil {
		return err
	}
	if err := c.CheckConnections(ctx, d, log, !c.NoWork); err != nil {
		return err
	}
	demo, err := c.loadDemo(ctx, d)
	if err != nil {
		return err
	}
	if err := c.EndClockHold(ctx, d, log, "serve"); err != nil {
		return err
	}
	r, err := openResources(ctx, d, c.WorkFlags, c.Flags, log)
	if err != nil {
		return err
	}
	defer r.endpoints.Close() // idle connections
	if err := c.completeDemo(ctx, d, r, log); err != nil {
		return err
	}
	workCtx, stop := context.WithCancel(ctx)
	defer stop()
	address := cmp.Or(strings.TrimRight(c.PublicURL, "/"), cli.ListenURL(listener.Addr().String()))
	service, err := c.assemble(workCtx, d, address, r, log, traces)
	if err != nil {
		return err
	}
	if err := greet(ctx, s.Out, log, service, address, demo); err != nil {
		return err
	}
	defer database.CloseInto(service.serveMetrics(metrics), &err)
	return service.run(workCtx, stop, listener)
}

// assemble builds the service, with the background work unless that is disabled.
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
	s.metrics.MustRegister(s.work.metrics...)
	return s, nil
}

// Validate rejects invalid flags; kong calls it while parsing.
func (c serveCmd) Validate() error { return c.Check() }

// build wires the service, without background work, and mounts all of its paths. address is the URL that links begin
// with.
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
	s := &service{config: c, db: d, clock: d, after: time.After, log: log}
	s.documents = &site.Documents{PublicURL: c.PublicURL, Address: address, SupportURL: c.SupportURL, Clock: s.clock}
	if s.cells, err = otherCells(ctx, d, c.PublicURL); err != nil {
		return nil, err
	}
	options := []v2.Option{v2.WithReportLinks(links.To), v2.WithRelease(c.Release), v2.WithWebhooks(r.endpoints, sealerOf(r.keys))}
	if s.cells != nil {
		options = append(options, v2.WithCursorSecrets(s.cells.CursorSecrets))
	}
	s.api = v2.New(d, secret, options...)
	s.api.Set.Trace = traces.OperationTrace()
	sources, err := figures.SourcesOf(ctx, d)
	if err != nil {
		return nil, err
	}
	s.metrics = figures.NewRegistry(version, sources)
	s.registerDisks(c.Flags, c.StoreFlag)
	if err := s.openEdge(ctx, r, traces); err != nil {
		return nil, err
	}
	if err := d.RecordRelease(ctx, c.Release.String()); err != nil {
		return nil, err
	}
	surface := s.edge.Mount(s.engine, &s.api.Set, c.Release)
	if err := openDocuments(surface, c.Release, s.documents, c.Demo); err != nil {
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
	if err := s.mountTracking(ctx); err != nil {
		return nil, err
	}
	report.NewDownloads(d, links, r.store, s.log).Mount(s.engine)
	if err := s.mountPages(ctx); err != nil {
		return nil, err
	}
	if err := s.mountLearning(); err != nil {
		return nil, err
	}
	s.mountHealth()
	s.mountMetrics()
	return s, nil
}

// otherCells returns the other cells, and announces this cell's public address to them. It returns nil if there are no
// others.
func otherCells(ctx context.Context, d *db.DB, publicURL string) (*cells.Cells, error) {
	others, err := cells.Read(ctx, d)
	if err != nil || others == nil {
		return nil, err
	}
	return others, cells.SetPublicURL(ctx, d, publicURL)
}

// openEdge creates the edge, with budgets in Redis if there is one, and the engine. Unless traces is nil, all requests
// but those for health and metrics have spans.
func (s *service) openEdge(ctx context.Context, r resources, traces *telemetry.Telemetry) (err error) {
	c, d := s.config, s.db
	var budgets ginop.Store
	if c.RedisURL != "" {
		if s.redis, err = openRedis(ctx, c.RedisURL); err != nil {
			return err
		}
		newRedisMetrics(s.redis, s.metrics)
		budgets = redisBudgets{s.redis}
	}
	keys := ginop.NewKeys(d.CallerByDigest, s.clock, c.Demo) // with --demo, demonstration keys are accepted
	if s.cells != nil {
		keys.ForeignCell, keys.MovedAway = s.cells.Elsewhere, s.cells.Left
	}
	s.edge = ginop.NewEdge(ginop.Config{
		Keys: keys, Limits: ginop.DefaultLimits, Shared: budgets,
		Once: d.Once, Reserve: d.Reserve, Finish: d.Finish, Secrets: sealerOf(r.keys), Reach: d.Reach, Audit: d.Audit, InTx: d.Tx, Address: s.documents.BaseOf, Log: s.log,
		Metrics: ginop.NewMetrics(s.metrics), Tracing: traces.Operations(),
	})
	if s.engine, err = s.edge.Engine(c.TrustedProxies); err != nil || traces == nil {
		return err
	}
	trusted, err := domain.ParseNetworks(c.TrustedProxies) // whose trace contexts are accepted
	s.engine.Use(traces.Requests(trusted, "/healthz", "/readyz", "/metrics"))
	return err
}

// mountTracking adds the pages that the links of simulated phishing emails open. With other cells, it accepts links of
// cells from which partners came, and redirects links of partners that moved away.
func (s *service) mountTracking(ctx context.Context) error {
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

// run serves requests and does the background work until ctx ends or one of them fails. stop then stops the others:
// requests in progress are finished, within stopWithin, the last uses of keys are recorded, atEnd is called and Redis
// closed. run returns all errors.
func (s *service) run(ctx context.Context, stop context.CancelFunc, listener net.Listener) error {
	// A connection continues after a request with both Content-Length and Transfer-Encoding, against RFC 9112, 6.1, until
	// a Go that closes it (golang/go#80942).
	server := &http.Server{
		Handler: ginop.Compress(s.engine), ReadHeaderTimeout: timeouts.headers, ReadTimeout: timeouts.request,
		WriteTimeout: 2 * timeouts.request, IdleTimeout: timeouts.idle, // the time to write includes that to read the body
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	s.group.Go(func() {
		lease.NewLoop(s.log, "record the use of keys", useEvery, func(ctx context.Context) (time.Duration, error) {
			s.recordUse(ctx)
			return useEvery, nil
		}).Run(ctx)
	})
	if s.cells != nil {
		s.runInBackground(ctx, "follow the moves of partners", func(ctx context.Context) { s.cells.Watch(ctx, s.log) })
	}
	serveErr, workErr := make(chan error, 1), make(chan error, 1)
	go func() { serveErr <- server.Serve(listener) }()
	go func() { workErr <- s.runWork(ctx) }()
	var err error
	select {
	case err = <-serveErr:
		err = fmt.Errorf("serve: %w", err)
	case err = <-workErr: // before ctx ends, the work ends only if it fails
		workErr <- nil // for the receive below
	case <-ctx.Done():
		s.drain()
	}
	s.log.Info("stopping: finishing the requests in progress")
	stop()
	finish, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	err = errors.Join(err, server.Shutdown(finish), <-workErr)
	s.group.Wait()
	for _, end := range append([]func(context.Context){s.recordUse}, s.atEnd...) {
		endCtx, cancelEnd := context.WithTimeout(context.WithoutCancel(ctx), recordWithin)
		end(endCtx)
		cancelEnd()
	}
	if s.redis != nil {
		err = errors.Join(err, s.redis.Close())
	}
	return err
}

// drain makes the service report that it is not ready, and waits for --drain, so that load balancers stop sending
// requests.
func (s *service) drain() {
	s.stopping.Store(true)
	if s.config.Drain > 0 {
		s.log.Info("stopping: no longer ready but still serving new requests", "drain", s.config.Drain)
		<-s.after(s.config.Drain)
	}
}

// runWork does the background work until ctx ends. Without background work it only waits for ctx.
func (s *service) runWork(ctx context.Context) error {
	if s.work == nil {
		<-ctx.Done()
		return nil
	}
	return s.work.run(ctx)
}
