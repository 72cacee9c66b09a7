package main

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// readyWithin is how long the database may take to say that it is there.
const readyWithin = 3 * time.Second

// health adds what an operator watches: whether the process is up, whether it
// can do its work, and its figures.
func (s *service) health() {
	var migrated atomic.Bool // tables do not go back
	s.engine.GET("/healthz", func(c *gin.Context) { c.String(http.StatusOK, "ok\n") })
	s.engine.GET("/readyz", func(c *gin.Context) {
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
	s.engine.GET("/metrics", gin.WrapH(promhttp.HandlerFor(s.metrics, promhttp.HandlerOpts{})))
}
