package ginop

import (
	"errors"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"partnerapi/domain"
)

// loggedAgent and maxLoggedQuery are how many bytes of a User-Agent and of a query are
// logged; 500 ids fit.
const loggedAgent, maxLoggedQuery = 200, 16 << 10

// logged are the parameters of a query that are logged: which rows and which page were
// asked for. What else may stand there can be a key, a cursor or somebody's name.
var logged = []string{
	"client_id", "end", "ids", "limit", "message_types", "offset", "since", "sort", "start", "status", "type", "types", "until",
	"updated_since",
}

// loggedQuery is what is logged of a query.
func loggedQuery(raw string) string {
	if raw == "" {
		return ""
	}
	query, _ := url.ParseQuery(raw) // with what can be read of it
	for name := range query {
		if !slices.Contains(logged, name) {
			delete(query, name)
		}
	}
	return clip(query.Encode(), maxLoggedQuery)
}

// observe counts a request that has been answered, and logs it; what was
// refused for its key or its budget is logged in summary.
func (e *Edge) observe(c *gin.Context, s *Surface, operation string, took time.Duration, err error) {
	status := c.Writer.Status()
	ctx := c.Request.Context()
	caller := domain.CallerFrom(ctx)
	key := caller.Prefix
	for _, watch := range e.watchers {
		answered := Answered{Surface: s.prefix[1:], Operation: operation, Status: status, UserAgent: c.Request.UserAgent()}
		if key != "" {
			answered.Caller = caller
		}
		watch(answered)
	}
	e.Metrics.count(s.prefix[1:], operation, status, took, key)
	if e.Tracing != nil {
		e.Tracing.Answered(ctx, key, err)
	}
	e.Metrics.refuse(caller, status, err)
	if summed[status] != "" {
		e.refusals.add(refused{status, key, countedAddress(c)})
		return
	}

	level := slog.LevelInfo
	if status >= 500 {
		level = slog.LevelError
	}
	if !e.Log.Enabled(ctx, level) {
		return
	}
	// The record is made here, as nothing shows the place in the code that the logger
	// would look for.
	line := slog.NewRecord(time.Now(), level, "request", 0)
	line.AddAttrs(
		slog.String("request_id", RequestID(c)), slog.String("method", c.Request.Method),
		slog.String("path", c.Request.URL.Path), slog.String("operation", operation), slog.Int("status", status),
		slog.Duration("took", took), slog.String("key", key), slog.String("address", addressOf(c)),
		slog.String("user_agent", clip(c.Request.UserAgent(), loggedAgent)),
	)
	if query := loggedQuery(c.Request.URL.RawQuery); query != "" {
		line.AddAttrs(slog.String("query", query))
	}
	if cause := causeOf(err); cause != "" {
		line.AddAttrs(slog.String("error", cause))
	}
	_ = e.Log.Handler().Handle(ctx, line) // as the logger does
}

// causeOf is what a log says of a request's error beyond its status.
func causeOf(err error) string {
	var known *domain.Error
	switch {
	case err == nil:
	case !errors.As(err, &known):
		return err.Error()
	case known.Cause != nil:
		return known.Error()
	}
	return ""
}

// clip returns the first n bytes of a text, in whole characters.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "")
}
