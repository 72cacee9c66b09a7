package main

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
)

// readyWithin is how long the database may take to say that it is there.
const readyWithin = 3 * time.Second

// health adds what an operator watches: whether the process is up, and whether
// it can do its work.
func (s *service) health() {
	s.openToAll("/healthz", func(c *gin.Context) { c.String(http.StatusOK, "ok\n") })

	var migrated atomic.Bool // tables do not go back
	s.openToAll("/readyz", func(c *gin.Context) {
		if s.stopping.Load() {
			c.String(http.StatusServiceUnavailable, "not ready: the service stops\n")
			return
		}
		ctx, cancel := context.WithTimeout(c.Request.Context(), readyWithin)
		defer cancel()
		err := s.db.Ping(ctx)
		if err == nil && !migrated.Load() {
			err = s.db.Migrated(ctx)
			migrated.Store(err == nil)
		}
		if err != nil {
			s.log.WarnContext(ctx, "not ready", "error", err)
			c.String(http.StatusServiceUnavailable, "not ready: the database cannot be used\n")
			return
		}
		c.String(http.StatusOK, "ready\n")
	})
}

// openToAll adds a path that needs no key. HEAD works as GET does.
func (s *service) openToAll(path string, handler gin.HandlerFunc) {
	s.engine.GET(path, handler)
	s.engine.HEAD(path, handler)
}
