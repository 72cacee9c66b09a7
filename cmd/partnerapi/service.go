package main

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alecthomas/kong"
	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"

	"partnerapi/cmd/internal/extension"
	"partnerapi/db"
	"partnerapi/db/cells"
	"partnerapi/db/doctor"
	"partnerapi/domain"
	"partnerapi/platform/site"
	v2 "partnerapi/v2"
	"partnerapi/v2/op/ginop"
)

// pluginCommands returns the commands of extensions.
func pluginCommands() kong.Plugins {
	var plugins kong.Plugins
	for _, e := range extensions {
		plugins = append(plugins, e.Commands())
	}
	return plugins
}

// service is what serve runs and extensions are mounted on.
type service struct {
	config    serveCmd
	db        *db.DB
	api       *v2.API
	edge      *ginop.Edge
	engine    *gin.Engine
	clock     domain.Clock
	redis     *redisClient
	cells     *cells.Cells // nil if there is only one
	work      *background  // nil where other processes work
	notice    site.Notice  // of an extension
	documents *site.Documents
	pages     *site.Site
	brand     atomic.Pointer[domain.Brand] // the service's own
	// group has the goroutines that run besides the requests, until the service ends.
	group sync.WaitGroup
	// atEnd are called after the last response and the group has ended, each within recordWithin.
	atEnd   []func(context.Context)
	log     *slog.Logger
	metrics *prometheus.Registry
	// disks are the disks that the process writes to, the data directory's first;
	// embedded reports whether the database is there too.
	disks    []*doctor.Disk
	embedded bool
	// stopping reports whether the service is stopping; after is time.After, except in tests.
	stopping atomic.Bool
	after    func(time.Duration) <-chan time.Time
	// migrated reports whether the tables were found to be this version's. They may become a newer version's later.
	migrated atomic.Bool
}

// host returns the service as extensions see it.
func (s *service) host() extension.Host {
	host := extension.Host{
		DB: s.db, API: s.api, Edge: s.edge, Engine: s.engine, Clock: s.clock, Release: s.config.Release,
		Documents: s.documents, Log: s.log, Notify: func(n site.Notice) { s.notice = n }, Beside: s.runInBackground, AtEnd: func(end func(context.Context)) { s.atEnd = append(s.atEnd, end) },
	}
	if s.redis != nil { // else host.Redis would be an interface that holds nil, and so not equal to nil
		host.Redis = s.redis
	}
	return host
}
