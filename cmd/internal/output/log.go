package output

import (
	"context"
	"io"
	"log/slog"
	"regexp"

	"partnerapi/domain"
)

// NewLog returns the log of a service, as lines of text or of JSON. It never holds
// an API key, wherever the caller put it by mistake: a path, a request id, what a
// database complains of; nor the password of a URL. Durations read the same in both: 1.5s.
func NewLog(to io.Writer, level slog.Level, format string) *slog.Logger {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: withoutSecrets}
	if format == "json" {
		return slog.New(ofRequests{slog.NewJSONHandler(ForJSON(to), options)})
	}
	return slog.New(ofRequests{slog.NewTextHandler(to, options)})
}

// ofRequests adds the id of the request, as its response shows it, to the lines that
// are logged in the context of one.
type ofRequests struct{ slog.Handler }

// Handle handles a line.
func (h ofRequests) Handle(ctx context.Context, line slog.Record) error {
	if id := domain.RequestFrom(ctx); id != "" && !has(line, "request_id") {
		line = line.Clone()
		line.AddAttrs(slog.String("request_id", id))
	}
	return h.Handler.Handle(ctx, line)
}

func has(line slog.Record, key string) (found bool) {
	line.Attrs(func(a slog.Attr) bool {
		found = a.Key == key
		return !found
	})
	return found
}

// WithAttrs is the handler with attributes.
func (h ofRequests) WithAttrs(attrs []slog.Attr) slog.Handler {
	return ofRequests{h.Handler.WithAttrs(attrs)}
}

// WithGroup is the handler within a group.
func (h ofRequests) WithGroup(name string) slog.Handler { return ofRequests{h.Handler.WithGroup(name)} }

// keyText matches an API key, whole or cut a little, with its clear prefix
// (decisions 1.7) as a group.
var keyText = regexp.MustCompile(`((?:pk|papi)_[A-Za-z0-9_-]{8})[A-Za-z0-9_-]{12,}`)

// urlPassword matches the password of a URL, with what stands before it as a group.
var urlPassword = regexp.MustCompile("(://[^\\s\"'`/:@]*:)[^\\s\"'`]*@")

// WithoutSecrets is a text with only the prefix of keys, and without the passwords of URLs.
// It is the last resort: what reads an address quotes none of it.
func WithoutSecrets(text string) string {
	return urlPassword.ReplaceAllString(keyText.ReplaceAllString(text, "$1…"), "${1}xxxxx@")
}

// withoutSecrets is WithoutSecrets for an attribute.
func withoutSecrets(_ []string, a slog.Attr) slog.Attr {
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
