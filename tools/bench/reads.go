package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/tiktoken-go/tokenizer"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/op/mcp"
)

// throughput are requests a second, compared with those of the handwritten servers.
func (b *bench) throughput() []measure {
	var clients []request
	for _, id := range b.data.clients {
		clients = append(clients, b.get(pathOf(id, "")))
	}
	var measures []measure
	add := func(name string, bound bound, run finder) {
		measures = append(measures, measure{name: name, bound: bound, run: run,
			needs: func(ctx context.Context) { check(b.data.db.ForceSummaries(ctx)) }})
	}
	usual := func(encoding string) finder {
		requests := make([]request, len(clients))
		for i, r := range clients {
			requests[i] = with(r, "Accept-Encoding", encoding)
		}
		return func(ctx context.Context) figure { return b.against(ctx, b.serve("usual"), requests) }
	}
	reference := func(requests ...request) finder {
		return func(ctx context.Context) figure { return b.against(ctx, b.reference, requests) }
	}
	add("GET /v2/clients/{id}", atLeast(0.9), reference(clients...))
	add("client, with usual Gin middlewares: GET /v2/clients/{id}", atLeast(1.3), usual("gzip"))
	add("client, with usual Gin middlewares, to a caller that takes no gzip", bound{}, usual("identity"))
	add("GET /v2/clients?limit=100", atLeast(1), reference(b.get("/v2/clients?limit=100")))
	for _, rows := range []int{50, 500} {
		path := fmt.Sprint("/users?limit=", rows)
		add("GET /v2/clients/{id}"+path, atLeast(0.9), reference(b.get(pathOf(b.data.clients[0], path))))
	}
	return measures
}

// pages are pages of v2 without anything to compare them with, and objects found by a value, compared with the same by
// ID.
func (b *bench) pages() []measure {
	client := b.data.clients[0]
	own := b.get(pathOf(client, "/policies"))
	search := func(name, path string) measure {
		return measure{name: "a search that finds nothing: " + name,
			run: func(ctx context.Context) figure { return b.page(ctx, 0, 20, always(b.get(path)), nil) }}
	}
	usage := func(periods, interval string) measure {
		name := "v2 page of 100 items of usage, " + periods + " of each client / page of 100 clients"
		return measure{name: name, bound: atMost(1.5), run: func(ctx context.Context) figure {
			path := "/v2/usage?limit=100&start_on=" + domain.DateOf(time.Now()).AddDays(-29).String() + "&interval=" + interval
			return b.versus(ctx, 300, always(b.get(path)), always(b.get("/v2/clients?limit=100")))
		}}
	}
	name := fmt.Sprintf("v2 page of %d policies of %d users", policies, b.data.users)
	return []measure{
		{name: name, needs: b.data.policies,
			run: func(ctx context.Context) figure { return b.page(ctx, policies, 500, always(own), nil) }},
		{name: name + ", when all changed", bound: atMost(0.3), needs: b.data.policies, run: func(ctx context.Context) figure {
			return b.page(ctx, policies, 20, always(own), func() {
				b.data.exec(ctx, "UPDATE policies SET counted_until = '-infinity' WHERE client_id = $1", client)
			})
		}},
		{name: "v2 page of 500 phishing labels / page of as many users", needs: b.data.labels, run: func(ctx context.Context) figure {
			return b.versus(ctx, 300, always(b.get(pathOf(client, "/phishing/labels?limit=500"))), always(b.get(pathOf(client, "/users?limit=500"))))
		}},
		{name: "v2 page of 500 phishing results, newest first / page of as many users", run: func(ctx context.Context) figure {
			return b.versus(ctx, 300, always(b.get(pathOf(client, "/phishing/results?sort=-send_at&limit=500"))), always(b.get(pathOf(client, "/users?limit=500"))))
		}},
		{name: "GET /v2/users?email= / GET /v2/users/{id}", bound: atMost(2), run: func(ctx context.Context) figure {
			user := b.data.activeUsers(ctx, 1)[0]
			email := first[string](ctx, b.data, "SELECT email FROM users WHERE id = $1", user)
			return b.versus(ctx, 1000, always(b.get("/v2/users?email="+url.QueryEscape(email))), always(b.get("/v2/users/"+user.String())))
		}},
		{name: "GET /v2/clients?external_id= / GET /v2/clients/{id}", bound: atMost(2), run: func(ctx context.Context) figure {
			b.data.exec(ctx, "UPDATE clients SET external_id = 'bench' WHERE id = $1", client)
			return b.versus(ctx, 1000, always(b.get("/v2/clients?external_id=bench")), always(b.get(pathOf(client, ""))))
		}},
		usage("a month", "month"), usage("30 days", "day"),
		{name: fmt.Sprintf("v2 page of the departments of %d users", b.data.users), bound: atMost(1), run: func(ctx context.Context) figure {
			departments := first[int](ctx, b.data, "SELECT count(DISTINCT coalesce(lower(department), '')) FROM users WHERE client_id = $1", client)
			return b.page(ctx, departments, 20, always(b.get(pathOf(client, "/departments?limit=500"))), nil)
		}},
		search("users of the largest client", pathOf(client, "/users?q=zzzzz")), search("clients", "/v2/clients?q=zzzzz"),
	}
}

