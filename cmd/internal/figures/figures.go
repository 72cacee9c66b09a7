// Package figures has the metrics that every process has: of the runtime, the program, the database and the disks.
package figures

import (
	"context"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"partnerapi/db"
	"partnerapi/db/doctor"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

const (
	// figuresWithin is how long the database may take to count.
	figuresWithin = 2 * time.Second
	// Age is how old a count may be: /metrics needs no key, and counting costs the database something.
	Age = 5 * time.Second
)

// Sources are the databases that the figures are read from.
type Sources struct {
	Clock     func() time.Time
	PoolStats func() pg.Stats
	// Figures counts the backlogs. It fails if that takes longer than the given time.
	Figures func(context.Context, time.Duration) ([]doctor.Figure, error)
	// Replica returns the state of the standby, false if there is none. It may be nil.
	Replica func() (pg.ReplicaState, bool)
	// Cell is the cell of the database. It is a label of build_info if there are several cells.
	Cell domain.Cell
}

// SourcesOf returns the sources of a database.
func SourcesOf(ctx context.Context, d *db.DB) (Sources, error) {
	cell, err := d.Cell(ctx)
	return Sources{Clock: d.Now, PoolStats: d.Stats, Figures: func(ctx context.Context, within time.Duration) ([]doctor.Figure, error) {
		return doctor.CountFigures(ctx, d, within)
	}, Replica: d.Replica, Cell: cell}, err
}

// NewRegistry returns the metrics of every process: of the runtime, the version, the connection pool and the backlogs.
func NewRegistry(version string, from Sources) *prometheus.Registry {
	labels := prometheus.Labels{"version": version, "go_version": runtime.Version()}
	if from.Cell.Count > 1 {
		labels["cell"] = from.Cell.Code()
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "partnerapi_build_info", Help: "Always 1, with the versions of the program and of Go.", ConstLabels: labels,
	})
	build.Set(1)

	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), build,
		&figures{Sources: from})
	return r
}

// figures collects the figures of the pool and of the database; only the pool's while the database is unreachable.
type figures struct {
	Sources
	mu      sync.Mutex
	counted map[string]prometheus.Metric // of a tally
	at      time.Time
}

// Describe returns the description of a metric, whose name gets the prefix partnerapi_, with the names of its labels.
func Describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("partnerapi_"+name, help, labels, nil)
}

var (
	poolDesc = Describe("database_connections", "Connections in the pool, by state: in_use or idle.", "state")
	upDesc   = Describe("database_up", "1 if the database responded, otherwise 0.")
)

// label is a label of a metric. The metric is 0 for each of the values, unless there is a figure.
type label struct {
	name   string
	values []string
}

// metric is a metric that is counted in the database (doctor.CountFigures). It is a counter if its name ends in _total.
type metric struct {
	name, help string
	labels     []label
}

// The values of labels of several metrics.
var (
	mailKinds = label{"kind", []string{string(db.RequestedMail), string(db.SimulatedMail)}}
	jobKinds  = label{"kind", []string{"report", db.ReportCare}}
	providers = label{"provider", domain.Directory("").Values()}
)

// counted are the metrics that are counted in the database.
var counted = []metric{
	{"mails", "Emails by kind (mail or simulation) and state: waiting to be sent, or failed.",
		[]label{mailKinds, {"state", []string{"waiting", "failed"}}}},
	{"mail_oldest_seconds", "Time that the oldest email has been waiting, by kind; 0 if none is waiting.", []label{mailKinds}},
	{"job_leader", "1 if a process runs the periodic jobs, otherwise 0.", nil},
	{"jobs", "Jobs by kind and state: available, running, retryable (failed, to be retried) or discarded (given up).",
		[]label{jobKinds, {"state", []string{"available", "running", "retryable", "discarded"}}}},
	{"job_oldest_seconds", "Time that the oldest due job has been waiting, by kind; 0 if none is waiting.", []label{jobKinds}},
	{"syncs", "Unfinished directory syncs by provider and state: queued or running.",
		[]label{providers, {"state", []string{string(domain.SyncQueued), string(domain.SyncRunning)}}}},
	{"sync_oldest_seconds", "Age of the oldest directory sync that is queued or running; 0 if there is none.", nil},
	{"directory_connections", "Clients with a directory, by provider and state: working or failing after the last sync, or new before the first.",
		[]label{providers, {"state", []string{"working", "failing", "new"}}}},
	{"reports_waiting", "Reports waiting to be created.", nil},
	{"report_oldest_seconds", "Time that the oldest report has been waiting; 0 if none is waiting.", nil},
	{"events_waiting", "Events waiting to be published, counted up to 100,000.", nil},
	{"event_oldest_seconds", "Time that the oldest event has been waiting; 0 if none is waiting.", nil},
	{"events_published_total", "Events published by all processes.", nil},
	{"webhook_deliveries_waiting", "Webhook deliveries waiting for an attempt, counted up to 100,000.", nil},
	{"webhook_oldest_due_seconds", "Time that the oldest due delivery has been waiting for its attempt; 0 if none is due.", nil},
	{"webhooks", "Webhooks by status: active, paused or disabled.", []label{{"status", domain.WebhookStatus("").Values()}}},
	{"webhook_failing_seconds", "Time that all deliveries of a webhook have been failing, for the 20 webhooks that have failed the longest.",
		[]label{{"webhook", nil}}},
	{"moves", "Partners moving to another cell (copying, holding, handing) or from another cell (arriving), by step.",
		[]label{{"step", []string{"copying", "holding", "handing", "arriving"}}}},
	{"move_held_seconds", "Time that a partner's writes have been rejected during its handover to another cell; 0 if none are rejected.", nil},
	{"api_key_ends_seconds", "Time until an API key stops working, for the first 20 keys that stop within 30 days.",
		[]label{{"key", nil}}},
}

