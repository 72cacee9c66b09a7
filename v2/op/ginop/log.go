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

// maxLoggedAgent, maxLoggedPath and maxLoggedQuery bound the logged bytes of a User-Agent, a path and a query. The path
// of every operation fits, and a query with 500 IDs. Escaping makes a line up to four times as long.
const maxLoggedAgent, maxLoggedPath, maxLoggedQuery = 200, 500, 16 << 10

// loggedParams are the query parameters that may be logged: filters and page. Others may hold keys, cursors or names.
var loggedParams = []string{
	"client_id", "end", "ids", "limit", "message_types", "offset", "since", "sort", "start", "status", "type", "types", "until",
	"updated_since",
}

// loggedQuery returns the part of a query that may be logged.
func loggedQuery(raw string) string {
	if raw == "" {
		return ""
	}
	query, _ := url.ParseQuery(raw) // it returns the valid parameters even with an error
	for name := range query {
		if !slices.Contains(loggedParams, name) {
			delete(query, name)
		}
	}
	return truncateText(query.Encode(), maxLoggedQuery)
}

// observe reports an answered request to watchers, metrics and tracing, and logs it. Requests with one of
// summedStatuses are logged in sums instead. err is the error that was rendered; nil for a success.
func (e *Edge) observe(c *gin.Context, s *Surface, operation string, took time.Duration, err error) {
	status := c.Writer.Status()
	ctx := c.Request.Context()
	caller := domain.CallerFrom(ctx)
	key := caller.Used()
	for _, watch := range e.watchers {
		answered := Answered{Surface: s.prefix[1:], Operation: operation, Status: status, UserAgent: c.Request.UserAgent()}
		if key != "" {
			answered.Caller = caller
		}
		watch(answered)
	}
	e.Metrics.observe(s.prefix[1:], operation, status, took, caller, err)
	if e.Tracing != nil {
		e.Tracing.Answered(ctx, key, err)
	}
	if summedStatuses[status] != "" {
		e.refusals.add(refusalKey{status, key, countedAddress(c)})
		return
	}

	level := slog.LevelInfo
	if status >= 500 {
		level = slog.LevelError
	}
	if !e.Log.Enabled(ctx, level) {
		return
	}
	// A record that is created here needs no look-up of its source line, which the log does not show.
	line := slog.NewRecord(time.Now(), level, "request", 0)
	line.AddAttrs(
		slog.String("request_id", RequestID(c)), slog.String("method", c.Request.Method),
		slog.String("path", truncateText(c.Request.URL.Path, maxLoggedPath)), slog.String("operation", operation), slog.Int("status", status),
		slog.Duration("took", took), slog.String("key", key), slog.String("address", addressOf(c)),
		slog.String("user_agent", truncateText(c.Request.UserAgent(), maxLoggedAgent)),
	)
	if query := loggedQuery(c.Request.URL.RawQuery); query != "" {
		line.AddAttrs(slog.String("query", query))
	}
	if cause := causeOf(err); cause != "" {
		line.AddAttrs(slog.String("error", cause))
	}
	_ = e.Log.Handler().Handle(ctx, line) // as the logger does
}

// causeOf returns the text of an error for the log, if the response does not contain it: of an error with a Cause, or
// of one that is no domain.Error. It is empty otherwise.
func causeOf(err error) string {
	var domainErr *domain.Error
	switch {
	case err == nil: // no text
	case !errors.As(err, &domainErr):
		return err.Error()
	case domainErr.Cause != nil:
		return domainErr.Error()
	}
	return ""
}

// truncateText returns the first n bytes of a text, without a character that is cut.
func truncateText(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "")
}