// firstCourse is the course that every user has.
var firstCourse = domain.CourseID{0x01, 0x9b, 0x77, 0x40, 6: 0x70, 8: 0x80, 15: 1}

// training are pages of the training of all users of the largest client, each compared with a page of as many users.
func (b *bench) training() (measures []measure) {
	path := pathOf(b.data.clients[0], "/training/assignments")
	add := func(what string, query func(ctx context.Context) string) {
		name := fmt.Sprintf("v2 page of the training of %d users, %s / page of as many users", b.data.users, what)
		measures = append(measures, measure{name: name, bound: atMost(1.3), run: func(ctx context.Context) figure {
			page := b.get(path + query(ctx))
			rows := len(ask[rawPage](b.service, page).Data)
			if rows == 0 {
				fail("the page has no rows")
			}
			return b.versus(ctx, 300, always(page), always(b.get(pathOf(b.data.clients[0], "/users?limit=", rows))))
		}})
	}
	since := func(days int) string { return time.Now().UTC().AddDate(0, 0, -days).Format(time.RFC3339) }
	for _, p := range [][2]string{
		{"of active users", "&user_status=active"}, {"of inactive users", "&user_status=inactive"},
		{"of a course", "&course_id=" + firstCourse.String()},
		{"assigned", "&status=assigned"}, {"completed", "&status=completed"}, {"overdue", "&status=overdue"},
		{"assigned or overdue", "&status=assigned,overdue"},
		{"completed in the last week", "&completed_since=" + since(7)},
		{"completed more than a year ago", "&completed_until=" + since(365)},
		{"changed in the last day", "&updated_since=" + since(1)}, {"changed in the last year", "&updated_since=" + since(365)},
	} {
		add(p[0], func(context.Context) string { return "?limit=500" + p[1] })
	}
	for half, what := range []string{"the first", "one in the middle", "the last"} {
		add(what, func(ctx context.Context) string {
			queries := b.walk(ctx, path)
			return queries[(len(queries)-1)*half/2]
		})
	}
	return measures
}

// protocol is the version of MCP.
const protocol = "2025-06-18"

