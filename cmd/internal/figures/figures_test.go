package figures

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"partnerapi/db"
	"partnerapi/db/doctor"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// values are the service's gauges and counters, by their names and the values of their
// labels.
func values(t *testing.T, r *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			words := []string{strings.TrimPrefix(family.GetName(), "partnerapi_")}
			for _, label := range m.GetLabel() {
				words = append(words, label.GetValue())
			}
			all[strings.Join(words, " ")] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return all
}

// TestFiguresAreCountedNowAndThen scrapes at once, later, and without a database.
func TestFiguresAreCountedNowAndThen(t *testing.T) {
	t.Parallel()
	now, counts := time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC), 0
	var away error
	var standby pg.ReplicaState
	var replicated bool
	hook := db.NewID[domain.WebhookKind]()
	registry := NewRegistry("test", Sources{
		Clock:     func() time.Time { return now },
		PoolStats: func() pg.Stats { return pg.Stats{InUse: 3, Idle: 4, Max: 20} },
		Figures: func(context.Context, time.Duration) ([]doctor.Figure, error) {
			counts++
			return []doctor.Figure{
				{Metric: "mails", Labels: []string{"mail", "waiting"}, Value: 2}, {Metric: "mail_oldest_seconds", Labels: []string{"mail"}, Value: 60},
				{Metric: "mails", Labels: []string{"simulation", "failed"}, Value: float64(counts)}, {Metric: "events_published_total", Value: 10},
				{Metric: "syncs", Labels: []string{"none", "queued"}, Value: 1}, {Metric: "webhook_failing_seconds", Labels: []string{hook.String()}, Value: 3600},
			}, away
		},
		Replica: func() (pg.ReplicaState, bool) { return standby, replicated },
	})
	type figures = map[string]float64
	want := func(want figures) {
		t.Helper()
		got := values(t, registry)
		for name, value := range want {
			if is, ok := got[name]; ok == math.IsNaN(value) || ok && is != value {
				t.Errorf("%s is %v, want %v", name, is, value)
			}
		}
	}
	absent := math.NaN()
	first := figures{
		"mails simulation failed": 1, "database_connections in_use": 3, "mails mail waiting": 2, "mail_oldest_seconds mail": 60,
		"mail_oldest_seconds simulation": 0, "jobs report running": 0, "syncs none queued": 1, "events_published_total": 10,
		"webhook_failing_seconds " + hook.String(): 3600, "replica_used": absent, "database_up": 1,
	}
	want(first)
	want(first) // nothing was counted again
	now = now.Add(Age)
	want(figures{"mails simulation failed": 2, "database_up": 1})

	replicated = true
	want(figures{"replica_used": 0, "replica_lag_seconds": math.Inf(1)})
	standby = pg.ReplicaState{Fault: errors.New("behind"), AsOf: now.Add(-time.Minute)}
	want(figures{"replica_used": 0, "replica_lag_seconds": 60})
	standby.Used = true
	want(figures{"replica_used": 1, "replica_lag_seconds": 0})

	now, away = now.Add(Age), errors.New("away")
	want(figures{"database_up": 0, "mails simulation failed": absent, "database_connections_max": 20})
}

// TestDiskIsWatched verifies that the free space of a disk is a metric. A folder that does not exist has none.
func TestDiskIsWatched(t *testing.T) {
	t.Parallel()
	full := &doctor.Disk{Name: "data", Dir: "/srv/data", Free: func(string) (uint64, error) { return 99 << 20, nil }}
	away := &doctor.Disk{Name: "reports", Dir: "/away", Free: doctor.FreeBytes}
	want := "# HELP partnerapi_disk_free_bytes Free space on the disk that contains the folder.\n" +
		"# TYPE partnerapi_disk_free_bytes gauge\npartnerapi_disk_free_bytes{folder=\"data\"} 1.03809024e+08\n"
	if err := testutil.CollectAndCompare(DiskFigures{full, away}, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
