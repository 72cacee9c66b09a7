package main

import (
	"context"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alecthomas/kong"
	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"

	"partnerapi/db"
	"partnerapi/db/migrate"
	"partnerapi/domain"
	"partnerapi/platform/site"
	v2 "partnerapi/v2"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
)

// extension is a part of the program that can be deleted with its file: an
// older version of the interface. The rest knows extensions by this list only.
type extension struct {
	// commands points to a struct of Kong commands, of which each command line has one
	// of its own.
	commands any
	// migrate brings the extension's own tables up to date.
	migrate func(context.Context, *db.DB) error
	// steps are the migrations of those tables.
	steps func(context.Context, *db.DB) ([]migrate.Step, error)
	// version returns the version that the extension's own tables are at, and
	// the one that is needed.
	version func(context.Context, *db.DB) (have, want int64, err error)
	// mount adds the extension's routes. Its background work ends with ctx.
	mount func(context.Context, *service) error
	// document prints the extension's OpenAPI document under a name.
	name     string
	document func(*v2.API) ([]byte, error)
	// routes lists the extension's routes in the order they are documented.
	routes func(*v2.API) []route
	// reference is what the extension's reference is made of; guides names the
	// guides that are about it, and guidePaths where those of them are served that are
	// not below /docs/guide.
	reference  func(*v2.API) (site.Reference, error)
	guides     []string
	guidePaths map[string]string
	// greet returns commands to try, for the greeting of a demonstration.
	greet func(ctx context.Context, d *db.DB, address, key string, client domain.ClientID) ([]string, error)
}

// route is a route of an extension.
type route struct {
	id, method, path string
	operation        *op.Meta // that it stands on
	fails            []int    // the statuses of failure, ascending
}

// extensions is filled by the extensions' own files.
var extensions []extension

func pluginCommands() kong.Plugins {
	var plugins kong.Plugins
	for _, e := range extensions {
		if e.commands != nil {
			plugins = append(plugins, reflect.New(reflect.TypeOf(e.commands).Elem()).Interface())
		}
	}
	return plugins
}

// service is what extensions build on.
type service struct {
	config serveCmd
	db     *db.DB
	api    *v2.API
	edge   *ginop.Edge
	engine *gin.Engine
	clock  domain.Clock
	redis  *redisClient
	work   *background // nil where other processes work
	// group is what runs beside the requests; it ends with the service.
	group sync.WaitGroup
	// atEnd is what is left to do when the last request was answered and the group
	// has ended, within recordWithin.
	atEnd   []func(context.Context)
	log     *slog.Logger
	metrics *prometheus.Registry
	// disks are those that the process writes to, that of the data directory first;
	// embedded says that the database is there too.
	disks    []*disk
	embedded bool
	// stopping says that the service was told to stop; after waits, as
	// time.After does.
	stopping atomic.Bool
	after    func(time.Duration) <-chan time.Time
	// migrated says that the tables were seen to be this version's: they do not go back.
	migrated atomic.Bool
}