// call returns a request of MCP; query is added to the path.
func call(key, query, method string, params object) request {
	r := newRequest("POST", mcp.Path+query, key, object{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	return with(with(r, "Accept", "application/json, text/event-stream"), "Mcp-Protocol-Version", protocol)
}

// callTool returns a call of a tool.
func (b *bench) callTool(tool string, arguments object) request {
	return call(b.readKey, "", "tools/call", object{"name": tool, "arguments": arguments})
}

// agents are calls of tools in a session, each compared with its operation, and what an agent reads, in tokens.
func (b *bench) agents() []measure {
	client := b.data.clients[0]
	versus := func(times int, tool string, arguments object, path string) finder {
		return func(ctx context.Context) figure {
			hello := b.service.send(call(b.readKey, "", "initialize", object{"protocolVersion": protocol,
				"capabilities": object{}, "clientInfo": object{"name": "bench", "version": "1"}}))
			session := with(b.callTool(tool, arguments), "Mcp-Session-Id", hello.header.Get("Mcp-Session-Id"))
			return b.versus(ctx, times, always(session), always(b.get(path)))
		}
	}
	return []measure{
		{name: "MCP tools/call of a client / GET", bound: atMost(2),
			run: versus(3000, "clients_get", object{"client_id": client}, pathOf(client, ""))},
		{name: "MCP tools/call of a page of 100 users / GET", bound: atMost(2), run: versus(1000, "users_list",
			object{"client_id": client, "limit": 100}, pathOf(client, "/users?limit=100"))},
		{name: "MCP tools/list, in tokens", bound: atMost(6000), run: b.toolTokens("")},
		{name: "MCP tools/list of all toolsets, in tokens", bound: atMost(12_000), run: b.toolTokens("?toolsets=all")},
		{name: "MCP tools/call of a page of 100 users, in tokens", bound: atMost(6000), run: func(context.Context) figure {
			page := ask[struct {
				Result struct{ Content []struct{ Text string } }
			}](b.service, b.callTool("users_list", object{"client_id": client, "limit": 100}))
			return tokens(inTokens(page.Result.Content[0].Text))
		}},
	}
}

// toolTokens counts the tools that the MCP server lists on all pages.
func (b *bench) toolTokens(query string) finder {
	return func(ctx context.Context) figure {
		key := must(b.data.db.CreateKey(ctx, db.NewKey{
			Partner: b.data.partner, Name: "agent", Scopes: []domain.Scope{domain.Read, domain.Write},
		}))
		n := 0
		for params := (object{}); ; {
			page := ask[struct {
				Result struct {
					Tools      json.RawMessage
					NextCursor string
				}
			}](b.service, call(key, query, "tools/list", params)).Result
			if n += inTokens(string(page.Tools)); page.NextCursor == "" {
				return tokens(n)
			}
			params["cursor"] = page.NextCursor
		}
	}
}

// audits are pages of the audit log.
func (b *bench) audits() (measures []measure) {
	page := func(what string, key func(context.Context) string, query string) {
		measures = append(measures, measure{
			name: fmt.Sprintf("v2 page of 100 of %d audit entries: %s", audited, what), needs: b.data.auditEntries,
			run: func(ctx context.Context) figure {
				return b.page(ctx, 100, 500, always(newRequest("GET", "/v2/audit-log?limit=100"+query, key(ctx), nil)), nil)
			},
		})
	}
	whole := func(context.Context) string { return b.readKey }
	part := func(ctx context.Context) string {
		return b.data.key(ctx, domain.Read, b.data.clients[:len(b.data.clients)/10]...)
	}
	page("the newest", whole, "")
	page("of a client", whole, "&client_id="+b.data.clients[0].String())
	page("of a tenth of the clients", part, "")
	return measures
}

// inTokens returns the number of tokens of a text in the vocabulary o200k_base, which the program contains.
func inTokens(text string) int {
	n := must(must(tokenizer.Get(tokenizer.O200kBase)).Count(text))
	if n == 0 {
		fail("the response has no text")
	}
	return n
}

// events are pages of events, and deliveries to few subscriptions and many.
func (b *bench) events() (measures []measure) {
	page := func(what string, key, query func(context.Context) string) {
		name := fmt.Sprintf("v2 page of 100 of %d events: %s", published, what)
		measures = append(measures, measure{name: name, needs: b.data.publishedEvents, run: func(ctx context.Context) figure {
			return b.page(ctx, 100, 500, always(newRequest("GET", "/v2/events?limit=100"+query(ctx), key(ctx), nil)), nil)
		}})
	}
	whole := func(context.Context) string { return b.readKey }
	part := func(ctx context.Context) string {
		return b.data.key(ctx, domain.Read, b.data.clients[:len(b.data.clients)/10]...)
	}
	start := func(context.Context) string { return "" }
	types := func(context.Context) string {
		return fmt.Sprintf("&types=%s,%s", domain.ReportMade, domain.SyncStopped)
	}
	page("the first", whole, start)
	page("one in the middle", whole, func(ctx context.Context) string {
		queries := b.walk(ctx, "/v2/events")
		return strings.TrimPrefix(queries[len(queries)/2], "?limit=500")
	})
	page("of two types", whole, types)
	page("of a tenth of the clients", part, start)
	page("of two types and a tenth of the clients", part, types)
	for _, n := range []int{20, 200} {
		measures = append(measures, measure{name: fmt.Sprintf("deliveries over TLS to %d subscriptions", n),
			bound: atLeast(2000), run: func(ctx context.Context) figure { return b.deliver(ctx, n) }})
	}
	return measures
}
