package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"partnerapi/v2/op/mcp"
)

// agents are the measures of calls by agents.
func (b *bench) agents() []measure { return []measure{{"MCP tools/call", nil, b.calls}} }

// calls compares calls of tools in a session with their operations, in turns.
func (b *bench) calls(ctx context.Context) (results []result, err error) {
	session, err := b.session(ctx)
	if err != nil {
		return nil, err
	}
	client := b.data.clients[0].String()
	for _, m := range []struct {
		name, path, tool string
		arguments        map[string]any
		times            int
	}{
		{"a client", "/v2/clients/" + client, "clients_get", map[string]any{"client_id": client}, 3000},
		{"a page of 100 users", "/v2/clients/" + client + "/users?limit=100", "users_list",
			map[string]any{"client_id": client, "limit": 100}, 1000},
	} {
		call, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
			"params": map[string]any{"name": m.tool, "arguments": m.arguments}})
		if err != nil {
			return nil, err
		}
		requests := [2][]byte{b.toAgents(session, call), request(m.path, b.keys[0])}
		took, err := b.alternately(ctx, b.times(m.times), func(of, _ int) []byte { return requests[of] },
			b.service, b.service)
		if err != nil {
			return nil, err
		}
		results = append(results, ratio("MCP tools/call of "+m.name+" / GET", took[0], took[1], 1.3))
	}
	return results, nil
}

// session begins a session of an agent, and returns its id.
func (b *bench) session(ctx context.Context) (string, error) {
	hello := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,`+
		`"capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`, protocol)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+b.service.said+mcp.Path, bytes.NewReader(hello))
	if err != nil {
		return "", err
	}
	r.Header.Set("X-API-Key", b.keys[0])
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", accepted)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	session := answer.Header.Get("Mcp-Session-Id")
	if answer.StatusCode != http.StatusOK || session == "" {
		return "", fmt.Errorf("no session was begun: %s", answer.Status)
	}
	return session, nil
}

const (
	// protocol is the version of MCP that the measured agent speaks.
	protocol = "2025-06-18"
	accepted = "application/json, text/event-stream"
)

// toAgents is the text of a message of an agent in a session.
func (b *bench) toAgents(session string, message []byte) []byte {
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: bench\r\nX-API-Key: %s\r\nContent-Type: application/json\r\n"+
		"Accept: %s\r\nMcp-Session-Id: %s\r\nMcp-Protocol-Version: %s\r\nContent-Length: %d\r\n\r\n%s",
		mcp.Path, b.keys[0], accepted, session, protocol, len(message), message)
}

// warm is how many times more alternately sends requests than it counts.
func warm(times int) int { return times / 10 }

// alternately are the median times of two requests that are sent so often in turns, and
// at first for some times that do not count, each over a connection of its own to its
// server. Which of them is sent first changes.
func (b *bench) alternately(ctx context.Context, times int, next func(of, i int) []byte,
	servers ...*child) (typical [2]time.Duration, err error) {
	var connections [2]*connection
	for i := range connections {
		if connections[i], err = dial(servers[i].said); err != nil {
			return typical, err
		}
		defer connections[i].Close()
	}
	var all [2][]time.Duration
	for i := range warm(times) + times {
		for turn := range 2 {
			of := (i + turn) % 2
			took, err := connections[of].timed(next(of, i))
			if err := errors.Join(err, ctx.Err()); err != nil {
				return typical, err
			}
			if i >= warm(times) {
				all[of] = append(all[of], took)
			}
		}
	}
	return [2]time.Duration{median(all[0]), median(all[1])}, nil
}
