package remote

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"partnerapi/cmd/internal/cli"
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
