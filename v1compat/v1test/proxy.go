package v1test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
)

// Answer is a response on its way through a proxy.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Replace returns a change that replaces the first occurrence of a text in the body.
func Replace(old, new string) func(*Answer) {
	return func(a *Answer) { a.Body = strings.Replace(a.Body, old, new, 1) }
}

// Proxy starts a proxy of the service at an address, which ends with the test, and returns its own address. change may
// change each response; request is the method, and the path with the query.
func Proxy(t testing.TB, to string, change func(request string, a *Answer)) string {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Del("Accept-Encoding") // bodies are changed as text
		},
		ModifyResponse: func(r *http.Response) error {
			body, err := io.ReadAll(r.Body)
			_ = r.Body.Close()
			a := &Answer{r.StatusCode, r.Header, string(body)}
			change(r.Request.Method+" "+r.Request.URL.RequestURI(), a)
			if a.Status == http.StatusNoContent {
				a.Body = ""
			}
			a.Header.Del("Content-Length")
			r.StatusCode, r.Header, r.Body = a.Status, a.Header, io.NopCloser(strings.NewReader(a.Body))
			return err
		},
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				t.Error(err)
			}
		},
	})
	t.Cleanup(server.Close)
	return server.URL
}
