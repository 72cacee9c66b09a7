package main

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"partnerapi/cmd/internal/config"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/figures"
)

// TestDiskIsWatched: what is free is a metric, and readiness says of a full disk what
// is still served. A folder that is not there, or whose disk hangs, says nothing.
func TestDiskIsWatched(t *testing.T) {
	t.Parallel()
	free := uint64(99 << 20)
	full := &figures.Disk{Name: "data", Dir: "/srv/data", Free: func(string) (uint64, error) { return free, nil }}
	away := &figures.Disk{Name: "reports", Dir: "/away", Free: figures.FreeBytes}
	want := "# HELP partnerapi_disk_free_bytes How much may still be written to the disk of a folder.\n" +
		"# TYPE partnerapi_disk_free_bytes gauge\npartnerapi_disk_free_bytes{folder=\"data\"} 1.03809024e+08\n"
	if err := testutil.CollectAndCompare(figures.DiskFigures{full, away}, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	for _, want := range []struct {
		embedded, answers bool
		words             string
	}{
		{true, true, "reads are served; writes,"}, {true, false, "nothing is served; the database starts again"},
		{false, true, "reads and writes are served; reports,"}, {false, false, "nothing is served, as the database,"},
	} {
		said := figures.FullDisk(full, want.embedded, want.answers)
		if !strings.Contains(said, "/srv/data is nearly full (99 MiB left): "+want.words) {
			t.Errorf("says %q", said)
		}
	}
	free = figures.DiskFail
	if said := figures.FullDisk(full, true, true) + figures.FullDisk(away, true, true); said != "" {
		t.Errorf("with room it says %q", said)
	}
	full.Asked.Store(figures.DiskAsked)
	if _, known := full.Left(); known || full.Asked.Load() != figures.DiskAsked {
		t.Error("a disk that hangs is asked again and again")
	}
}

// TestReadyWithFullDisk: a process whose disk is nearly full stays ready, and says so.
func TestReadyWithFullDisk(t *testing.T) {
	t.Parallel()
	d := opened(t, databaseFlag(t))
	s := &service{db: d, log: slog.New(slog.DiscardHandler), metrics: prometheus.NewRegistry()}
	s.watchDisks(database.Flags{DataDir: t.TempDir()}, config.StoreFlag{})
	s.disks[0].Free = func(string) (uint64, error) { return 1 << 20, nil }
	code, said := s.ready(t.Context())
	if code != http.StatusOK || !strings.HasPrefix(said, "ready\nthe disk of ") ||
		!strings.Contains(said, ": reads are served") {
		t.Errorf("%d %q", code, said)
	}
	_ = d.Close()
	code, said = s.ready(t.Context())
	if code != http.StatusServiceUnavailable ||
		!strings.HasPrefix(said, "not ready: the database cannot be used\nthe disk of ") {
		t.Errorf("without the database %d %q", code, said)
	}
}
