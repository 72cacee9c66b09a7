package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"partnerapi/db"
	"partnerapi/job"
	"partnerapi/platform/report"
)

const (
	// reportsAtATime is how many jobs about reports a process works on at a time.
	reportsAtATime = 2
	// careEvery is how often one of the processes looks for reports that a crash or
	// time left behind.
	careEvery = 5 * time.Minute
	// pollEvery is how often the queue is looked at for jobs that no notification told
	// of.
	pollEvery = 10 * time.Second
	// stopJobsWithin is how long jobs under way may take to finish after the service
	// was told to stop; those that take longer begin again in another process.
	stopJobsWithin = stopWithin / 2
)

// reportFontFlag says with which font PDFs are written besides the built-in one.
type reportFontFlag struct {
	ReportFont string `name:"report-font" type:"path" placeholder:"FILE" help:"A TrueType font (.ttf) for scripts beyond Latin, Greek and Cyrillic in PDF reports."`
}

// maker returns what makes the files of reports.
func (f reportFontFlag) maker() (*report.Maker, error) {
	if f.ReportFont == "" {
		return report.NewMaker(report.Options{}), nil
	}
	font, err := report.LoadFont(f.ReportFont)
	if err != nil {
		return nil, fmt.Errorf("--report-font: %w", err)
	}
	return report.NewMaker(report.Options{Font: font}), nil
}

// reportStoreFlag says where the files of reports are.
type reportStoreFlag struct {
	ReportStore string `name:"report-store" placeholder:"URL" help:"Where the files of reports are kept: file:///path, s3://bucket?region=…, gs://bucket or azblob://container. Default: the folder reports of --data-dir, which is of use to one machine only."`
}

// openStore opens the store of reports.
func (f reportStoreFlag) openStore(ctx context.Context, dataDir string, log *slog.Logger) (*report.Store, error) {
	store, err := report.OpenStore(ctx, f.ReportStore, filepath.Join(dataDir, "reports"), log)
	if err != nil {
		return nil, fmt.Errorf("--report-store: %w", err)
	}
	return store, nil
}

// reportMetrics count and time the tries to make a report.
type reportMetrics struct {
	tries   *prometheus.CounterVec
	seconds prometheus.Histogram
}

func newReportMetrics() *reportMetrics {
	m := &reportMetrics{
		tries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "partnerapi_report_tries_total", Help: "Tries to make a report, by outcome: made, retried or failed.",
		}, []string{"outcome"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "partnerapi_report_seconds", Help: "How long tries to make a report took.",
			Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 25, 50, 100},
		}),
	}
	for _, outcome := range []report.Outcome{report.Made, report.Retried, report.Failed} {
		m.tries.WithLabelValues(string(outcome)) // 0 is shown too
	}
	return m
}

func (m *reportMetrics) count(outcome report.Outcome, took time.Duration) {
	m.tries.WithLabelValues(string(outcome)).Inc()
	m.seconds.Observe(took.Seconds())
}

// newReportWorker returns what makes reports.
func newReportWorker(d *db.DB, with kept, log *slog.Logger, metrics *reportMetrics) *report.Worker {
	return report.NewWorker(d, with.store, with.maker, log, metrics.count)
}

// openJobs wires what works on the jobs of the queue. It uses the pool's reserved
// connections: one listens for jobs.
func openJobs(
	d *db.DB, with kept, log *slog.Logger, metrics *reportMetrics, around ...rivertype.Middleware,
) (*river.Client[pgx.Tx], error) {
	workers := river.NewWorkers()
	if err := river.AddWorkerSafely(workers, newReportWorker(d, with, log, metrics)); err != nil {
		return nil, err
	}
	if err := river.AddWorkerSafely(workers, report.NewCarer(d, job.NewQueue(), with.store, log)); err != nil {
		return nil, err
	}
	care := river.NewPeriodicJob(river.PeriodicInterval(careEvery),
		func() (river.JobArgs, *river.InsertOpts) { return job.CareArgs{}, nil },
		&river.PeriodicJobOpts{RunOnStart: true})
	return river.NewClient(riverpgxv5.New(d.Pool()), &river.Config{
		Queues: map[string]river.QueueConfig{job.Reports: {MaxWorkers: reportsAtATime}}, Workers: workers,
		FetchPollInterval: pollEvery,
		PeriodicJobs:      []*river.PeriodicJob{care},
		Middleware:        around,
		JobTimeout:        report.MakeWithin, RescueStuckJobsAfter: report.RescueAfter, SoftStopTimeout: stopJobsWithin,
		// What becomes of jobs is logged where they are worked on.
		Logger: slog.New(atLeast{log.Handler(), slog.LevelWarn}),
	})
}

// startJobsAgain is how long it takes until the work on jobs is begun again that
// could not begin, for the database was away.
const startJobsAgain = time.Second

// runJobs works on jobs until ctx ends, and then finishes those under way.
func (w *background) runJobs(ctx context.Context) {
	for {
		err := w.jobs.Start(ctx)
		if err == nil {
			<-w.jobs.Stopped()
			return
		}
		if ctx.Err() != nil { // the service stops before its work has begun
			return
		}
		w.log.WarnContext(ctx, "work on jobs did not begin; it will be tried again", "error", err)
		if !pause(ctx, startJobsAgain) {
			return
		}
	}
}

// atLeast is a handler of the log lines from a level up.
type atLeast struct {
	slog.Handler
	level slog.Level
}

// Enabled reports whether lines of the level are handled.
func (h atLeast) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= h.level && h.Handler.Enabled(ctx, level)
}

// WithAttrs is the handler with attributes.
func (h atLeast) WithAttrs(attrs []slog.Attr) slog.Handler {
	return atLeast{h.Handler.WithAttrs(attrs), h.level}
}

// WithGroup is the handler within a group.
func (h atLeast) WithGroup(name string) slog.Handler {
	return atLeast{h.Handler.WithGroup(name), h.level}
}
