package ginop_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/gin-gonic/gin"

	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
)

// TestHeadersOfASurface: what a surface adds to headers is on its answers, errors
// and documents, and on no other surface's.
func TestHeadersOfASurface(t *testing.T) {
	t.Parallel()
	e := newEdge(t, nil, nil)
	render := func(c *gin.Context, err *domain.Error) error {
		c.String(op.StatusOf(err.Code), err.Message)
		return nil
	}
	s := e.Surface(e.engine, "/own", render)
	s.Headers(func(c *gin.Context, operation string) { c.Header("Operation", operation) })
	s.Handle(http.MethodGet, "/try", "try", func(c *gin.Context) error { c.Status(http.StatusOK); return nil })
	s.Open("/document", text)

	for _, c := range []struct{ path, key, want string }{
		{"/own/try", "pk_demo_good", "try"}, {"/own/try", "bad", "try"}, {"/own/nowhere", "pk_demo_good", "unknown"},
		{"/own/document", "", "document"}, {"/v2/fine", "pk_demo_good", ""}, {"/v2/document", "", ""},
	} {
		if got := e.do(http.MethodGet, c.path, c.key).Header().Get("Operation"); got != c.want {
			t.Errorf("%s with the key %q: %q, not %q", c.path, c.key, got, c.want)
		}
	}
}

// TestWatch: every answer of a surface is observed once, with its caller where there
// is one.
func TestWatch(t *testing.T) {
	t.Parallel()
	e := newEdge(t, nil, nil)
	var told []string
	e.Watch(func(a ginop.Answered) {
		key := "nobody"
		if a.Caller != nil {
			key = a.Caller.Prefix
		}
		told = append(told, a.Surface+" "+a.Operation+" "+key+" "+http.StatusText(a.Status)+" "+a.UserAgent)
	})
	for _, path := range []string{"fine", "fails", "nowhere"} {
		e.do(http.MethodGet, "/v2/"+path, "pk_demo_good", "User-Agent", "agent/1")
	}
	e.do(http.MethodGet, "/v2/fine", "bad")
	e.do(http.MethodGet, "/v2/document", "")
	want := []string{
		"v2 fine pk_good OK agent/1", "v2 fails pk_good Internal Server Error agent/1",
		"v2 unknown pk_good Not Found agent/1", "v2 fine nobody Unauthorized ",
	}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, not %q", told, want)
	}
}
