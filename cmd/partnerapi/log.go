package main

import (
	"io"
	"log/slog"
	"regexp"
)

// newLog returns the log of a service, as lines of text or of JSON. It never holds
// an API key, wherever the caller put it by mistake: a path, a request id, what a
// database complains of. Durations read the same in both: 1.5s.
func newLog(to io.Writer, level slog.Level, format string) *slog.Logger {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: withoutKeys}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(to, options))
	}
	return slog.New(slog.NewTextHandler(to, options))
}

// keyText matches an API key, whole or cut a little, with its clear prefix
// (decisions 1.7) as a group.
var keyText = regexp.MustCompile(`(pk_[A-Za-z0-9_-]{8})[A-Za-z0-9_-]{12,}`)

// withoutKeys leaves only the prefix of keys in an attribute.
func withoutKeys(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString:
		if text := a.Value.String(); keyText.MatchString(text) {
			a.Value = slog.StringValue(keyText.ReplaceAllString(text, "$1…"))
		}
	case slog.KindDuration:
		a.Value = slog.StringValue(a.Value.Duration().String())
	case slog.KindAny:
		if err, ok := a.Value.Any().(error); ok {
			a.Value = slog.StringValue(keyText.ReplaceAllString(err.Error(), "$1…"))
		}
	}
	return a
}
