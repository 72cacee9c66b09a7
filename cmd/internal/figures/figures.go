// Package figures has the metrics that every process has: of the runtime, the program, the database and the disks.
package figures

import (
	"cmp"
	"context"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"partnerapi/db"
	"partnerapi/db/doctor"
	"partnerapi/db/outbox"
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
	// Figures counts the backlogs, within a time limit.
	Figures func(context.Context, time.Duration) (doctor.Figures, error)
	// Replica returns the state of the standby, false if there is none. It may be nil.
	Replica func() (pg.ReplicaState, bool)
	// Cell is a label of the metrics if it is one of several.
	Cell domain.Cell
}

// SourcesOf returns the sources of a database.
func SourcesOf(ctx context.Context, d *db.DB) (Sources, error) {
	cell, err := d.Cell(ctx)
	return Sources{Clock: d.Now, PoolStats: d.Stats, Figures: func(ctx context.Context, within time.Duration) (doctor.Figures, error) {
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
		Name: "partnerapi_build_info", Help: "1, with the version of the program and of Go.", ConstLabels: labels,
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
	counted []prometheus.Metric
	at      time.Time
}

// Describe describes a metric of the service: its name gets the prefix partnerapi_.
func Describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("partnerapi_"+name, help, labels, nil)
}

var (
	poolDesc   = Describe("database_connections", "Connections of the pool, by state: in_use or idle.", "state")
	maxDesc    = Describe("database_connections_max", "How many connections the pool may have (--connections).")
	waitsDesc  = Describe("database_waits_total", "How often a connection of the pool had to be waited for.")
	waitedDesc = Describe("database_wait_seconds_total", "How long connections of the pool were waited for.")
	upDesc     = Describe("database_up", "1 where the database answered, else 0.")
	mailDesc   = Describe("mails", "Mails by kind (mail or simulation) and state: waiting to be sent, or failed.",
		"kind", "state")
	oldestDesc = Describe("mail_oldest_seconds", "Since when the oldest mail waits, by kind; 0 where none does.",
		"kind")
	jobsDesc = Describe("jobs",
		"Jobs, by kind and state: available, running, retryable (failed, to be tried again) or discarded (given up).",
		"kind", "state")
	oldestJobDesc = Describe("job_oldest_seconds",
		"Since when the oldest job that is due waits, by kind; 0 where none does.", "kind")
	leaderDesc = Describe("job_leader", "1 where some process does the periodic jobs, else 0.")
	syncsDesc  = Describe("syncs", "Directory syncs under way, by provider and state: queued or running.",
		"provider", "state")
	oldestSyncDesc = Describe("sync_oldest_seconds",
		"Since when the oldest directory sync is queued or running; 0 where none is.")
	directoriesDesc = Describe("directory_connections",
		"Clients with a directory, by provider and how their last sync ended: working, failing, or new before the first.",
		"provider", "state")
	reportsDesc      = Describe("reports_waiting", "Reports that wait to be made.")
	oldestReportDesc = Describe("report_oldest_seconds", "Since when the oldest report waits; 0 where none does.")
	eventsDesc       = Describe("events_waiting", "Events that wait to be published; counted up to 100000.")
	oldestEventDesc  = Describe("event_oldest_seconds", "Since when the oldest event waits; 0 where none does.")
	deliveriesDesc   = Describe("webhook_deliveries_waiting", "Deliveries that wait for a try, counted up to 100,000.")
	lateDesc         = Describe("webhook_oldest_due_seconds",
		"Since when the delivery that is due longest waits for its try; 0 where none does.")
	webhooksDesc = Describe("webhooks", "Subscriptions by status: active, paused or disabled.", "status")
	failingDesc  = Describe("webhook_failing_seconds",
		"Since when the deliveries of a subscription fail and none succeeded: the 20 longest.", "webhook")
	usedDesc = Describe("replica_used", "1 where the standby could be read when it was last asked, else 0.")
	lagDesc  = Describe("replica_lag_seconds",
		"0 where the standby had replayed everything when it was last asked, else how old the newest of it may be; +Inf where that is unknown.")
	movesDesc     = Describe("moves", "Partners that move to another cell (copying, holding, handing) or come from one (arriving), by step.", "step")
	heldDesc      = Describe("move_held_seconds", "For how long writes of a partner have been refused as it is handed over to another cell; 0 where none are.")
	keyEndsDesc   = Describe("api_key_ends_seconds", "In how many seconds API keys stop working, of those that do within 30 days: the 20 next.", "key")
	publishedDesc = Describe("events_published_total", "Events that were published, by all processes.")
)

// Describe implements prometheus.Collector. It names no metric: which there are depends on the database.
func (f *figures) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector. It counts again if the figures are older than Age; concurrent scrapes
// share one count.
func (f *figures) Collect(to chan<- prometheus.Metric) {
	pool := f.PoolStats()
	to <- prometheus.MustNewConstMetric(poolDesc, prometheus.GaugeValue, float64(pool.InUse), "in_use")
	to <- prometheus.MustNewConstMetric(poolDesc, prometheus.GaugeValue, float64(pool.Idle), "idle")
	to <- prometheus.MustNewConstMetric(maxDesc, prometheus.GaugeValue, float64(pool.Max))
	to <- prometheus.MustNewConstMetric(waitsDesc, prometheus.CounterValue, float64(pool.Waits))
	to <- prometheus.MustNewConstMetric(waitedDesc, prometheus.CounterValue, pool.Waited.Seconds())

	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.Clock(); f.counted == nil || now.Sub(f.at) >= Age {
		f.counted, f.at = f.count(now), now
	}
	for _, m := range f.counted {
		to <- m
	}
	f.replica(to)
}

// replica sends the metrics of the standby, as of the last read from it. The lag is +Inf while it is unknown.
func (f *figures) replica(to chan<- prometheus.Metric) {
	if f.Replica == nil {
		return
	}
	state, ok := f.Replica()
	if !ok {
		return
	}
	used, lag := 0.0, math.Inf(1)
	switch {
	case state.Used:
		used, lag = 1, 0
	case !state.AsOf.IsZero():
		lag = max(0, f.Clock().Sub(state.AsOf)).Seconds()
	}
	to <- prometheus.MustNewConstMetric(usedDesc, prometheus.GaugeValue, used)
	to <- prometheus.MustNewConstMetric(lagDesc, prometheus.GaugeValue, lag)
}

// count reads the figures from the database. If that fails, the only figure is that the database is down.
func (f *figures) count(now time.Time) []prometheus.Metric {
	found, err := f.Figures(context.Background(), figuresWithin)
	if err != nil {
		return []prometheus.Metric{prometheus.MustNewConstMetric(upDesc, prometheus.GaugeValue, 0)}
	}
	c := tally{now: now}
	c.gauge(upDesc, 1)
	c.mails(db.RequestedMail, found.Mail)
	c.mails(db.SimulatedMail, found.Simulated)
	c.jobs(found)
	c.directories(found)
	c.gauge(reportsDesc, float64(found.Reports))
	c.age(oldestReportDesc, found.OldestReport)
	c.gauge(eventsDesc, float64(found.Events))
	c.age(oldestEventDesc, found.OldestEvent)
	c.gauge(deliveriesDesc, float64(found.Deliveries.Waiting))
	c.age(lateDesc, found.Deliveries.Due)
	c.gauge(webhooksDesc, float64(found.Deliveries.Active), string(domain.WebhookActive))
	c.gauge(webhooksDesc, float64(found.Deliveries.Paused), string(domain.WebhookPaused))
	c.gauge(webhooksDesc, float64(found.Deliveries.Disabled), string(domain.WebhookDisabled))
	for _, failing := range found.Deliveries.Failing {
		c.age(failingDesc, failing.FailingSince, failing.ID.String())
	}
	moves := map[string]int{"copying": 0, "holding": 0, "handing": 0, "arriving": 0}
	for _, m := range found.Moves {
		moves[m.Step] = m.N
	}
	for step, n := range moves {
		c.gauge(movesDesc, float64(n), step)
	}
	c.age(heldDesc, found.HeldSince)
	for _, key := range found.EndingKeys {
		c.gauge(keyEndsDesc, key.ExpiresAt.Sub(c.now).Seconds(), key.Prefix)
	}
	c.list = append(c.list,
		prometheus.MustNewConstMetric(publishedDesc, prometheus.CounterValue, float64(found.Published)))
	return c.list
}

// tally is the metrics of one count.
type tally struct {
	now  time.Time
	list []prometheus.Metric
}

// gauge adds a gauge.
func (c *tally) gauge(d *prometheus.Desc, value float64, labels ...string) {
	c.list = append(c.list, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...))
}

