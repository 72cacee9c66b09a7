package v2test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"partnerapi/client"
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Response is the response to a request of a test.
type Response struct {
	client.Answer
	t testing.TB
}

// Caller calls the service with a key.
func (h *Harness) Caller(key string) *client.Client {
	c, err := client.New(client.Config{URL: h.URL, Key: key, Transport: h.transport, Timeout: time.Hour})
	h.Must(err)
	return c
}

// Do sends a request with a key. The body is sent as it is if it is a string, otherwise as JSON; nil means none.
// headers are pairs of a name and a value.
func (h *Harness) Do(method, path, key string, body any, headers ...string) Response {
	h.T.Helper()
	r := client.Request{Method: method, Path: path, Header: http.Header{}}
	switch body := body.(type) {
	case nil:
	case string:
		r.Body = []byte(body)
	default:
		var err error
		r.Body, err = json.Marshal(body)
		h.Must(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	a, err := h.Caller(key).Send(h.T.Context(), r)
	h.Must(err)
	return Response{*a, h.T}
}

// Get reads a path.
func (h *Harness) Get(path, key string) Response {
	h.T.Helper()
	return h.Do(http.MethodGet, path, key, nil)
}

// Want fails the test unless the response has the status.
func (r Response) Want(status int) Response {
	r.t.Helper()
	if r.Status != status {
		r.t.Fatalf("status %d, not %d: %s", r.Status, status, r.Body)
	}
	return r
}

// Into decodes the body into v.
func (r Response) Into(v any) {
	r.t.Helper()
	if err := json.Unmarshal(r.Body, v); err != nil {
		r.t.Fatalf("decode %s: %v", r.Body, err)
	}
}

// JSON returns the body as maps and lists.
func (r Response) JSON() map[string]any {
	r.t.Helper()
	var v map[string]any
	r.Into(&v)
	return v
}

// Field returns a field of the body by its path, such as error.code; nil if there is none.
func (r Response) Field(path string) any {
	r.t.Helper()
	var v any = r.JSON()
	for name := range strings.SplitSeq(path, ".") {
		object, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = object[name]
	}
	return v
}

// Code returns the code of a v2 error; empty for another body.
func (r Response) Code() domain.Code {
	r.t.Helper()
	code, _ := r.Field("error.code").(string)
	return domain.Code(code)
}

// All returns the items of all pages of a list. The path may have a query.
func (h *Harness) All(path, key string) (items []map[string]any) {
	h.T.Helper()
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	for cursor := ""; ; {
		var page op.Page[map[string]any]
		h.Get(path+separator+"cursor="+cursor, key).Want(http.StatusOK).Into(&page)
		items = append(items, page.Data...)
		if !page.Page.HasMore {
			return items
		}
		cursor = *page.Page.NextCursor
	}
}

// AtOnce makes n calls at the same time, and counts the statuses that they return.
func AtOnce(n int, call func(i int) int) map[int]int {
	statuses := make([]int, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { statuses[i] = call(i) })
	}
	all.Wait()
	counts := map[int]int{}
	for _, status := range statuses {
		counts[status]++
	}
	return counts
}
