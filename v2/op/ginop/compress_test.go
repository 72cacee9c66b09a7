package ginop_test

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
)

// TestCompress: answers above 1 KiB, for who accepts gzip.
func TestCompress(t *testing.T) {
	operations := &op.Set{}
	for _, length := range []int{1024, 1025, 100_000} { // of the answer
		id := "answer" + strconv.Itoa(length)
		text := strings.Repeat("x", length-len(`{"text":""}`))
		op.Add(operations, op.Meta{
			ID: id, Method: "GET", Path: "/" + id, Scope: domain.Read, Since: op.V2_0, Status: 200, Summary: "s",
		}, func(context.Context, *empty) (*answer, error) { return &answer{Text: text}, nil })
	}
	e := newEdgeOf(t, func(*ginop.Config) {}, operations)
	server := httptest.NewServer(ginop.Compress(e.engine))
	defer server.Close()

	for _, test := range []struct {
		method, path, accept string
		compressed           bool
	}{
		{"GET", "/v2/answer1024", "gzip", false},
		{"GET", "/v2/answer1025", "gzip", true},
		{"GET", "/v2/answer100000", "br, gzip;q=0.5", true},
		{"GET", "/v2/answer100000", "gzip;q=0", false},
		{"GET", "/v2/answer100000", "zstd", false},
		{"GET", "/v2/answer100000", "", false},
		{"HEAD", "/v2/answer100000", "", false},
		{"HEAD", "/v2/answer100000", "gzip", false},
	} {
		r, err := http.NewRequestWithContext(t.Context(), test.method, server.URL+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-API-Key", "pk_demo_good")
		r.Header["Accept-Encoding"] = []string{test.accept}
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body := io.Reader(answer.Body)
		if compressed := answer.Header.Get("Content-Encoding") == "gzip"; compressed != test.compressed {
			t.Errorf("%v: the headers are %v", test, answer.Header)
		} else if compressed {
			if body, err = gzip.NewReader(answer.Body); err != nil {
				t.Fatal(err)
			}
		}
		text, err := io.ReadAll(body)
		answer.Body.Close()
		want, _ := strconv.Atoi(test.path[len("/v2/answer"):])
		if test.method == "HEAD" {
			want = 0
		}
		if err != nil || len(text) != want || answer.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%v: answers %d bytes (%v), %v", test, len(text), err, answer.Header)
		}
		if length := answer.Header.Get("Content-Length"); !test.compressed && length != test.path[len("/v2/answer"):] {
			t.Errorf("%v: the length is said to be %q", test, length)
		}
	}
}
