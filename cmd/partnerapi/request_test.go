package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"partnerapi/client"
	"partnerapi/v2/op/openapi/openapitest"
)

// caller sends requests to one service.
type caller struct {
	t         *testing.T
	address   string
	transport http.RoundTripper
}

// checked returns a caller that holds every response against the documents that
// the service itself serves.
func (r *running) checked() caller {
	r.t.Helper()
	c := caller{t: r.t, address: r.address, transport: &http.Transport{}}
	r.t.Cleanup(c.transport.(*http.Transport).CloseIdleConnections)
	names := []string{"/v2/openapi.json"}
	if older() {
		names = append(names, "/v1/openapi.yaml")
	}
	wrapped := c.transport
	for _, name := range names {
		text := bytes.ReplaceAll(c.do("GET", name, "", nil).want(http.StatusOK).body, []byte(r.address), nil)
		documented := openapitest.Shared(r.t, string(text), func() (*openapi3.T, error) {
			return openapi3.NewLoader().LoadFromData(text)
		})
		wrapped = documented.Wrap(r.t, wrapped)
	}
	c.transport = wrapped
	return c
}

// response is what a request was answered with.
type response struct {
	t      *testing.T
	status int
	header http.Header
	body   []byte
}

// try sends a request with a key; a body that is not nil is sent as JSON.
// Headers are pairs of name and value.
func (c caller) try(method, path, key string, body any, headers ...string) (response, error) {
	r := client.Request{Method: method, Path: path, Header: http.Header{}}
	if body != nil {
		var err error
		if r.Body, err = json.Marshal(body); err != nil {
			return response{}, err
		}
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	service, err := client.New(client.Config{URL: c.address, Key: key, Transport: c.transport, Timeout: time.Hour})
	if err != nil {
		return response{}, err
	}
	// Not the test's context: it ends before what is cleaned up.
	a, err := service.Send(context.Background(), r)
	if a == nil {
		return response{}, err
	}
	return response{c.t, a.Status, a.Header, a.Body}, err
}

func (c caller) do(method, path, key string, body any, headers ...string) response {
	c.t.Helper()
	r, err := c.try(method, path, key, body, headers...)
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

func (r *running) do(method, path, key string, body any, headers ...string) response {
	r.t.Helper()
	return r.client.do(method, path, key, body, headers...)
}

func (r *running) get(path, key string) response {
	r.t.Helper()
	return r.client.do(http.MethodGet, path, key, nil)
}

// want fails the test unless the response has the status.
func (r response) want(status int) response {
	r.t.Helper()
	if r.status != status {
		r.t.Fatalf("status %d, not %d: %s", r.status, status, r.body)
	}
	return r
}

// into decodes the body.
func into[T any](r response) (v T) {
	r.t.Helper()
	if err := json.Unmarshal(r.body, &v); err != nil {
		r.t.Fatalf("decode %s: %v", r.body, err)
	}
	return v
}

// fields is a JSON object.
type fields = map[string]any

type numbered struct {
	ID         int
	ClientName string `json:"client_name"`
}

type identified struct{ ID string }
