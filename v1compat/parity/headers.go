package parity

import (
	"maps"
	"mime"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// varies are headers that differ from answer to answer, or that lie with what stands
// before a service; two services are not compared by them.
var varies = []string{
	"Connection", "Content-Encoding", "Content-Length", "Date", "Deprecation", "Keep-Alive", "Link", "Retry-After", "Server",
	"Set-Cookie", "Strict-Transport-Security", "Sunset", "Transfer-Encoding", "Vary", "Via", "X-Ratelimit-Limit",
	"X-Ratelimit-Remaining", "X-Ratelimit-Reset", "X-Request-Id",
}

// fault is that an answer says one thing and is to say another.
func (a answer) fault(field string, said, want jsontext.Value) fault {
	if strings.HasPrefix(a.path, "/v2/") {
		return fault{field, want, said}
	}
	return fault{field, said, want}
}

// checkHeaders counts the headers that every answer of either version has (decisions
// 2.1). The service that is replaced need not have them.
func (r *run) checkHeaders(operation string, a answer) {
	if a.from == r.old {
		return
	}
	var v verdict
	check := func(name, want string, ok bool) {
		if ok {
			v.equal++
		} else {
			v.faults = append(v.faults, a.fault(name, valueOf(a.header.Get(name)), valueOf(want)))
		}
	}
	check("X-Request-Id", a.id, a.header.Get("X-Request-Id") == a.id)
	for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
		_, err := strconv.ParseUint(a.header.Get(name), 10, 63)
		check(name, "a number", err == nil)
	}
	if len(a.body) > 0 {
		kind, _, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
		check("Content-Type", "application/json", kind == "application/json")
	}
	r.report.count(operation, v, a)
}

// compareHeaders counts the headers in which the answers of two services differ, each
// once for an operation.
func (r *run) compareHeaders(operation string, old, new answer) {
	names := maps.Clone(old.header)
	maps.Copy(names, new.header)
	for name := range names {
		said, now := strings.Join(old.header.Values(name), ", "), strings.Join(new.header.Values(name), ", ")
		tolerated := slices.ContainsFunc(slices.Concat(varies, r.Tolerate), func(other string) bool {
			return strings.EqualFold(name, other)
		})
		if tolerated || said == now {
			continue
		}
		if _, counted := r.known.LoadOrStore(operation+" "+name, true); !counted {
			r.report.count(operation, faulty(name, valueOf(said), valueOf(now)), old, new)
		}
	}
}
