// Package extension says what a part of the program has that can be deleted with its
// package.
package extension

import (
	"context"
	"log/slog"

	"github.com/gin-gonic/gin"
	"github.com/gomodule/redigo/redis"

	"partnerapi/cmd/internal/cli"
	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/site"
	v2 "partnerapi/v2"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
)

// Extension is a removable part of the program in its own package, such as an older version of the interface. Only
// main's list refers to it.
type Extension struct {
	// Commands points to a struct of Kong commands, of which each command line has one
	// of its own.
	Commands any
	// Examples are command lines of these, by the commands' paths.
	Examples map[string][]string
	// Tables are the extension's own.
	Tables cli.Tables
	// Mount adds the extension's routes. Its background work ends with ctx.
	Mount func(context.Context, Host) error
	// Document prints the extension's OpenAPI document under a name.
	Name     string
	Document func() ([]byte, error)
	// Routes lists the extension's routes in the order they are documented.
	Routes func() []Route
	// Reference is what the extension's reference is made of; Guides names the
	// guides that are about it, and GuidePaths where those of them are served that are
	// not below /docs/guide. Operate names those for operators.
	Reference  func() (site.Reference, error)
	Guides     site.Group
	GuidePaths map[string]string
	Operate    []string
	// Greet returns commands to try, for the greeting of a demonstration.
	Greet func(ctx context.Context, d *db.DB, address, key string, client domain.ClientID) ([]string, error)
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
	Redis     Redis // nil where there is none
	Log       *slog.Logger
	// Notify has the pages for people show a notice.
	Notify func(site.Notice)
	// Beside runs work, which lasts until ctx ends, beside the requests.
	Beside func(ctx context.Context, doing string, work func(context.Context))
	// AtEnd notes what is left to do when the last request was answered, within a bound.
	AtEnd func(func(context.Context))
}

// Route is a route of an extension.
type Route struct {
	ID, Method, Path string
	Operation        *op.Meta // that it stands on
	Fails            []int    // the statuses of failure, ascending
}

// Redis provides connections to the shared Redis.
type Redis interface {
	// Use calls fn with a connection, which is fn's until it returns. Where Redis had
	// closed it, fn is called again, with another one.
	Use(ctx context.Context, fn func(redis.Conn) error) error
}
