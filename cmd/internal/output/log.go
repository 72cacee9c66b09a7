package output

import (
	"context"
	"io"
	"log/slog"
	"regexp"

	"go.opentelemetry.io/otel/trace"

	"partnerapi/domain"
)

// NewLog returns the log of a service, in text or JSON. It redacts API keys wherever they occur, such as a path, a
// request id or a database error, and passwords in addresses. Durations are written alike in both formats: 1.5s.
func NewLog(to io.Writer, level slog.Level, format string) *slog.Logger {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: cleanAttr}
	if format == "json" {
		return slog.New(contextHandler{slog.NewJSONHandler(ForJSON(to), options)})
	}
	return slog.New(contextHandler{slog.NewTextHandler(to, options)})
}

// contextHandler adds the ids of the request, the trace and the span in a line's context.
type contextHandler struct{ slog.Handler }

// Handle adds the request id, unless the line has one, and the trace and span of ctx, if it has them.
func (h contextHandler) Handle(ctx context.Context, line slog.Record) error {
	line = line.Clone()
	if id := domain.RequestFrom(ctx); id != "" && !hasAttr(line, "request_id") {
		line.AddAttrs(slog.String("request_id", id))
	}
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		line.AddAttrs(slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String()))
	}
	return h.Handler.Handle(ctx, line)
}

// hasAttr reports whether a line has an attribute.
func hasAttr(line slog.Record, key string) (found bool) {
	line.Attrs(func(a slog.Attr) bool {
		found = a.Key == key
		return !found
	})
	return found
}

func (h contextHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return contextHandler{h.Handler.WithAttrs(attrs)}
}

func (h contextHandler) WithGroup(name string) slog.Handler {
	return contextHandler{h.Handler.WithGroup(name)}
}

// keyText matches an API key, even if slightly truncated; its group is the clear prefix (decisions 1.7).
var keyText = regexp.MustCompile(`((?:pk|papi)_[A-Za-z0-9_-]{8})[A-Za-z0-9_-]{12,}`)

// urlPassword matches the password of a URL, also of one that was cleaned as a path; its group is the text before it.
var urlPassword = regexp.MustCompile("(:/+[^\\s\"'`/:@]*:)[^\\s\"'`]*@")

// passwordSetting matches a password of a connection string, such as "host=db password=x". Its groups are the name, and
// what ends a sentence or a quotation after the value.
var passwordSetting = regexp.MustCompile("(?i)(pass(?:word|wd)\\s*=\\s*)(?:'(?:[^'\\\\]|\\\\.)*'|\\S+?)([\"'`]?[.,:;)]?(?:\\s|$))")

// WithoutSecrets redacts keys, except for their prefix, and the passwords of URLs and of connection strings. It is a last
// resort: code that parses an address must not quote it.
func WithoutSecrets(text string) string {
	text = urlPassword.ReplaceAllString(keyText.ReplaceAllString(text, "$1…"), "${1}xxxxx@")
	return passwordSetting.ReplaceAllString(text, "${1}xxxxx${2}")
}

// cleanAttr applies WithoutSecrets to a string or an error, and formats a duration as text. Other values are unchanged.
func cleanAttr(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(WithoutSecrets(a.Value.String()))
	case slog.KindDuration:
		a.Value = slog.StringValue(a.Value.Duration().String())
	case slog.KindAny:
		if err, ok := a.Value.Any().(error); ok {
			a.Value = slog.StringValue(WithoutSecrets(err.Error()))
		}
	}
	return a
}
