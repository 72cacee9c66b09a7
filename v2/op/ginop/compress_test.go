package ginop_test

import (
	"compress/gzip"
	"context"
	"io"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
)

// TestCompress: answers above 1 KiB, for who accepts gzip.
func TestCompress(t *testing.T) {
	operations := &op.Set{}
	for _, length := range []int{1024, 1025, 100_000} { // of the answer
		id := "answer" + strconv.Itoa(length)
		text := strings.Repeat("x", length-len(`{"text":""}`))
		add(operations, id, "GET", "/"+id, 200, func(context.Context, *empty) (*answer, error) {
			return &answer{Text: text}, nil
		})
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
		answer, text := fetch(t, server, test.method, test.path, "", "Accept-Encoding", test.accept)
		if compressed := answer.Header.Get("Content-Encoding") == "gzip"; compressed != test.compressed {
			t.Errorf("%v: the headers are %v", test, answer.Header)
		} else if compressed {
			plain, err := gzip.NewReader(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			read, err := io.ReadAll(plain)
			if text = string(read); err != nil {
				t.Error(err)
			}
		}
		want, _ := strconv.Atoi(test.path[len("/v2/answer"):])
		if test.method == "HEAD" {
			want = 0
		}
		if len(text) != want || answer.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%v: answers %d bytes, %v", test, len(text), answer.Header)
		}
		if length := answer.Header.Get("Content-Length"); !test.compressed && length != test.path[len("/v2/answer"):] {
			t.Errorf("%v: the length is said to be %q", test, length)
		}
	}
}
