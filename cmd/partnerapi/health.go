package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"partnerapi/db/migrate"
)

// readyWithin is how long the database may take to say that it is there.
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
			"not ready: the database cannot be used\n" + fullDisk(s.disks[0], s.embedded, false)
	}
	return http.StatusOK, "ready\n" + fullDisk(s.disks[0], s.embedded, true)
}

// watchDisks has the disks watched that the process writes to.
func (s *service) watchDisks(at databaseFlags, reports reportStoreFlag) {
	s.disks, s.embedded = disks(at.DataDir, reports), at.DatabaseURL == ""
	s.metrics.MustRegister(diskFigures(s.disks))
}

// openToAll adds a path that needs no key. HEAD works as GET does.
func (s *service) openToAll(path string, handler gin.HandlerFunc) {
	s.engine.GET(path, handler)
	s.engine.HEAD(path, handler)
}

type healthCmd struct {
	Listen string `default:"${listen}" help:"The address to listen on."`
	URL    string `arg:"" optional:"" help:"Where to ask. Default: the address of --listen, on this machine."`
}

// Help says what it is for.
func (healthCmd) Help() string {
	return `Asks /readyz of a running serve or work, for supervisors and containers. The exit status is 0 if it is ready, 1 if it is not, or does not answer within 5 seconds.`
}

// healthWithin is how long a process may take to say that it is ready: longer than
// it gives its database.
const healthWithin = readyWithin + 2*time.Second

// Run fails unless the process is ready.
func (c healthCmd) Run(ctx context.Context, s streams) error {
	at := c.URL
	if at == "" {
		at = reachedAt(c.Listen)
	}
	u, err := url.Parse(at)
	if err != nil || u.Host == "" {
		return fmt.Errorf("%q is no URL, such as http://127.0.0.1:8080", at)
	}
	ctx, cancel := context.WithTimeout(ctx, healthWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.JoinPath("/readyz").String(), nil)
	if err != nil {
		return err
	}
	client := newHTTPClient(&http.Transport{}, 0) // no proxy of the environment
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1024))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(text)))
	}
	_, err = s.out.Write(text)
	return err
}
