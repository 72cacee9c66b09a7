package main

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"partnerapi/cmd/internal/config"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/figures"
	"partnerapi/db/migrate"
)

// readyWithin is how long the database may take to say that it is there: less than the
// command health waits.
const readyWithin = 3 * time.Second

// health adds what an operator watches: whether the process is up, and whether
// it can do its work.
func (s *service) health() {
	s.openToAll("/healthz", func(c *gin.Context) { c.String(http.StatusOK, "ok\n") })

	s.openToAll("/readyz", func(c *gin.Context) {
		code, text := s.ready(c.Request.Context())
		c.String(code, "%s", text)
	})
}

// ready says whether the process can do its work, and what is short while it can. A
// full disk leaves it ready: what it can serve would be served by no other either.
func (s *service) ready(ctx context.Context) (code int, text string) {
	if s.stopping.Load() {
		return http.StatusServiceUnavailable, "not ready: the service stops\n"
	}
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	err := s.db.Ping(ctx)
	if err == nil && !s.migrated.Load() {
		err = migrate.Migrated(ctx, s.db)
		s.migrated.Store(err == nil)
	}
	if err != nil {
		s.log.WarnContext(ctx, "not ready", "error", err)
		return http.StatusServiceUnavailable,
			"not ready: the database cannot be used\n" + figures.FullDisk(s.disks[0], s.embedded, false)
	}
	return http.StatusOK, "ready\n" + figures.FullDisk(s.disks[0], s.embedded, true)
}

// watchDisks has the disks watched that the process writes to.
func (s *service) watchDisks(at database.Flags, reports config.StoreFlag) {
	s.disks, s.embedded = figures.Disks(at.DataDir, reports), at.DatabaseURL == ""
	s.metrics.MustRegister(figures.DiskFigures(s.disks))
}

// openToAll adds a path that needs no key. HEAD works as GET does.
func (s *service) openToAll(path string, handler gin.HandlerFunc) {
	s.engine.GET(path, handler)
	s.engine.HEAD(path, handler)
}
