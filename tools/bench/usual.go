package main

import (
	"context"
	"crypto/sha256"
	"net/http"
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
	limits "golang.org/x/time/rate"
)

// newUsual returns the reference with what a service has besides its handlers, from the usual middlewares for Gin:
// recovery, request IDs, a discarded access log, a histogram of Prometheus, gzip, cached keys, and a rate limiter for
// each key, which rejects none.
func newUsual(ctx context.Context, p params) http.Handler {
	metrics := middleware.New(middleware.Config{
		Recorder: measured.NewRecorder(measured.Config{Registry: prometheus.NewRegistry()}),
	})
	return openReference(ctx, p, func(pool *pgxpool.Pool) []gin.HandlerFunc {
		return []gin.HandlerFunc{
			gin.Recovery(), requestid.New(), sloggin.New(discarded()), ginmeasured.Handler("", metrics),
			gzip.Gzip(gzip.DefaultCompression), keyed(pool),
		}
	})
}

// keyed rejects requests without a valid key, and counts those of each key. It looks up a key once in 15 seconds, as the
// service does.
func keyed(pool *pgxpool.Pool) gin.HandlerFunc {
	type key struct {
		valid bool
		*limits.Limiter
	}
	known := expirable.NewLRU[[sha256.Size]byte, key](10_000, nil, 15*time.Second)
	return func(c *gin.Context) {
		digest := sha256.Sum256([]byte(c.GetHeader("X-API-Key")))
		k, found := known.Get(digest)
		if !found {
			err := pool.QueryRow(c.Request.Context(), `SELECT count(*) > 0 FROM api_keys
				WHERE digest = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())`, digest[:]).Scan(&k.valid)
			if err != nil {
				c.AbortWithStatusJSON(http.StatusInternalServerError, gin.H{"error": "internal"})
				return
			}
			k.Limiter = limits.NewLimiter(1e9, 1e9)
			known.Add(digest, k)
		}
		if !k.valid {
			c.AbortWithStatusJSON(http.StatusUnauthorized, gin.H{"error": "no valid key"})
		} else if !k.Allow() {
			c.AbortWithStatusJSON(http.StatusTooManyRequests, gin.H{"error": "too many requests"})
		}
	}
}