// age adds a gauge of the seconds since a time; 0 for the zero time and one in the future.
func (c *tally) age(d *prometheus.Desc, at time.Time, labels ...string) {
	var age time.Duration
	if !at.IsZero() {
		age = max(0, c.now.Sub(at))
	}
	c.gauge(d, age.Seconds(), labels...)
}

// mails adds the backlog of a kind of mail.
func (c *tally) mails(kind db.OutboxKind, b outbox.MailBacklog) {
	c.gauge(mailDesc, float64(b.Waiting), string(kind), "waiting")
	c.gauge(mailDesc, float64(b.Failed), string(kind), "failed")
	c.age(oldestDesc, b.Oldest, string(kind))
}

// pair is the labels of a figure: a kind, such as a provider, and a state. All combinations are reported, with 0 for
// those without rows.
type pair struct{ kind, state string }

// jobKinds are the kinds of jobs.
var jobKinds = []string{"report", db.ReportCare}

// jobs adds the backlogs of jobs, and whether a process does the periodic ones.
func (c *tally) jobs(found doctor.Figures) {
	leader := 0.0
	if found.Leader {
		leader = 1
	}
	c.gauge(leaderDesc, leader)

	numbers, oldest := map[pair]int{}, map[string]time.Time{}
	for _, kind := range jobKinds {
		oldest[kind] = time.Time{}
		for _, state := range []string{"available", "running", "retryable", "discarded"} {
			numbers[pair{kind, state}] = 0
		}
	}
	for _, j := range found.Jobs {
		numbers[pair{j.Kind, j.State}] = j.N
		if j.State == "available" {
			oldest[j.Kind] = j.Since
		}
	}
	c.pairs(jobsDesc, numbers)
	for kind, at := range oldest {
		c.age(oldestJobDesc, at, kind)
	}
}

