package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"partnerapi/cmd/internal/telemetry"
	"partnerapi/db"
	"partnerapi/platform/directory"
	"partnerapi/platform/mail"
	"partnerapi/platform/phishing"
	"partnerapi/platform/report"
	"partnerapi/platform/webhook"
	v2 "partnerapi/v2"
)

// workFlags say how the background work reaches the world.
type workFlags struct {
	directoryFlags
	encryptionFlags
	reportStoreFlag
	reportFontFlag
	webhookFlags
	PublicURL string `name:"public-url" placeholder:"URL" help:"The address that callers reach the service at, with which links in mail begin. Default: the listen address."`
	SMTPURL   string `name:"smtp-url" placeholder:"URL" help:"The mail server, as smtp://user:password@host:port, or smtps://. Without it, mail goes to files in the folder outbox of --data-dir."`
	MailFrom  string `name:"mail-from" placeholder:"ADDRESS" help:"The sender of mail. Default: no-reply at the host of --public-url."`
	Workers   int    `default:"${workers}" help:"How many mails are under way at a time."`

	Connections int `default:"20" help:"How many connections to the database requests and background work may use. The process opens up to 9 more: for locks, readiness and metrics, and to be notified of mail, reports and changes of v1."`

	LogLevel  slog.Level `name:"log-level" default:"info" help:"The lowest level that is logged: debug, info, warn or error."`
	LogFormat string     `name:"log-format" enum:"text,json" default:"text" help:"The form of log lines: text or json."`
}

func (f workFlags) validate() error {
	if f.PublicURL != "" {
		if _, err := mail.PublicURL(f.PublicURL); err != nil {
			return fmt.Errorf("--public-url: %w", err)
		}
	}
	if _, err := mail.NewComposer(cmp.Or(f.PublicURL, "http://"+defaultListen), f.MailFrom); err != nil {
		return fmt.Errorf("--mail-from: %w", err)
	}
	if err := report.CheckStore(f.ReportStore); err != nil {
		return fmt.Errorf("--report-store: %w", err)
	}
	if f.SMTPURL != "" {
		if _, err := mail.NewSMTP(f.SMTPURL); err != nil { // which does not connect
			return fmt.Errorf("--smtp-url: %w", err)
		}
	}
	if f.Workers < 1 || f.Workers > 1000 {
		return fmt.Errorf("--workers: %d is not between 1 and 1000", f.Workers)
	}
	if f.Connections < minConnections || f.Connections > 1000 {
		return fmt.Errorf("--connections: %d is not between %d and 1000", f.Connections, minConnections)
	}
	if _, err := f.endpoints(nil); err != nil { // which does not connect
		return err
	}
	return errors.Join(f.validateEndpoints(), f.validateKey())
}

// background is the work that no request waits for.
type background struct {
	db     *db.DB
	sender mail.Sender
	mails  *mail.Dispatcher
	syncs  *directory.Runner
	events *webhook.Publisher
	tries  *prometheus.CounterVec // of mails, by kind and outcome
	server *mailWatch             // nil where mails become files
	// reports makes pending reports, counted by made; care does what is periodic of them.
	reports *report.Worker
	care    *report.Maintainer
	made    *reportMetrics
	synced  *syncMetrics
	// hooks delivers events, told of what by delivered, to endpoints.
	hooks     *webhook.Dispatcher
	delivered *deliveryMetrics
	log       *slog.Logger
	traces    *telemetry.Telemetry // nil where they are off
}

// register adds the metrics of the background work.
func (w *background) register(r prometheus.Registerer) {
	if w.server != nil {
		r.MustRegister(w.server.up)
	}
	r.MustRegister(w.tries, w.made.tries, w.made.seconds, w.synced.runs, w.synced.seconds)
	w.delivered.register(r)
}

// open wires the background work of a service at an address, on the database that
// other flags say. It keeps mail in the data directory.
func (f workFlags) open(
	ctx context.Context, d *db.DB, address string, at databaseFlags, with kept, log *slog.Logger,
	traces *telemetry.Telemetry,
) (*background, error) {
	if f.PublicURL != "" {
		address = f.PublicURL
	}
	composer, err := mail.NewComposer(address, f.MailFrom)
	if err != nil {
		return nil, err
	}
	sender, err := mail.Open(f.SMTPURL, filepath.Join(at.DataDir, "outbox"))
	if err != nil {
		return nil, err
	}
	secret, err := d.TrackingSecret(ctx)
	if err != nil {
		return nil, errors.Join(err, sender.Close())
	}
	tries := newMailTries()
	mails := mail.NewDispatcher(d, sender, f.Workers, map[db.OutboxKind]mail.Writer{
		db.RequestedMail: mail.NewRequests(d, composer, report.NewAttachments(d, with.store)),
		db.SimulatedMail: phishing.NewSimulations(d, phishing.NewComposer(address, phishing.NewTokens(secret))),
	}, log, func(kind db.OutboxKind, outcome mail.Outcome) {
		tries.WithLabelValues(string(kind), string(outcome)).Inc()
	}, mail.WithTrace(traces.Work()))
	made, synced, delivered := newReportMetrics(), newSyncMetrics(), newDeliveryMetrics()
	hooks := newDeliveries(d, with, log, delivered)
	return &background{
		events: webhook.NewPublisher(d, v2.New(d, nil).RenderEvents, log, webhook.PublisherEvents{Deliveries: hooks.Wake}),
		hooks:  hooks, delivered: delivered,
		db: d, sender: sender, server: newMailWatch(sender, log), mails: mails, tries: tries, made: made, synced: synced,
		reports: newReportWorker(d, with, log, made, traces.Work()),
		care:    report.NewMaintainer(d, with.store, log, traces.Work()),
		syncs: directory.NewRunner(d, with.keys, f.connector(traces), log,
			directory.WithTrace(traces.Work()), directory.WithWatcher(synced.count)),
		log: log, traces: traces,
	}, nil
}

