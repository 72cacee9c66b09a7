package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/config"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/figures"
	"partnerapi/db/doctor"
	"partnerapi/db/pg"
)

// readyWithin is the timeout of the database check, shorter than the timeout of the command health.
const readyWithin = 3 * time.Second

// mountHealth adds the liveness and readiness paths.
func (s *service) mountHealth() {
	s.openPath("/healthz", func(c *gin.Context) { c.String(http.StatusOK, "ok\n") })

	s.openPath("/readyz", func(c *gin.Context) {
		code, text := s.ready(c.Request.Context())
		c.String(code, "%s", text)
	})
}

// ready returns the status and the text for /readyz: 503 if the service is stopping, the database cannot
// be used, its tables are not at the version that this program needs, or the role lacks rights on them; otherwise 200.
// The text says if the disk of the data directory, disks[0], is nearly full, but the process stays ready, as no other
// process could serve more requests.
func (s *service) ready(ctx context.Context) (code int, text string) {
	if s.stopping.Load() {
		return http.StatusServiceUnavailable, "not ready: the service is stopping\n"
	}
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	err := s.db.Ping(ctx)
	if err == nil {
		err = s.checkTables(ctx)
	}
	if err != nil {
		s.log.WarnContext(ctx, "not ready", "error", err)
		reason := "the database is unavailable"
		if errors.Is(err, errRights) {
			reason = "the database role lacks rights; partnerapi doctor prints the GRANT statements to run"
		}
		return http.StatusServiceUnavailable, "not ready: " + reason + "\n" + fullDisk(s.disks[0], s.embedded, false)
	}
	return http.StatusOK, "ready\n" + fullDisk(s.disks[0], s.embedded, true)
}

// errRights is the error of a role that lacks rights on tables or sequences.
var errRights = errors.New("the role lacks rights")

// checkTables returns an error unless the tables are at the version that this program needs, or were so before and now
// are at a newer one, and the role has its rights on them. It wraps errRights if rights are missing, but does not check
// those on the tables of a newer version: this program does not use what that version added.
func (s *service) checkTables(ctx context.Context) error {
	tables, err := doctor.ReadTables(ctx, s.db)
	if err == nil && !s.migrated.Load() {
		err = cmp.Or(tables.Newer, tables.Missing)
		s.migrated.Store(err == nil)
	}
	if err != nil && !pg.Denied(err) || tables.Newer != nil {
		return err
	}
	role, roleErr := doctor.ReadRole(ctx, s.db)
	if roleErr == nil && role.Denied != "" {
		return fmt.Errorf("%w on %s; run as the owner of the tables: %s", errRights, role.Denied, role.Grants())
	}
	return errors.Join(err, roleErr)
}

// fullDisk describes what the service can still do while the data disk is nearly full, given whether the database is
// embedded and whether it answers. It is empty if there is room, or the free space is unknown. An embedded database
// refuses writes on a full disk, and stops when its log cannot grow.
func fullDisk(d *doctor.Disk, embedded, answers bool) string {
	free, known := d.FreeNow()
	if !known || free >= doctor.DiskFail {
		return ""
	}
	served := "reads and writes are served; reports and emails in files may wait until there is space"
	switch {
	case embedded && !answers:
		served = "nothing is served; the database restarts when there is space"
	case !answers:
		served = "nothing is served, because the database, which is on another disk, is unavailable"
	case embedded:
		served = "reads are served; writes, reports and emails may fail until there is space"
	}
	return fmt.Sprintf("the disk of %s is nearly full (%d MiB left): %s\n", d.Dir, free>>20, served)
}

// registerDisks adds the metrics of the disks that the process writes to, and keeps the disks for ready.
func (s *service) registerDisks(at database.Flags, reports config.StoreFlag) {
	reportDir, _ := reports.Folder(at.DataDir) // empty unless the store is a local folder
	for _, folder := range []struct{ name, dir string }{{"data", at.DataDir}, {"temporary", os.TempDir()}, {"reports", reportDir}} {
		if folder.dir != "" {
			s.disks = append(s.disks, &doctor.Disk{Name: folder.name, Dir: folder.dir, Free: doctor.FreeBytes})
		}
	}
	s.embedded = at.DatabaseURL == ""
	s.metrics.MustRegister(figures.DiskFigures(s.disks))
}

// openPath adds a path that needs no key, for GET and HEAD.
func (s *service) openPath(path string, handler gin.HandlerFunc) {
	s.engine.GET(path, handler)
	s.engine.HEAD(path, handler)
}

// mountMetrics adds the metrics to the API if they have no separate address and only this machine can reach the
// API: they name keys and their use.
func (s *service) mountMetrics() {
	switch {
	case s.config.MetricsListen != "": // serveMetrics serves them
	case cli.OnLoopback(s.config.Listen):
		s.openPath("/metrics", gin.WrapH(s.metricsHandler()))
	default:
		s.log.Info("metrics are off, because other machines can access the API; to serve metrics, set --metrics-listen")
	}
}

// metricsHandler serves the metrics.
func (s *service) metricsHandler() http.Handler {
	return promhttp.HandlerFor(s.metrics, promhttp.HandlerOpts{})
}

// serveMetrics serves the metrics on their own listener until stop is called. Without a listener it does nothing.
func (s *service) serveMetrics(listener net.Listener) (stop func() error) {
	if listener == nil {
		return func() error { return nil }
	}
	s.log.Info("serving metrics at a separate address", "address", listener.Addr().String())
	paths := http.NewServeMux()
	paths.Handle("GET /metrics", s.metricsHandler())
	return serveBeside(listener, paths, s.log)
}

// serveBeside serves paths for operators on a separate listener until stop is called. A failure is only logged.
func serveBeside(listener net.Listener, paths http.Handler, log *slog.Logger) (stop func() error) {
	server := &http.Server{
		Handler: paths, ReadHeaderTimeout: timeouts.headers, ReadTimeout: readWithin, WriteTimeout: readWithin,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Warn("health and metrics are no longer served", "error", err)
		}
	}()
	return func() error {
		err := server.Close()
		<-ended
		return err
	}
}
