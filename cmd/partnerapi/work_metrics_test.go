package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"partnerapi/cmd/internal/config"
	"partnerapi/cmd/internal/database"
	"partnerapi/db"
	"partnerapi/db/doctor"
	"partnerapi/domain"
	"partnerapi/platform/webhook"
)

// TestReadyWithFullDisk: a process whose disk is nearly full stays ready, and says so. Without its database it is not
// ready, but alive.
func TestReadyWithFullDisk(t *testing.T) {
	t.Parallel()
	d := opened(t, databaseFlag(t))
	s := &service{db: d, log: slog.New(slog.DiscardHandler), metrics: prometheus.NewRegistry()}
	s.registerDisks(database.Flags{DataDir: t.TempDir()}, config.StoreFlag{})
	s.disks[0].Free = func(string) (uint64, error) { return 1 << 20, nil }
	code, said := s.ready(t.Context())
	if code != http.StatusOK || !strings.HasPrefix(said, "ready\nthe disk of ") ||
		!strings.Contains(said, ": reads are served") {
		t.Errorf("%d %q", code, said)
	}
	engine := builtService(t, d, guideBase, resources{}, "serve").engine
	_ = d.Close()
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusServiceUnavailable} {
		w := httptest.NewRecorder()
		if engine.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil)); w.Code != want {
			t.Errorf("without the database %s answers %d %s", path, w.Code, w.Body)
		}
	}
	code, said = s.ready(t.Context())
	if code != http.StatusServiceUnavailable ||
		!strings.HasPrefix(said, "not ready: the database is unavailable\nthe disk of ") {
		t.Errorf("without the database %d %q", code, said)
	}
}

// TestFullDisk verifies what readiness says of a nearly full disk: what is still served. It says nothing if there is room,
// or if the folder does not exist.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	free := uint64(99 << 20)
	full := &doctor.Disk{Dir: "/srv/data", Free: func(string) (uint64, error) { return free, nil }}
	for _, want := range []struct {
		embedded, answers bool
		words             string
	}{
		{true, true, "reads are served; writes,"}, {true, false, "nothing is served; the database restarts"},
		{false, true, "reads and writes are served; reports and"}, {false, false, "nothing is served, because the database,"},
	} {
		if said := fullDisk(full, want.embedded, want.answers); !strings.Contains(said, "/srv/data is nearly full (99 MiB left): "+want.words) {
			t.Errorf("says %q", said)
		}
	}
	free = doctor.DiskFail
	away := &doctor.Disk{Dir: "/away", Free: doctor.FreeBytes}
	if said := fullDisk(full, true, true) + fullDisk(away, true, true); said != "" {
		t.Errorf("with room it says %q", said)
	}
}

// TestMailServerIsWatched: a mail server that is away is a metric and one line, also
// while no mail is due; files are no server.
func TestMailServerIsWatched(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	var refusal error
	m := &mailWatch{
		up: prometheus.NewGauge(prometheus.GaugeOpts{Name: "x"}), log: slog.New(slog.NewTextHandler(&said, nil)),
		check: func(context.Context) (string, error) { return "", refusal },
	}
	for _, step := range []struct {
		err error
		up  float64
	}{{nil, 1}, {errors.New("refused"), 0}, {errors.New("refused"), 0}, {nil, 1}, {nil, 1}} {
		refusal = step.err
		m.probe(t.Context())
		if got := testutil.ToFloat64(m.up); got != step.up {
			t.Errorf("after %v it is %v", step.err, got)
		}
	}
	if strings.Count(said.String(), "is unavailable") != 1 || strings.Count(said.String(), "is available again") != 1 {
		t.Errorf("logs %s", &said)
	}
	if newMailWatch(nil, nil) != nil {
		t.Error("a sender without a server has one")
	}
}

// TestDeliveryMetrics: what the dispatcher tells is counted, by subscription.
func TestDeliveryMetrics(t *testing.T) {
	t.Parallel()
	id := db.NewID[domain.WebhookKind]()
	m := newDeliveryMetrics()
	prometheus.NewPedanticRegistry().MustRegister(m.tries, m.seconds, m.dropped, m.disabled)
	m.tried(id, webhook.Succeeded, time.Second)
	m.tried(id, webhook.Retried, 2*time.Second)
	for label, want := range map[[2]string]float64{
		{id.String(), string(webhook.Succeeded)}: 1, {id.String(), string(webhook.Retried)}: 1, {domain.OtherLabel, string(webhook.Lost)}: 0,
	} {
		if got := testutil.ToFloat64(m.tries.WithLabelValues(label[:]...)); got != want {
			t.Errorf("%v: %v, not %v", label, got, want)
		}
	}
	if n := testutil.CollectAndCount(m.tries); n != 2+len(webhook.Outcomes) { // 0 is shown too
		t.Errorf("%d series", n)
	}
}
