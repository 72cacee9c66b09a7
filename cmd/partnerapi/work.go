package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"

	"github.com/alecthomas/kong"
	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/config"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/figures"
	"partnerapi/cmd/internal/telemetry"
	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/directory"
	"partnerapi/platform/mail"
	"partnerapi/platform/phishing"
	"partnerapi/platform/report"
	"partnerapi/platform/seal"
	"partnerapi/platform/webhook"
	v2 "partnerapi/v2"
)

// background is the work outside requests.
type background struct {
	db         *db.DB
	sender     mail.Sender
	mailWatch  *mailWatch // nil where emails become files
	mails      *mail.Dispatcher
	syncs      *directory.Runner
	events     *webhook.Publisher
	hooks      *webhook.Dispatcher // delivers events to endpoints
	reports    *report.Worker      // makes pending reports
	maintainer *report.Maintainer  // does periodic work on reports
	clock      *clockWatch
	metrics    []prometheus.Collector
	log        *slog.Logger
	traces     *telemetry.Telemetry // nil where they are off
}

// newBackground wires the background work of a process. Without a mail server it writes email to the data directory.
// address is the URL that links begin with if --public-url is not set. The URL is recorded for commands that show
// emails.
func newBackground(
	ctx context.Context, d *db.DB, address string, f config.WorkFlags, dataDir string, r resources, log *slog.Logger,
	traces *telemetry.Telemetry,
) (*background, error) {
	if f.PublicURL != "" {
		address = f.PublicURL
	}
	composer, err := mail.NewComposer(address, f.MailFrom)
	if err != nil {
		return nil, err
	}
	if composer.Senders, err = f.Domains(); err != nil {
		return nil, err
	}
	if composer.Learning, err = f.Learning(); err != nil {
		return nil, err
	}
	if err := d.RecordPublicURL(ctx, address); err != nil {
		return nil, err
	}
	sender, err := mail.Open(f.SMTPURL, filepath.Join(dataDir, "outbox"))
	if err != nil && f.SMTPURL == "" {
		err = fmt.Errorf("--data-dir: without --smtp-url, emails are written to files: %w", err)
	}
	if err != nil {
		return nil, err
	}
	secret, err := d.TrackingSecret(ctx)
	if err != nil {
		return nil, errors.Join(err, sender.Close())
	}
	tries := newMailTries()
	mails := mail.NewDispatcher(d, sender, f.Workers, map[db.OutboxKind]mail.Writer{
		db.RequestedMail: mail.Requests{DB: d, Composer: composer, Attachments: report.NewAttachments(d, r.store, r.renderer)},
		db.SimulatedMail: phishing.NewSimulations(d, phishing.NewComposer(address, phishing.NewTokens(secret))),
		db.PartnerMail:   mail.Notices{DB: d, Composer: composer},
	}, log, func(kind db.OutboxKind, outcome mail.Outcome) {
		if kind == db.PartnerMail { // is counted with the other email of the service
			kind = db.RequestedMail
		}
		tries.WithLabelValues(string(kind), string(outcome)).Inc()
	}, traces.Work())
	reportTries, syncRuns, deliveries := newReportMetrics(), newSyncMetrics(), newDeliveryMetrics()
	api := v2.New(d, nil) // no cursor needs a secret
	hooks, watch, clock := newDeliveries(d, r, api.SignsBodies, log, deliveries), newMailWatch(sender, log), newClockWatch(d, log)
	metrics := []prometheus.Collector{
		tries, reportTries.tries, reportTries.seconds, syncRuns.runs, syncRuns.seconds,
		deliveries.tries, deliveries.seconds, deliveries.dropped, deliveries.disabled, clock.held,
	}
	if watch != nil {
		metrics = append(metrics, watch.up)
	}
	return &background{
		db: d, sender: sender, mailWatch: watch, clock: clock, mails: mails, hooks: hooks, metrics: metrics,
		events:     webhook.NewPublisher(d, api.RenderEvents, log, hooks.Wake),
		reports:    newReportWorker(d, r, log, reportTries, traces.Work()),
		maintainer: report.NewMaintainer(d, r.store, log, traces.Work()),
		syncs:      directory.NewRunner(d, r.keys, f.Connector(traces), log, directory.Observer{Trace: traces.Work(), Ended: syncRuns.count}),
		log:        log, traces: traces,
	}, nil
}

// run works until ctx ends, and then finishes the work in progress. It returns the errors of that, and closes the
// sender.
func (w *background) run(ctx context.Context) error {
	var loops sync.WaitGroup
	for _, loop := range []func(context.Context){
		w.clock.watch, w.refreshDaily, w.refreshAhead, w.mailWatch.watch, w.assignWaiting, w.recordOverdue, w.settleEmails, w.settleUsers, w.cleanUpMoved, w.events.Run, w.hooks.FollowKeys, w.maintainer.Run,
	} {
		loops.Go(func() { loop(ctx) })
	}
	queues := []func(context.Context) error{w.mails.Run, w.hooks.Run, w.syncs.Run, w.reports.Run}
	errs := make([]error, len(queues)) // of the work that was in progress when ctx ended
	for i, queue := range queues {
		loops.Go(func() { errs[i] = queue(ctx) })
	}
	loops.Wait()
	return errors.Join(errors.Join(errs...), w.sender.Close())
}

