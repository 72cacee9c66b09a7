package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/ulule/limiter/v3"

	"partnerapi/db"
	"partnerapi/domain"
	v2 "partnerapi/v2"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
)

type serveCmd struct {
	databaseFlags
	Listen         string     `default:"127.0.0.1:8080" help:"The address to listen on."`
	Release        op.Release `default:"2.0" help:"The release of v2 to serve: 2.0, 2.1, 2.2, 2.3 or latest."`
	PublicURL      string     `name:"public-url" placeholder:"URL" help:"The address that callers know the service by, which the greeting names; the listen address unless told."`
	RedisURL       string     `name:"redis-url" placeholder:"URL" help:"A Redis that several replicas share budgets and checkpoints in."`
	TrustedProxies []string   `name:"trusted-proxies" placeholder:"CIDR,…" help:"Proxies whose forwarded addresses are believed."`
	NoWork         bool       `name:"no-work" help:"Leave the background work to other processes."`
	Demo           bool       `help:"Fill an empty database with a demonstration, and accept its keys."`
	LogLevel       slog.Level `name:"log-level" default:"info" help:"The least level that is logged: debug, info, warn or error."`
}

// tools are what the parts of a running service share.
type tools struct {
	log     *slog.Logger
	metrics *prometheus.Registry
}

// stopWithin is how long requests under way may take to finish after the
// service was told to stop.
const stopWithin = 30 * time.Second

// Run serves until ctx ends, and then finishes the requests under way.
func (c serveCmd) Run(ctx context.Context, s streams) (err error) {
	// The port is taken first: a second service on the same address says so at
	// once, and does not touch the data.
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w (choose another with --listen)", c.Listen, err)
	}
	defer listener.Close()
	d, shut, err := c.open(ctx, s.err)
	if err != nil {
		return err
	}
	defer closing(shut, &err)
	demo, err := c.fill(ctx, d, s.err)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	service, err := c.build(running, d, s.err)
	if err != nil {
		return err
	}
	if err := greet(ctx, s.out, service, cmp.Or(c.PublicURL, reachedAt(listener.Addr().String())), demo); err != nil {
		return err
	}
	return service.run(running, listener)
}

// Validate refuses flags that no service could run with, as part of the
// command line.
func (c serveCmd) Validate() error {
	for _, proxy := range c.TrustedProxies {
		if _, err := netip.ParsePrefix(proxy); err != nil {
			if _, err := netip.ParseAddr(proxy); err != nil {
				return fmt.Errorf("--trusted-proxies: %q is neither an address nor a CIDR such as 10.0.0.0/8", proxy)
			}
		}
	}
	if c.PublicURL != "" {
		if u, err := url.Parse(c.PublicURL); err != nil || u.Host == "" {
			return fmt.Errorf("--public-url: %q is not an absolute URL", c.PublicURL)
		}
	}
	return nil
}

// build wires the service.
func (c serveCmd) build(ctx context.Context, d *db.DB, logs io.Writer) (*service, error) {
	secret, err := d.CursorSecret(ctx)
	if err != nil {
		return nil, err
	}
	s := &service{config: c, db: d, api: v2.New(d, secret), clock: domain.SystemClock{}}
	s.log = newLog(logs, c.LogLevel)
	s.metrics = prometheus.NewRegistry()
	s.metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	var budgets limiter.Store
	if c.RedisURL != "" {
		if s.redis, budgets, err = openRedis(c.RedisURL, s.clock); err != nil {
			return nil, err
		}
	}
	s.edge = ginop.NewEdge(ginop.Config{
		Keys: ginop.NewKeys(d.CallerByDigest, s.clock, c.Demo), Limits: ginop.DefaultLimits, Shared: budgets,
		Once: d.Once, Log: s.log, Metrics: ginop.NewMetrics(s.metrics),
	})
	if s.engine, err = s.edge.Engine(c.TrustedProxies); err != nil {
		return nil, err
	}
	surface := s.edge.Mount(s.engine, &s.api.Set, c.Release)
	if err := openDocuments(surface, s.api, c.Release); err != nil {
		return nil, err
	}
	for _, e := range extensions {
		if err := e.mount(ctx, s); err != nil {
			return nil, err
		}
	}
	s.health()
	return s, nil
}

// run answers requests until ctx ends.
func (s *service) run(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler: s.engine, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	s.background(ctx)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	s.log.Info("stopping: finishing the requests under way")
	finish, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	err := server.Shutdown(finish)
	s.group.Wait()
	s.recordUse(finish)
	if s.redis != nil {
		err = errors.Join(err, s.redis.Close())
	}
	return err
}
