package main

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"partnerapi/db"
	"partnerapi/db/pg"
)

const (
	// figuresWithin is how long the database may take to count.
	figuresWithin = 2 * time.Second
	// figuresAge is how old a count may be: /metrics needs no key, and counting
	// costs the database something.
	figuresAge = 5 * time.Second
)

// sources are where the figures of the database come from.
type sources struct {
	clock func() time.Time
	pool  func() pg.Stats
	mail  func(context.Context) (mail, simulated db.MailBacklog, err error)
}

func sourcesOf(d *db.DB) sources {
	return sources{clock: d.Now, pool: d.Stats, mail: d.MailBacklogs}
}

// newRegistry returns the metrics that every process has: of the runtime, the
// program's version, the pool of connections, and mail.
func newRegistry(from sources) *prometheus.Registry {
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "partnerapi_build_info", Help: "1, with the version of the program and of Go.",
	}, []string{"version", "go_version"})
	build.WithLabelValues(version, runtime.Version()).Set(1)

	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), build,
		&figures{sources: from})
	return r
}

// figures collects what the database knows. While it is away, only the pool is
// told of.
type figures struct {
	sources
	mu      sync.Mutex
	counted []prometheus.Metric
	at      time.Time
}

func description(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("partnerapi_"+name, help, labels, nil)
}

var (
	poolDesc   = description("database_connections", "Connections of the pool, by state: in_use or idle.", "state")
	maxDesc    = description("database_connections_max", "How many connections the pool may have (--connections).")
	waitsDesc  = description("database_waits_total", "How often a connection of the pool had to be waited for.")
	waitedDesc = description("database_wait_seconds_total", "How long connections of the pool were waited for.")
	upDesc     = description("database_up", "1 where the database answered, else 0.")
	mailDesc   = description("mails", "Mails by kind (mail or simulation) and state: waiting to be sent, or failed.",
		"kind", "state")
	oldestDesc = description("mail_oldest_seconds", "Since when the oldest mail waits, by kind; 0 where none does.",
		"kind")
)

// Describe sends the descriptions of all figures.
func (f *figures) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{poolDesc, maxDesc, waitsDesc, waitedDesc, upDesc, mailDesc, oldestDesc} {
		to <- d
	}
}

// Collect sends the figures. Those of the database are counted again where they
// are older than figuresAge; scrapes at a time wait for one count.
func (f *figures) Collect(to chan<- prometheus.Metric) {
	pool := f.pool()
	to <- prometheus.MustNewConstMetric(poolDesc, prometheus.GaugeValue, float64(pool.InUse), "in_use")
	to <- prometheus.MustNewConstMetric(poolDesc, prometheus.GaugeValue, float64(pool.Idle), "idle")
	to <- prometheus.MustNewConstMetric(maxDesc, prometheus.GaugeValue, float64(pool.Max))
	to <- prometheus.MustNewConstMetric(waitsDesc, prometheus.CounterValue, float64(pool.Waits))
	to <- prometheus.MustNewConstMetric(waitedDesc, prometheus.CounterValue, pool.Waited.Seconds())

	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.clock(); f.counted == nil || now.Sub(f.at) >= figuresAge {
		f.counted, f.at = f.count(now), now
	}
	for _, m := range f.counted {
		to <- m
	}
}

// count asks the database.
func (f *figures) count(now time.Time) []prometheus.Metric {
	ctx, cancel := context.WithTimeout(context.Background(), figuresWithin)
	defer cancel()
	asked, simulated, err := f.mail(ctx)
	if err != nil {
		return []prometheus.Metric{prometheus.MustNewConstMetric(upDesc, prometheus.GaugeValue, 0)}
	}

	list := []prometheus.Metric{prometheus.MustNewConstMetric(upDesc, prometheus.GaugeValue, 1)}
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		list = append(list, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...))
	}
	for kind, b := range map[string]db.MailBacklog{
		string(db.RequestedMail): asked, string(db.SimulatedMail): simulated,
	} {
		gauge(mailDesc, float64(b.Waiting), kind, "waiting")
		gauge(mailDesc, float64(b.Failed), kind, "failed")
		var waits time.Duration
		if !b.Oldest.IsZero() {
			waits = max(0, now.Sub(b.Oldest))
		}
		gauge(oldestDesc, waits.Seconds(), kind)
	}
	return list
}
