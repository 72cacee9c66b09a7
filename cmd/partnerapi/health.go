package main

import (
	"net/http"
	"sync/atomic"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// health adds what an operator watches: whether the process is up, whether it
// can do its work, and its figures.
func (s *service) health() {
	var migrated atomic.Bool // tables do not go back
	s.engine.GET("/healthz", func(c *gin.Context) { c.String(http.StatusOK, "ok\n") })
	s.engine.GET("/readyz", func(c *gin.Context) {
		ctx := c.Request.Context()
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