type workCmd struct {
	database.Flags
	config.WorkFlags
	Listen string `env:"PARTNERAPI_WORK_LISTEN" placeholder:"ADDRESS" help:"Address at which to serve /healthz, /readyz and /metrics. Default: none."`
}

// Validate rejects invalid flags; kong calls it while parsing. A mail server requires --public-url: the command serves
// no pages itself, so links in email must lead to another process.
func (c workCmd) Validate() error {
	if c.SMTPURL != "" && c.PublicURL == "" {
		return errors.New("--smtp-url requires --public-url; links in emails begin with the public URL, and links to " + cli.DefaultListen +
			" work only on this machine")
	}
	return c.Check()
}

// Run works until ctx ends. It serves health and metrics if --listen is set.
func (c workCmd) Run(ctx context.Context, s cli.Env, line *kong.Context) (err error) {
	listener, err := config.Listen("--listen", c.Listen)
	if err != nil {
		return err
	}
	if listener != nil {
		defer listener.Close()
	}
	log, traces, flush, err := c.StartTelemetry(ctx, s)
	if err != nil {
		return err
	}
	defer flush()
	if err := warnOfVariables(ctx, log, line.Model); err != nil {
		return err
	}
	d, shut, err := c.OpenForServe(ctx, c.StartupEnv(s, log), database.ServeOptions{
		Log: log, Connections: c.Connections, Tracer: traces.Statements(),
	})
	if err != nil {
		return err
	}
	defer database.CloseInto(shut, &err)
	defer func() { err = database.ExplainDenied(d, err) }()
	if err := c.CheckConnections(ctx, d, log, true /* working */); err != nil {
		return err
	}
	if err := c.EndClockHold(ctx, d, log, "work"); err != nil {
		return err
	}
	r, err := openResources(ctx, d, c.WorkFlags, c.Flags, log)
	if err != nil {
		return err
	}
	defer r.endpoints.Close()                // idle connections
	address := "http://" + cli.DefaultListen // without --public-url, emails are only files, with links to this machine
	w, err := newBackground(ctx, d, address, c.WorkFlags, c.DataDir, r, log, traces)
	if err != nil {
		return err
	}
	w.log.InfoContext(ctx, "background work started", "workers", c.Workers)
	if listener == nil {
		return w.run(ctx)
	}
	sources, err := figures.SourcesOf(ctx, d)
	if err != nil {
		return err
	}
	defer database.CloseInto(serveBeside(listener, c.healthAndMetrics(w, sources, log), log), &err)
	log.InfoContext(ctx, "serving health and metrics", "address", listener.Addr().String())
	return w.run(ctx)
}

// healthAndMetrics returns the handler of the health and metrics paths of a process that serves no API.
func (c workCmd) healthAndMetrics(w *background, sources figures.Sources, log *slog.Logger) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	s := &service{db: w.db, engine: gin.New(), log: log, metrics: figures.NewRegistry(version, sources)}
	s.registerDisks(c.Flags, c.StoreFlag)
	s.metrics.MustRegister(w.metrics...)
	s.mountHealth()
	s.openPath("/metrics", gin.WrapH(s.metricsHandler()))
	return s.engine
}

// newDeliveries returns the dispatcher of events.
func newDeliveries(d *db.DB, r resources, signed webhook.SignsBodies, log *slog.Logger, metrics *deliveryMetrics) *webhook.Dispatcher {
	return webhook.NewDispatcher(d, r.endpoints, r.keys, signed, log, webhook.Observer{
		Tried:    metrics.tried,
		Dropped:  func(n int) { metrics.dropped.Add(float64(n)) },
		Disabled: func(n int) { metrics.disabled.Add(float64(n)) },
	})
}

// newReportWorker returns the worker that makes reports.
func newReportWorker(
	d *db.DB, r resources, log *slog.Logger, metrics *reportMetrics, trace domain.Trace,
) *report.Worker {
	return report.NewWorker(d, r.store, r.renderer, log, report.Observer{Tried: metrics.observe, Trace: trace})
}

// resources are what a process uses besides the database: the encryption keys, which may be nil, the report store
// and renderer, and the client of webhook endpoints.
type resources struct {
	keys      *seal.Keys
	store     *report.Store
	renderer  *report.Renderer
	endpoints endpoints
}

// endpoints is the client of webhook endpoints: a webhook.Endpoints.
type endpoints interface {
	v2.Endpoints
	webhook.Poster
	Close()
}

// openResources opens the resources that the flags select. It rejects invalid flags before it creates anything. The
// caller closes them.
func openResources(
	ctx context.Context, d *db.DB, f config.WorkFlags, at database.Flags, log *slog.Logger,
) (r resources, err error) {
	if r.renderer, err = f.Renderer(); err != nil {
		return r, err
	}
	if r.endpoints, err = f.Endpoints(version, d); err != nil {
		return r, err
	}
	if r.keys, err = f.OpenKeys(ctx, d, at, log); err != nil {
		return r, err
	}
	r.store, err = f.OpenStore(ctx, at.DataDir, log)
	return r, err
}

// sealerOf returns the keys as a v2.Sealer; nil, and not an interface that holds nil, if there are none.
func sealerOf(keys *seal.Keys) v2.Sealer {
	if keys == nil {
		return nil
	}
	return keys
}