// combinations returns each combination of the labels' values; of no labels, the empty one.
func combinations(labels []label) [][]string {
	all := [][]string{nil}
	for _, l := range labels {
		var longer [][]string
		for _, c := range all {
			for _, value := range l.values {
				longer = append(longer, append(slices.Clone(c), value))
			}
		}
		all = longer
	}
	return all
}

// Describe implements prometheus.Collector. It describes no metric, as it depends on the database which ones there are.
func (f *figures) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector. It counts again if the figures are older than Age; concurrent scrapes share
// one count. The states of the pool and the standby are read each time.
func (f *figures) Collect(to chan<- prometheus.Metric) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.Clock()
	if f.counted == nil || now.Sub(f.at) >= Age {
		f.counted, f.at = f.count(now), now
	}
	current := tally{now: now, metrics: maps.Clone(f.counted)}
	current.pool(f.PoolStats())
	if f.Replica != nil {
		current.replica(f.Replica())
	}
	for _, m := range current.metrics {
		to <- m
	}
}

// count reads the figures from the database. If that fails, the only figure is that the database is down.
func (f *figures) count(now time.Time) map[string]prometheus.Metric {
	c := tally{now: now, metrics: map[string]prometheus.Metric{}}
	found, err := f.Figures(context.Background(), figuresWithin)
	if err != nil {
		c.gauge(upDesc, 0)
		return c.metrics
	}
	c.gauge(upDesc, 1)
	descs, kinds := map[string]*prometheus.Desc{}, map[string]prometheus.ValueType{}
	for _, m := range counted {
		var names []string
		for _, l := range m.labels {
			names = append(names, l.name)
		}
		desc, kind := Describe(m.name, m.help, names...), prometheus.GaugeValue
		if strings.HasSuffix(m.name, "_total") {
			kind = prometheus.CounterValue
		}
		descs[m.name], kinds[m.name] = desc, kind
		for _, values := range combinations(m.labels) {
			c.set(desc, kind, 0, values...)
		}
	}
	for _, f := range found {
		c.set(descs[f.Metric], kinds[f.Metric], f.Value, f.Labels...)
	}
	return c.metrics
}

// tally holds metrics by name and labels. A value replaces an earlier one of the same metric: each combination of labels
// is set to 0 first, and then those with rows are set to their numbers.
type tally struct {
	now     time.Time
	metrics map[string]prometheus.Metric
}

// set sets a metric.
func (c *tally) set(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
	c.metrics[d.String()+strings.Join(labels, " ")] = prometheus.MustNewConstMetric(d, kind, value, labels...)
}

// gauge sets a gauge.
func (c *tally) gauge(d *prometheus.Desc, value float64, labels ...string) {
	c.set(d, prometheus.GaugeValue, value, labels...)
}

// counter sets a counter, which has no labels.
func (c *tally) counter(d *prometheus.Desc, value float64) { c.set(d, prometheus.CounterValue, value) }

// pool adds the state of the connection pool.
func (c *tally) pool(s pg.Stats) {
	c.gauge(poolDesc, float64(s.InUse), "in_use")
	c.gauge(poolDesc, float64(s.Idle), "idle")
	c.gauge(Describe("database_connections_max", "Maximum number of connections in the pool (--connections)."), float64(s.Max))
	c.counter(Describe("database_waits_total", "Number of waits for a connection in the pool."), float64(s.Waits))
	c.counter(Describe("database_wait_seconds_total", "Total time spent waiting for a connection in the pool."), s.Waited.Seconds())
	c.counter(Describe("database_clock_steps_total", "Number of times that the database server's clock was set by more than a second."), float64(s.ClockSteps))
	c.counter(Describe("database_clock_stepped_seconds_total", "Total time by which the database server's clock was set, in both directions."), s.ClockStepped.Seconds())
}

// replica adds the state of the standby at its last check; nothing if there is none (ok is false). A standby is used
// only without lag.
func (c *tally) replica(state pg.ReplicaState, ok bool) {
	if !ok {
		return
	}
	used, lag := 0.0, math.Inf(1) // unknown
	switch {
	case state.Used:
		used, lag = 1, 0
	case !state.AsOf.IsZero():
		lag = max(0, c.now.Sub(state.AsOf)).Seconds()
	}
	c.gauge(Describe("replica_used", "1 if the standby could be read at its last check, otherwise 0."), used)
	c.gauge(Describe("replica_lag_seconds", "0 if the standby had replayed everything at its last check, otherwise the maximum age of its newest "+
		"data; +Inf if unknown."), lag)
}

var diskDesc = Describe("disk_free_bytes", "Free space on the disk that contains the folder.", "folder")

// DiskFigures collects the free space of disks.
type DiskFigures []*doctor.Disk

// Describe implements prometheus.Collector.
func (f DiskFigures) Describe(to chan<- *prometheus.Desc) { to <- diskDesc }

// Collect implements prometheus.Collector. A disk whose free space is unknown has no metric.
func (f DiskFigures) Collect(to chan<- prometheus.Metric) {
	for _, d := range f {
		if free, known := d.FreeNow(); known {
			to <- prometheus.MustNewConstMetric(diskDesc, prometheus.GaugeValue, float64(free), d.Name)
		}
	}
}
