package parity

import (
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// varies are headers that differ from answer to answer, or that lie with what stands
// before a service; two services are not compared by them.
var varies = []string{
	"Connection", "Content-Encoding", "Content-Length", "Date", "Deprecation", "Keep-Alive", "Link", "Retry-After", "Server",
	"Set-Cookie", "Strict-Transport-Security", "Sunset", "Transfer-Encoding", "Vary", "Via", "X-Ratelimit-Limit",
	"X-Ratelimit-Remaining", "X-Ratelimit-Reset", "X-Request-Id",
}

// checkHeaders counts the headers that every answer of either version has (decisions
// 2.1). The service that is replaced need not have them.
func (r *run) checkHeaders(operation string, a answer) {
	if a.from == nil || a.from == r.old {
		return
	}
	var v verdict
	check := func(name, said, want string, ok bool) {
		if ok {
			v.equal++
			return
		}
		f := fault{field: name, v1: text(said), v2: text(want)}
		if strings.HasPrefix(a.path, "/v2/") {
			f.v1, f.v2 = f.v2, f.v1
		}
		v.faults = append(v.faults, f)
	}
	id := a.header.Get("X-Request-Id")
	check("X-Request-Id", id, a.id, id == a.id)
	for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
		n, err := strconv.ParseInt(a.header.Get(name), 10, 64)
		check(name, a.header.Get(name), "a number", err == nil && n >= 0)
	}
	if len(a.body) > 0 {
		kind, _, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
		check("Content-Type", a.header.Get("Content-Type"), "application/json", kind == "application/json")
	}
	r.report.count(operation, v, a)
}

// compareHeaders counts the headers in which the answers of two services differ, each
// once for an operation.
func (r *run) compareHeaders(operation string, old, new answer) {
	names := map[string]bool{}
	for _, h := range []http.Header{old.header, new.header} {
		for name := range h {
			names[name] = true
		}
	}
	for name := range names {
		said, now := strings.Join(old.header.Values(name), ", "), strings.Join(new.header.Values(name), ", ")
		tolerated := slices.ContainsFunc(slices.Concat(varies, r.Tolerate), func(other string) bool {
			return strings.EqualFold(name, other)
		})
		if !tolerated && said != now && r.report.first(operation+" "+name) {
			r.report.count(operation, verdict{faults: []fault{{name, text(said), text(now)}}}, old, new)
		}
	}
}
