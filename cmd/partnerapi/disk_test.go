package main

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"partnerapi/cmd/internal/config"
	"partnerapi/cmd/internal/database"
)

// TestReadyWithFullDisk: a process whose disk is nearly full stays ready, and says so.
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
	_ = d.Close()
	code, said = s.ready(t.Context())
	if code != http.StatusServiceUnavailable ||
		!strings.HasPrefix(said, "not ready: the database cannot be used\nthe disk of ") {
		t.Errorf("without the database %d %q", code, said)
	}
}
