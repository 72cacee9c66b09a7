package main

import (
	"context"
	"crypto/sha256"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/gin-contrib/gzip"
	"github.com/gin-contrib/requestid"
	"github.com/gin-gonic/gin"
	"github.com/hashicorp/golang-lru/v2/expirable"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	sloggin "github.com/samber/slog-gin"
	measured "github.com/slok/go-http-metrics/metrics/prometheus"
	"github.com/slok/go-http-metrics/middleware"
	ginmeasured "github.com/slok/go-http-metrics/middleware/gin"
	tokens "golang.org/x/time/rate"
)

// newUsual is the reference with what a service has beside its handlers, from the
// middlewares that people take for Gin: recovery, request ids, an access log into
// nothing, a histogram of Prometheus, gzip, keys that are looked up and cached, and a
// rate limiter for each key, which refuses none.
func newUsual(ctx context.Context, p params) http.Handler {
	log := slog.New(slog.NewTextHandler(justNothing{io.Discard}, &slog.HandlerOptions{Level: slog.LevelInfo}))
	metrics := middleware.New(middleware.Config{
		Recorder: measured.NewRecorder(measured.Config{Registry: prometheus.NewRegistry()}),
	})
	return openReference(ctx, p, func(pool *pgxpool.Pool) []gin.HandlerFunc {
		return []gin.HandlerFunc{
			gin.Recovery(), requestid.New(), sloggin.New(log), ginmeasured.Handler("", metrics),
			gzip.Gzip(gzip.DefaultCompression), keyed(pool), limited(),
		}
	})
}

// keyed lets requests with a valid key through. A key is looked up once in 15 seconds,
// as the service does.
func keyed(pool *pgxpool.Pool) gin.HandlerFunc {
	known := expirable.NewLRU[[sha256.Size]byte, bool](10_000, nil, 15*time.Second)
	return func(c *gin.Context) {
		digest := sha256.Sum256([]byte(c.GetHeader("X-API-Key")))
		valid, found := known.Get(digest)
		if !found {
			err := pool.QueryRow(c.Request.Context(), `SELECT count(*) > 0 FROM api_keys
				WHERE digest = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())`, digest[:]).Scan(&valid)
			if err != nil {
				c.AbortWithStatusJSON(http.StatusInternalServerError, gin.H{"error": "internal"})
				return
			}
			known.Add(digest, valid)
		}
		if !valid {
			c.AbortWithStatusJSON(http.StatusUnauthorized, gin.H{"error": "no valid key"})
		}
	}
}

// limited counts the requests of each key.
func limited() gin.HandlerFunc {
	var limiters sync.Map
	return func(c *gin.Context) {
		key := c.GetHeader("X-API-Key")
		limiter, found := limiters.Load(key)
		if !found {
			limiter, _ = limiters.LoadOrStore(key, tokens.NewLimiter(1e9, 1e9))
		}
		if !limiter.(*tokens.Limiter).Allow() {
			c.AbortWithStatusJSON(http.StatusTooManyRequests, gin.H{"error": "too many requests"})
		}
	}
}