// connectionStates maps the status of the last sync to the state of a connection.
var connectionStates = map[domain.SyncStatus]string{
	"": "new", domain.SyncCompleted: "working", domain.SyncFailed: "failing",
}

// directories adds the numbers of connections and syncs.
func (c *tally) directories(found doctor.Figures) {
	syncs, connections := map[pair]int{}, map[pair]int{}
	for _, provider := range domain.Directory("").Values() {
		for _, state := range []domain.SyncStatus{domain.SyncQueued, domain.SyncRunning} {
			syncs[pair{provider, string(state)}] = 0
		}
		for _, state := range connectionStates {
			connections[pair{provider, state}] = 0
		}
	}
	for _, s := range found.Syncs {
		syncs[pair{cmp.Or(string(s.Provider), "none"), string(s.Status)}] = s.N
	}
	for _, s := range found.Directories {
		connections[pair{string(s.Provider), connectionStates[s.Status]}] = s.N
	}
	c.pairs(syncsDesc, syncs)
	c.age(oldestSyncDesc, found.OldestSync)
	c.pairs(directoriesDesc, connections)
}

// pairs adds a gauge for each pair.
func (c *tally) pairs(d *prometheus.Desc, numbers map[pair]int) {
	for labels, n := range numbers {
		c.gauge(d, float64(n), labels.kind, labels.state)
	}
}
