package remote

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"partnerapi/cmd/internal/cli"
	"partnerapi/v2/op/mcp"
)

// elsewhereFor is a service that redirects to another host, which counts what comes.
func elsewhereFor(t *testing.T, good func(http.ResponseWriter, *http.Request) bool) (address string, came *atomic.Int64) {
	t.Helper()
	came = &atomic.Int64{}
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { came.Add(1) }))
	t.Cleanup(other.Close)
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if good == nil || !good(w, r) {
			http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
		}
	}))
	t.Cleanup(first.Close)
	return first.URL, came
}

// TestListenIsNotRedirected: neither for the events, nor where they are posted to.
func TestListenIsNotRedirected(t *testing.T) {
	t.Parallel()
	address, came := elsewhereFor(t, nil)
	var out, errs bytes.Buffer
	c := Listen{KeyFlag: KeyFlag{Key: "pk_secret"}, URL: address, ForwardTo: address + "/hook", From: "latest"}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wait := func(context.Context, time.Duration) error {
		cancel() // after the first try
		return context.Canceled
	}
	err := c.follow(ctx, cli.Env{Out: &out, Err: &errs}, wait)
	if came.Load() != 0 || err == nil || !strings.Contains(err.Error(), "not followed") {
		t.Errorf("%d requests to the other host: %v", came.Load(), err)
	}

	event := `{"data":[{"id":"` + first + `","type":"user.created"}],"page":{"next_cursor":"c","has_more":false}}`
	address, came = elsewhereFor(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/v2/events" {
			_, _ = w.Write([]byte(event))
		}
		return r.URL.Path == "/v2/events"
	})
	out.Reset()
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	c.URL, c.ForwardTo = address, address+"/hook"
	if err := c.follow(ctx, cli.Env{Out: &out, Err: &errs}, wait); err != nil {
		t.Fatal(err)
	}
	if came.Load() != 0 || !strings.Contains(out.String(), " 307 ") {
		t.Errorf("%d deliveries to the other host: %s", came.Load(), &out)
	}
}

// TestCommandsAreNotRedirected: neither before nor in the middle of a session.
func TestCommandsAreNotRedirected(t *testing.T) {
	t.Parallel()
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n"
	begun := func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && r.URL.Path == mcp.Path {
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
		return r.Method == http.MethodGet
	}
	for _, good := range []func(http.ResponseWriter, *http.Request) bool{nil, begun} {
		address, came := elsewhereFor(t, good)
		for _, command := range []interface {
			Run(context.Context, cli.Env) error
		}{MCP{KeyFlag: KeyFlag{Key: "pk_secret"}, URL: address}, Health{URL: address}} {
			if _, is := command.(Health); is && good != nil {
				continue // which asks once
			}
			var out, errs bytes.Buffer
			err := command.Run(t.Context(), cli.Env{In: strings.NewReader(hello), Out: &out, Err: &errs})
			if said := fmt.Sprint(&out, &errs, err); came.Load() != 0 || !strings.Contains(said, "not followed") {
				t.Errorf("%T: %d requests to the other host: %s", command, came.Load(), said)
			}
		}
	}
}

// TestHealth: the command says what a service says, by its URL or the address it listens on.
func TestHealth(t *testing.T) {
	t.Parallel()
	ready := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "ready") }))
	t.Cleanup(ready.Close)
	stopping := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, "not ready: the service stops")
	}))
	t.Cleanup(stopping.Close)
	for _, tt := range []struct {
		command Health
		says    []string
	}{
		{Health{URL: ready.URL}, []string{"ready\n"}}, {Health{Listen: strings.TrimPrefix(ready.URL, "http://")}, []string{"ready\n"}},
		{Health{URL: "http://127.0.0.1:1"}, []string{"refused"}}, {Health{URL: "somewhere"}, []string{"no address of a service"}},
		{Health{URL: stopping.URL}, []string{"503", "the service stops"}},
	} {
		var out bytes.Buffer
		err := tt.command.Run(t.Context(), cli.Env{Out: &out})
		for _, word := range tt.says {
			if said := out.String() + fmt.Sprint(err); !strings.Contains(said, word) || (err == nil) != (word == "ready\n") {
				t.Errorf("%+v: %s", tt.command, said)
			}
		}
	}
}