// newMailTries counts tries to send a mail.
func newMailTries() *prometheus.CounterVec {
	tries := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "partnerapi_mail_tries_total",
		Help: "Tries to send a mail, by kind and outcome: sent, failed, retried, suppressed or lost.",
	}, []string{"kind", "outcome"})
	for _, kind := range []db.OutboxKind{db.RequestedMail, db.SimulatedMail} {
		for _, outcome := range []mail.Outcome{mail.Sent, mail.Failed, mail.Retried, mail.Suppressed, mail.Lost} {
			tries.WithLabelValues(string(kind), string(outcome)) // 0 is shown too
		}
	}
	return tries
}

// run works until ctx ends, and then finishes what is under way.
func (w *background) run(ctx context.Context) error {
	var all sync.WaitGroup
	for _, loop := range []func(context.Context){
		w.refreshDaily, w.refreshAhead, w.server.watch, w.assignWaiting, w.noteOverdue, w.events.Run, w.care.Run,
	} {
		all.Go(func() { loop(ctx) })
	}
	queues := []func(context.Context) error{w.mails.Run, w.hooks.Run, w.syncs.Run, w.reports.Run}
	late := make([]error, len(queues))
	for i, queue := range queues {
		all.Go(func() { late[i] = queue(ctx) })
	}
	all.Wait()
	return errors.Join(errors.Join(late...), w.sender.Close())
}

type workCmd struct {
	databaseFlags
	workFlags
	Listen string `env:"PARTNERAPI_WORK_LISTEN" placeholder:"ADDRESS" help:"The address of /healthz, /readyz and /metrics. Default: none."`
}

// Validate refuses flags that no work could be done with, as part of the
// command line. Where nothing listens, there is no address for links but the
// one that it is told.
func (c workCmd) Validate() error {
	if c.SMTPURL != "" && c.PublicURL == "" {
		return errors.New("--smtp-url needs --public-url beside it: links in mail begin with it, and nobody but this " +
			"machine could follow those to " + defaultListen)
	}
	return c.validate()
}

// Run works until ctx ends.
func (c workCmd) Run(ctx context.Context, s streams) (err error) {
	watched, err := c.listen()
	if err != nil {
		return err
	}
	if watched != nil {
		defer watched.Close()
	}
	log, traces, flush, err := c.watched(ctx, s.err)
	if err != nil {
		return err
	}
	defer flush()
	d, shut, err := c.openLasting(ctx, c.progress(s.err, log), lasting{
		log: log, connections: c.Connections, tracer: traces.Statements(),
	})
	if err != nil {
		return err
	}
	defer closing(shut, &err)
	if err := c.checkConnections(ctx, d, log, true); err != nil {
		return err
	}
	with, err := c.keep(ctx, d, c.databaseFlags, log)
	if err != nil {
		return err
	}
	defer with.close()
	w, err := c.workFlags.open(ctx, d, "http://"+defaultListen, c.databaseFlags, with, log, traces)
	if err != nil {
		return err
	}
	w.log.InfoContext(ctx, "background work begins", "workers", c.Workers)
	if watched == nil {
		return w.run(ctx)
	}
	server := c.watch(w, log)
	go func() { _ = server.Serve(watched) }() // until it is closed
	defer closing(server.Close, &err)
	log.InfoContext(ctx, "health and metrics are served", "address", watched.Addr().String())
	return w.run(ctx)
}

// listen takes the port of --listen; nil where there is none.
func (c workCmd) listen() (net.Listener, error) {
	if c.Listen == "" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w (choose another with --listen)", c.Listen, err)
	}
	return listener, nil
}

// watch serves what an operator watches of a process that serves no API.
func (c workCmd) watch(w *background, log *slog.Logger) *http.Server {
	gin.SetMode(gin.ReleaseMode)
	s := &service{db: w.db, engine: gin.New(), log: log, metrics: newRegistry(sourcesOf(w.db))}
	s.watchDisks(c.databaseFlags, c.reportStoreFlag)
	w.register(s.metrics)
	s.health()
	paths := http.NewServeMux()
	paths.Handle("/", s.engine)
	paths.Handle("/metrics", promhttp.HandlerFor(s.metrics, promhttp.HandlerOpts{}))
	return &http.Server{
		Handler: paths, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, WriteTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}
