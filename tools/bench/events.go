package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"partnerapi/client"
	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op/mcp"
)

// This file measures the reading of events, what they add to a write, and calls by
// agents.

// eventsShown is how many events a page has.
const eventsShown = 100

// eventPage is a page of events.
type eventPage struct {
	what   string
	middle bool // of those there are, and not the first
	subset bool // for a key with a tenth of the clients
	query  string
}

// eventPage measures a page of events.
func (b *bench) eventPage(p eventPage) finder {
	return func(ctx context.Context) figure {
		key := b.keys[0]
		if p.subset {
			key = b.data.key(ctx, domain.Read, b.data.clients[:len(b.data.clients)/10]...)
		}
		if p.middle {
			p.query = b.middleOfEvents(ctx)
		}
		r := request("GET", fmt.Sprintf("/v2/events?limit=%d%s", eventsShown, p.query), key, nil)
		return b.page(eventsShown, 500, always(r), nil)(ctx)
	}
}

// middleOfEvents walks through half of the events, and returns where it got, as a
// query.
func (b *bench) middleOfEvents(ctx context.Context) (cursor string) {
	in, pages := &api.ListEventsInput{}, 0
	in.Query.Limit = 500
	for page, err := range client.Feed(ctx, b.caller(), api.ListEvents, in, 0) {
		check(err)
		cursor = "&cursor=" + url.QueryEscape(page.Page.NextCursor)
		if pages++; pages == published/2/500 {
			break
		}
	}
	return cursor
}

// eventCost compares a change of a user with the same one of a service whose changes
// write no events. No other events wait: they are counted.
func (b *bench) eventCost(ctx context.Context, silent *child) figure {
	users := b.data.activeUsers(ctx, b.tenth(4000))
	b.unsubscribe(ctx)
	began, times := time.Now().UnixNano(), b.times(2000)
	// Each user is changed by both, each time to a title of the same role.
	change := func(service string) func(i int) []byte {
		return func(i int) []byte {
			return request("PATCH", "/v2/users/"+users[i%len(users)].String(), b.writeKey,
				object{"job_title": fmt.Sprintf("Clerk %d %d %s", began, i, service)})
		}
	}
	f := compared(ctx, times, lane{to: b.service.address, next: change("a")},
		lane{to: silent.address, next: change("b")})
	if n := b.data.count(ctx, "SELECT count(*) FROM events"); n != warm(times)+times {
		fail("%d changes of a user wrote %d events", warm(times)+times, n)
	}
	return f
}

const (
	// protocol is the version of MCP that the measured agent speaks.
	protocol = "2025-06-18"
	accepted = "application/json, text/event-stream"
)

// call compares calls of a tool in a session with its operation.
func (b *bench) call(times int, tool string, arguments object, path string) finder {
	return func(ctx context.Context) figure {
		call := message(b.keys[0], "", "tools/call", object{"name": tool, "arguments": arguments},
			"Mcp-Session-Id: "+b.session(ctx))
		return b.versus(ctx, times, always(call), always(b.get(path)))
	}
}

// message is a request of MCP; query is added to the address.
func message(key, query, method string, params object, headers ...string) []byte {
	return request("POST", mcp.Path+query, key, object{"jsonrpc": "2.0", "id": 1, "method": method, "params": params},
		append(headers, "Accept: "+accepted, "Mcp-Protocol-Version: "+protocol)...)
}

// session begins a session of an agent, and returns its id.
func (b *bench) session(ctx context.Context) string {
	hello := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,`+
		`"capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`, protocol)
	answer := must(b.caller().Send(ctx, client.Request{
		Method: http.MethodPost, Path: mcp.Path, Body: hello, Header: http.Header{"Accept": {accepted}},
	}))
	session := answer.Header.Get("Mcp-Session-Id")
	if answer.Status != http.StatusOK || session == "" {
		fail("no session was begun: %d", answer.Status)
	}
	return session
}
