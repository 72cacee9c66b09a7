package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

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
		text := c.do("GET", name, "", nil).want(http.StatusOK).body
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
	var text io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return response{}, err
		}
		text = strings.NewReader(string(encoded))
	}
	// Not the test's context: it ends before what is cleaned up.
	req, err := http.NewRequest(method, c.address+path, text)
	if err != nil {
		return response{}, err
	}
	if key != "" {
		req.Header.Set("X-API-Key", key)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	answer, err := c.transport.RoundTrip(req)
	if err != nil {
		return response{}, err
	}
	defer answer.Body.Close()
	read, err := io.ReadAll(answer.Body)
	return response{c.t, answer.StatusCode, answer.Header, read}, err
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
