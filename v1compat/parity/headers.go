package parity

import (
	"maps"
	"mime"
	"slices"
	"strconv"
	"strings"
)

// ignoredHeaders may differ between two services: they change with each response, or with the proxy before a service.
var ignoredHeaders = []string{
	"Connection", "Content-Encoding", "Content-Length", "Date", "Deprecation", "Keep-Alive", "Link", "Retry-After", "Server",
	"Set-Cookie", "Strict-Transport-Security", "Sunset", "Transfer-Encoding", "Vary", "Via", "X-Ratelimit-Limit",
	"X-Ratelimit-Remaining", "X-Ratelimit-Reset", "X-Request-Id",
}

// checkHeaders checks the headers that every response has in both versions (decisions 2.1).
func checkHeaders(a answer) finding {
	f := finding{answers: []answer{a}}
	check := func(name, want string, ok bool) {
		f.checkAnswer(a, name, valueOf(a.header.Get(name)), valueOf(want), ok)
	}
	check("X-Request-Id", a.id, a.header.Get("X-Request-Id") == a.id)
	for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
		_, err := strconv.ParseUint(a.header.Get(name), 10, 63) // an int64 without a sign
		check(name, "a number", err == nil)
	}
	if len(a.body) > 0 {
		kind, _, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
		check("Content-Type", "application/json", kind == "application/json")
	}
	return f
}

// compareHeaders reports the headers that two services answer the query with differently, each once per operation.
func (q *query) compareHeaders(v1, other answer) {
	names := maps.Clone(v1.header)
	maps.Copy(names, other.header)
	for name := range names {
		v1Value, otherValue := strings.Join(v1.header.Values(name), ", "), strings.Join(other.header.Values(name), ", ")
		ignored := slices.ContainsFunc(slices.Concat(ignoredHeaders, q.Tolerate), func(header string) bool {
			return strings.EqualFold(name, header)
		})
		if ignored || v1Value == otherValue {
			continue
		}
		if _, reported := q.known.LoadOrStore(q.operation()+" "+name, true); !reported {
			q.report.add(q.operation(), mismatched(name, valueOf(v1Value), valueOf(otherValue), v1, other))
		}
	}
}
