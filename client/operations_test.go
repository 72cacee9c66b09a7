package client_test

import (
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	json2 "github.com/go-json-experiment/json"

	"partnerapi/client"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
	"partnerapi/v2/op/openapi"
)

// TestOperations: for every operation, the request of its example is that of the input
// which it binds to, and its answer is read into the output so that it is written as it
// was.
func TestOperations(t *testing.T) {
	t.Parallel()
	for _, o := range api.Operations {
		t.Run(o.Meta().ID, func(t *testing.T) {
			t.Parallel()
			text, err := fs.ReadFile(api.Examples, o.Meta().ID+".json")
			if err != nil {
				t.Fatal(err)
			}
			var example openapi.Example
			if err := json2.Unmarshal(text, &example); err != nil {
				t.Fatal(err)
			}
			query := url.Values{}
			for name, value := range example.Query {
				query.Set(name, value)
			}
			in := o.New()
			bound := op.Request{Path: func(name string) string { return example.Path[name] }, Query: query, Body: example.Body}
			if err := o.Input().Bind(in, bound); err != nil {
				t.Fatal(err)
			}
			path := "/v2" + op.Braced(o.Meta().Path)
			for name, value := range example.Path {
				path = strings.ReplaceAll(path, "{"+name+"}", value)
			}

			c := answering(t, client.Config{}, func(w http.ResponseWriter, r *http.Request) error {
				body, _ := io.ReadAll(r.Body)
				if r.Method != o.Meta().Method || r.URL.Path != path || r.Header.Get("X-API-Key") != "key" {
					t.Errorf("%s %s, not %s", r.Method, r.URL, path)
				}
				sent, again := bound, o.New()
				sent.Query, sent.Body = r.URL.Query(), body
				if err := o.Input().Bind(again, sent); err != nil || !reflect.DeepEqual(again, in) {
					t.Errorf("%s %s binds to %+v, not to %+v: %v", r.URL, body, again, in, err)
				}
				if given := r.Header.Get("Idempotency-Key") != ""; given != (r.Method == "POST") {
					t.Errorf("a %s with an Idempotency-Key: %t", r.Method, given)
				}
				w.WriteHeader(example.Status)
				_, _ = w.Write(example.Response)
				return nil
			})
			out := reflect.New(o.Output()).Interface()
			if err := client.CallAny(t.Context(), c, o, in, out); err != nil {
				t.Fatal(err)
			}
			if _, none := out.(*op.NoContent); none {
				return
			}
			again, err := json2.Marshal(out)
			if err != nil {
				t.Fatal(err)
			}
			same(t, again, example.Response)
		})
	}
}

// same wants two texts to be the same JSON.
func same(t *testing.T, got, want []byte) {
	t.Helper()
	var a, b any
	if json.Unmarshal(got, &a) != nil || json.Unmarshal(want, &b) != nil || !reflect.DeepEqual(a, b) {
		t.Errorf("%s\nis not %s", got, want)
	}
}
