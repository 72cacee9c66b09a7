package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"partnerapi/cmd/internal/gc"
	"partnerapi/cmd/internal/telemetry"
	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/phishing"
	"partnerapi/platform/report"
	v2 "partnerapi/v2"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
)

// serveFlags say how the API is served; doctor takes them too.
type serveFlags struct {
	databaseFlags
	workFlags
	Listen         string        `default:"${listen}" help:"The address to listen on."`
	MetricsListen  string        `name:"metrics-listen" placeholder:"ADDRESS" help:"A separate address for /metrics. Without it, /metrics is served with the API if that listens on a loopback address only, else not at all."`
	Drain          time.Duration `default:"0s" help:"How long requests are still taken after SIGTERM, while /readyz answers 503."`
	Release        op.Release    `default:"2.0" help:"The release of v2 to serve: 2.0, 2.1, 2.2, 2.3 or latest."`
	RedisURL       string        `name:"redis-url" placeholder:"URL" help:"A Redis in which replicas share budgets and checkpoints."`
	TrustedProxies []string      `name:"trusted-proxies" placeholder:"CIDR,…" help:"Proxies whose forwarded addresses are believed."`
	ScannerNets    []string      `name:"scanner-networks" placeholder:"CIDR,…" help:"Networks of mail scanners, whose opens and clicks of simulated mails do not count. Default: a small list."`
	MCPReadOnly    bool          `name:"mcp-read-only" help:"Show agents (/mcp) only the tools that read, and refuse the others."`
	NoWork         bool          `name:"no-work" help:"Leave background work to other processes (partnerapi work)."`
	NoMigrate      bool          `name:"no-migrate" help:"Change no tables, and refuse to serve while a migration is missing."`
	Demo           bool          `help:"Fill an empty database with a demonstration, and accept its keys."`
}

type serveCmd struct{ serveFlags }

// defaultListen is where the service listens by default.
const defaultListen = "127.0.0.1:8080"

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
func (c serveCmd) Run(ctx context.Context, s streams) (err error) {
	gc.Relax()
	// The port is taken first: a second service on the same address says so at
	// once, and does not touch the data.
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w (choose another with --listen)", c.Listen, err)
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
	log, traces, flush, err := c.watched(ctx, s.err)
	if err != nil {
		return err
	}
	defer flush()
	use := lasting{log: log, connections: c.Connections, tracer: traces.Statements(), migrate: !c.NoMigrate}
	d, shut, err := c.openLasting(ctx, c.progress(s.err, log), use)
	if err != nil {
		return err
	}
	defer closing(shut, &err)
	if err := c.checkConnections(ctx, d, log, !c.NoWork); err != nil {
		return err
	}
	demo, err := c.fill(ctx, d)
	if err != nil {
		return err
	}
	with, err := c.keep(ctx, d, c.databaseFlags, log)
	if err != nil {
		return err
	}
	defer with.close()
	if err := c.makeDemoReports(ctx, d, with, log); err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	address := cmp.Or(c.PublicURL, reachedAt(listener.Addr().String()))
	service, err := c.assemble(running, d, address, with, log, traces)
	if err != nil {
		return err
	}
	if err := greet(ctx, s.out, service, address, demo); err != nil {
		return err
	}
	defer closing(service.serveMetrics(metrics), &err)
	return service.run(running, stop, listener)
}

// assemble builds the service, with the background work where it is to do that.
func (c serveCmd) assemble(
	ctx context.Context, d *db.DB, address string, with kept, log *slog.Logger, traces *telemetry.Telemetry,
) (*service, error) {
	s, err := c.build(ctx, d, address, with, log, traces)
	if err != nil || c.NoWork {
		return s, err
	}
	if s.work, err = c.workFlags.open(ctx, d, address, c.databaseFlags, with, log, traces); err != nil {
		return nil, err
	}
	s.work.register(s.metrics)
	return s, nil
}

// Validate refuses flags that no service could run with, as part of the
// command line.
func (c serveCmd) Validate() error { return c.validate() }

func (c serveFlags) validate() error {
	if c.Drain < 0 {
		return fmt.Errorf("--drain: %v is below 0", c.Drain)
	}
	if _, err := domain.ParseNetworks(c.TrustedProxies); err != nil {
		return fmt.Errorf("--trusted-proxies: %w", err)
	}
	if _, err := phishing.ParseNetworks(c.ScannerNets); err != nil {
		return fmt.Errorf("--scanner-networks: %w", err)
	}
	return c.workFlags.validate()
}

// build wires the service at an address.
func (c serveCmd) build(
	ctx context.Context, d *db.DB, address string, with kept, log *slog.Logger, traces *telemetry.Telemetry,
) (*service, error) {
	secret, err := d.CursorSecret(ctx)
	if err != nil {
		return nil, err
	}
	reportSecret, err := d.ReportSecret(ctx)
	if err != nil {
		return nil, err
	}
	links := report.NewLinks(reportSecret, address, d.Now)
	s := &service{config: c, db: d, clock: domain.SystemClock{}, after: time.After, log: log}
	s.api = v2.New(d, secret, v2.WithReportLinks(links.To), withWebhooks(with))
	s.api.Set.Trace = traces.Calls()
	s.metrics = newRegistry(sourcesOf(d))
	s.watchDisks(c.databaseFlags, c.reportStoreFlag)
	var budgets ginop.Store
	if c.RedisURL != "" {
		if s.redis, err = openRedis(ctx, c.RedisURL); err != nil {
			return nil, err
		}
		newRedisMetrics(s.redis, s.metrics)
		budgets = redisBudgets{s.redis, s.clock}
	}
	s.edge = ginop.NewEdge(ginop.Config{
		Keys: ginop.NewKeys(d.CallerByDigest, s.clock, c.Demo), Limits: ginop.DefaultLimits, Shared: budgets,
		Once: d.Once, Reserve: d.Reserve, Finish: d.Finish, Secrets: sealer(with.keys), Reach: d.Reach, Audit: d.Audit, InTx: d.Tx, Log: s.log,
		Metrics: ginop.NewMetrics(s.metrics), Tracing: traces.Operations(),
	})
	if s.engine, err = s.edge.Engine(c.TrustedProxies); err != nil {
		return nil, err
	}
	if err := c.traceRequests(s.engine, traces); err != nil {
		return nil, err
	}
	surface := s.edge.Mount(s.engine, &s.api.Set, c.Release)
	if err := openDocuments(surface, s.api, c.Release); err != nil {
		return nil, err
	}
	if err := s.mountMCP(address, secret); err != nil {
		return nil, err
	}
	for _, e := range extensions {
		if err := e.mount(ctx, s); err != nil {
			return nil, err
		}
	}
	if err := s.trackSimulations(ctx); err != nil {
		return nil, err
	}
	report.NewDownloads(d, links, with.store, s.log).Mount(s.engine)
	if err := s.showPages(); err != nil {
		return nil, err
	}
	s.health()
	s.showMetrics()
	return s, nil
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
	phishing.NewPages(s.db, phishing.NewTokens(secret), networks, s.log).Mount(s.engine)
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
