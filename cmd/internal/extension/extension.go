// Package extension describes a part of the program that can be deleted with its package.
package extension

import (
	"context"
	"log/slog"

	"github.com/gin-gonic/gin"
	"github.com/gomodule/redigo/redis"

	"partnerapi/db"
	"partnerapi/db/doctor"
	"partnerapi/domain"
	"partnerapi/platform/site"
	v2 "partnerapi/v2"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
)

// Extension is a removable part of the program in its own package, such as an older version of the interface. Only
// main's list refers to it.
type Extension struct {
	// Commands returns a pointer to a new struct of Kong commands.
	Commands func() any
	// Tables are the tables of the extension.
	Tables doctor.Tables
	// Mount adds the extension's routes. Its background work ends with ctx.
	Mount func(context.Context, Host) error
	// Name is the name of the extension's OpenAPI document, which Document returns as YAML.
	Name     string
	Document func() ([]byte, error)
	// Routes lists the extension's routes in the order they are documented.
	Routes func() []Route
	// Reference returns the source of the extension's reference. Guides names its guides; GuidePaths maps those
	// served outside /docs/guide to their paths. Operate names its guides for operators.
	Reference  func() (site.Reference, error)
	Guides     site.Group
	GuidePaths map[string]string
	Operate    []string
	// Greet returns commands to try, for the greeting of a demonstration.
	Greet func(context.Context, Demonstration) ([]string, error)
}

// Demonstration is a demonstration to greet with.
type Demonstration struct {
	DB *db.DB
	// Program is the program's name in a shell, and Address the URL of the service.
	Program, Address string
	Key              string
	Client           domain.ClientID
	Release          op.Release
}

// Host is the service that an extension is mounted on.
type Host struct {
	DB      *db.DB
	API     *v2.API
	Edge    *ginop.Edge
	Engine  *gin.Engine
	Clock   domain.Clock
	Release op.Release
	// Documents names the service as its callers know it.
	Documents *site.Documents
	Redis     Redis // nil if there is none
	Log       *slog.Logger
	// Notify sets the notice that the pages for people show.
	Notify func(site.Notice)
	// Beside runs work, which lasts until ctx ends, in its own goroutine. action names the work in the log.
	Beside func(ctx context.Context, action string, work func(context.Context))
	// AtEnd adds a function that is called after the last request, with a context that has a timeout.
	AtEnd func(func(context.Context))
}

// Route is a route of an extension.
type Route struct {
	ID, Method, Path string
	Operation        *op.Meta // the operation that it calls
	Fails            []int    // the statuses of failure, ascending
}

// Redis provides connections to the shared Redis.
type Redis interface {
	// Use calls fn with a connection, which only fn uses until it returns. If Redis had closed it, Use calls fn
	// again, with another one.
	Use(ctx context.Context, fn func(redis.Conn) error) error
}
