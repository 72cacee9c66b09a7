package v1compat

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"

	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
	"partnerapi/v2/v2test"
)

// tried is an input of v1 and of v2.
type tried struct {
	Body struct {
		Text string `json:"text,omitzero"`
	}
}

// raw is an answer whose text may be no UTF-8, and whose number may be none.
type raw struct {
	Text   string  `json:"text"`
	Number float64 `json:"number,omitzero"`
}

// oneRoute is v1 as the one route POST /try, which runs fn, without a database.
func oneRoute(t *testing.T, fn func(context.Context) (*raw, error)) (*gin.Engine, *bytes.Buffer) {
	t.Helper()
	set := &op.Set{}
	o := op.Add(set, op.Meta{
		ID: "try", Method: "POST", Path: "/try", Scope: domain.Write, Since: op.V2_0, Status: 200, Summary: "s",
	}, func(ctx context.Context, _ *tried) (*raw, error) { return fn(ctx) })
	f := &Facade{Config: Config{Registry: idmap.New(nil, 0)}}
	addCall(f, Meta{ID: "try", Method: "POST", Path: "/try", Status: http.StatusOK, Summary: "Try"}, o,
		func(in, out *tried) { *out = *in }, func(out *raw) *raw { return out }, nil)
	f.routes[0].set = set

	log := &bytes.Buffer{}
	caller := &domain.Caller{Prefix: "pk_good", AllClients: true, Scopes: []domain.Scope{domain.Write}}
	find := func(context.Context, []byte) (*domain.Caller, error) { return caller, nil }
	edge := ginop.NewEdge(ginop.Config{
		Keys: ginop.NewKeys(find, domain.SystemClock{}, false), Limits: v2test.Unlimited,
		Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	engine, err := edge.Engine(nil)
	if err == nil {
		err = f.Mount(edge, engine)
	}
	if err != nil {
		t.Fatal(err)
	}
	return engine, log
}

func try(engine *gin.Engine, body io.Reader) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "/v1/try", body)
	r.Header.Set("X-API-Key", "pk_demo_good")
	r.Header.Set("X-Request-Id", "abc")
	w := httptest.NewRecorder()
	engine.ServeHTTP(w, r)
	return w
}

// TestNotEncoded: an answer that cannot be encoded is 500 in v1's words, and its cause
// is logged.
func TestNotEncoded(t *testing.T) {
	t.Parallel()
	engine, log := oneRoute(t, func(context.Context) (*raw, error) { return &raw{Number: math.NaN()}, nil })
	w := try(engine, strings.NewReader(`{}`))
	var got Error
	err := json.Unmarshal(w.Body.Bytes(), &got)
	if err != nil || w.Code != 500 || got.Status != 500 || got.Error != domain.Internal || got.RequestID != "abc" ||
		!strings.HasPrefix(got.Message, "something went wrong") {
		t.Errorf("answers %d %s (%v)", w.Code, w.Body, err)
	}
	if !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "NaN") {
		t.Errorf("logs %s", log)
	}
}

// TestInvalidUTF8: bytes that are no UTF-8 are shown as U+FFFD, in answers and in errors.
func TestInvalidUTF8(t *testing.T) {
	t.Parallel()
	for want, fn := range map[string]func(context.Context) (*raw, error){
		"{\"text\":\"\ufffd\"}":              func(context.Context) (*raw, error) { return &raw{Text: "\xff"}, nil },
		"\"message\":\"text is not \ufffd\"": func(context.Context) (*raw, error) { return nil, domain.ErrInvalid("text", "is not \xff") },
	} {
		engine, _ := oneRoute(t, fn)
		if w := try(engine, strings.NewReader(`{}`)); !strings.Contains(w.Body.String(), want) {
			t.Errorf("answers %d %s, which lacks %s", w.Code, w.Body, want)
		}
	}
}

// TestContentEncoding verifies that v1 ignores Content-Encoding over plain JSON and otherwise names it, and that a byte
// order mark at the start of a body is ignored (decisions 2.5).
func TestContentEncoding(t *testing.T) {
	t.Parallel()
	engine, _ := oneRoute(t, func(context.Context) (*raw, error) { return &raw{}, nil })
	const coded = "Content-Encoding must not be gzip unless the body is plain JSON"
	for _, test := range []struct{ value, body, message string }{
		{"gzip", `{"text":"x"}`, ""}, {"gzip", "\ufeff{}", ""}, {"", "\ufeff{}", ""}, {"identity", `{}`, ""},
		{"gzip", "\x1f\x8b\x08\x00", coded}, {"utf-8, GZIP", `{"text":`, coded},
		{"gzip", `[]`, "body must be a JSON object"}, {"gzip", "", "body must be a JSON object, but is empty"},
		{"utf-8", `{"text":`, "body must be valid JSON in UTF-8"},
	} {
		r := httptest.NewRequest("POST", "/v1/try", strings.NewReader(test.body))
		r.Header.Set("X-API-Key", "pk_demo_good")
		r.Header.Set("Content-Encoding", test.value)
		w := httptest.NewRecorder()
		engine.ServeHTTP(w, r)
		var got Error
		status := map[bool]int{true: http.StatusOK, false: http.StatusBadRequest}[test.message == ""]
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != status || got.Message != test.message {
			t.Errorf("%s over %q: got %d %s, want %d %q", test.value, test.body, w.Code, w.Body, status, test.message)
		}
	}
}

// TestTrailingSlash verifies that the 404 of a path that ends in a slash says so, in v1's envelope.
func TestTrailingSlash(t *testing.T) {
	t.Parallel()
	engine, _ := oneRoute(t, func(context.Context) (*raw, error) { return &raw{}, nil })
	r := httptest.NewRequest("POST", "/v1/try/", strings.NewReader(`{}`))
	r.Header.Set("X-API-Key", "pk_demo_good")
	w := httptest.NewRecorder()
	engine.ServeHTTP(w, r)
	var got Error
	const want = "no such operation: no path of the API ends in a slash; see /v1/openapi.yaml"
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusNotFound || got.Message != want {
		t.Errorf("got %d %s, want %q", w.Code, w.Body, want)
	}
}

// slow is a body that takes a while to end.
type slow struct{ io.Reader }

// Read reads, and waits before the end.
func (s slow) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err == io.EOF {
		time.Sleep(50 * time.Second) // of the bubble's time
	}
	return n, err
}

// TestTimeBeginsAfterBody: all work of a request has its 20 seconds from the end
// of the body on, and not the time of an upload.
func TestTimeBeginsAfterBody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var within time.Duration
		engine, _ := oneRoute(t, func(ctx context.Context) (*raw, error) {
			if deadline, ok := ctx.Deadline(); ok {
				within = time.Until(deadline)
			}
			return &raw{}, nil
		})
		try(engine, slow{strings.NewReader(`{}`)})
		if within != 20*time.Second {
			t.Errorf("the operation has %v", within)
		}
	})
}
