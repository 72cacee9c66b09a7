package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/report"
)

// reportFontFlag says with which font PDFs are written besides the built-in one.
type reportFontFlag struct {
	ReportFont string `name:"report-font" type:"path" placeholder:"FILE" help:"A TrueType font (.ttf) for scripts beyond Latin, Greek and Cyrillic in PDF reports."`
}

// maker returns what makes the files of reports.
func (f reportFontFlag) maker() (*report.Renderer, error) {
	if f.ReportFont == "" {
		return report.NewRenderer(report.Options{}), nil
	}
	font, err := report.LoadFont(f.ReportFont)
	if err != nil {
		return nil, fmt.Errorf("--report-font: %w", err)
	}
	return report.NewRenderer(report.Options{Font: font}), nil
}

// reportStoreFlag says where the files of reports are.
type reportStoreFlag struct {
	ReportStore string `name:"report-store" placeholder:"URL" help:"Where the files of reports are kept: file:///path, s3://bucket?region=…, gs://bucket or azblob://container. Default: the folder reports of --data-dir, which is of use to one machine only."`
}

// folder is the folder of this machine that keeps reports, where one does.
func (f reportStoreFlag) folder(dataDir string) (dir string, ofMachine bool) {
	if f.ReportStore == "" {
		return filepath.Join(dataDir, "reports"), true
	}
	u, err := url.Parse(f.ReportStore)
	if err != nil || u.Scheme != "file" {
		return "", false
	}
	return filepath.FromSlash(u.Path), true
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
func newReportWorker(
	d *db.DB, with kept, log *slog.Logger, metrics *reportMetrics, trace domain.Trace,
) *report.Worker {
	return report.NewWorker(d, with.store, with.maker, log, report.Observer{Tried: metrics.count, Trace: trace})
}
