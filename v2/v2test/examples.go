package v2test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/db/seed"
	"partnerapi/domain"
	"partnerapi/v2/op/openapi"
)

// Examples records examples of calls on the demonstration at Noon, and compares them with the files of a folder, or
// writes them there.
type Examples struct {
	h *Harness
	// Key is the demonstration's key with access to all clients.
	Key string
	// Client is the demonstration's first client.
	Client domain.ClientID

	dir     string
	update  bool
	written map[string]bool
	calls   []recorded
	// stable maps the ids that this run made to those in the examples.
	stable map[string]string
}

// NewExamples fills the harness's database with the demonstration. With update, the examples are written to the folder.
func NewExamples(h *Harness, dir string, update bool) *Examples {
	h.T.Helper()
	keys, err := seed.Demo(h.T.Context(), h.DB)
	h.Must(err)
	return &Examples{
		h: h, Key: keys.All, Client: keys.Client, dir: dir, update: update,
		written: map[string]bool{}, stable: map[string]string{},
	}
}

// Call is an example of a call.
type Call struct {
	ID string
	// Path are the path parameters by name, and Query is the query of the URL.
	Path  map[string]string
	Query string
	// Body is JSON; empty for none.
	Body string
}

// recorded is a call of an operation that was recorded.
type recorded struct {
	Call
	method, path string
}

// AtOnce makes all recorded calls by each of 16 concurrent clients, and fails the test if a response is a 5xx.
func (e *Examples) AtOnce(t *testing.T) {
	t.Helper()
	var clients sync.WaitGroup
	answers := make(chan int, 16*len(e.calls))
	for n := range 16 {
		clients.Go(func() {
			for i := range e.calls {
				call := e.calls[(i+n)%len(e.calls)]
				r := e.do(call.method, call.path, call.Call)
				if r.Status >= http.StatusInternalServerError {
					t.Errorf("%s %s: %d %s", call.method, call.path, r.Status, r.Body)
				}
				answers <- r.Status
			}
		})
	}
	clients.Wait()
	close(answers)
	statuses := map[int]int{}
	for status := range answers {
		statuses[status]++
	}
	t.Logf("answers by status: %v", statuses)
}

// Record makes the call, which must return status, and compares or writes its example. The parameters of the
// path are written {name}.
func (e *Examples) Record(t *testing.T, method, path string, status int, call Call) {
	t.Helper()
	e.calls = append(e.calls, recorded{call, method, path})
	example := openapi.Example{Status: status}
	for name, value := range call.Path {
		if example.Path == nil {
			example.Path = map[string]string{}
		}
		example.Path[name] = strings.Trim(string(e.stabilize([]byte(`"`+value+`"`))), `"`)
	}
	if call.Query != "" {
		query, err := url.ParseQuery(call.Query)
		e.h.Must(err)
		example.Query = map[string]string{}
		for name := range query {
			example.Query[name] = query.Get(name)
		}
	}
	if call.Body != "" {
		example.Body = jsontext.Value(call.Body)
	}
	r := e.do(method, path, call).Want(status)
	example.Response = e.stabilize(r.Body)

	text, err := json.Marshal(&example, json.Deterministic(true), jsontext.WithIndent("  "))
	e.h.Must(err)
	e.compare(t, call.ID+".json", append(text, '\n'))
}

// RecordEvent compares or writes the example of the webhook that posts an event, whose JSON is text.
func (e *Examples) RecordEvent(t *testing.T, eventType string, text []byte) {
	t.Helper()
	example := openapi.Example{Body: e.stabilize(text), Status: http.StatusOK}
	written, err := json.Marshal(&example, json.Deterministic(true), jsontext.WithIndent("  "))
	e.h.Must(err)
	e.compare(t, eventExample+eventType+".json", append(written, '\n'))
}

// eventExample begins the names of examples of webhooks.
const eventExample = "webhook."

// Shown returns JSON, indented and with stable values for those that differ between runs (stabilize).
func (e *Examples) Shown(text []byte) string {
	e.h.T.Helper()
	value := e.stabilize(text)
	e.h.Must(value.Indent(jsontext.WithIndent("  ")))
	return string(value)
}

// do sends a call.
func (e *Examples) do(method, path string, call Call) Response {
	e.h.T.Helper()
	for name, value := range call.Path {
		path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(value))
	}
	if call.Query != "" {
		path += "?" + call.Query
	}
	var body any
	if call.Body != "" {
		body = call.Body
	}
	return e.h.Do(method, path, e.Key, body)
}

// compare fails the test unless the file has the text; with update, it writes the file.
func (e *Examples) compare(t *testing.T, name string, text []byte) {
	t.Helper()
	e.written[name] = true
	file := filepath.Join(e.dir, name)
	if e.update {
		e.h.Must(os.WriteFile(file, text, 0o644))
		return
	}
	old, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(old, text) {
		t.Errorf("%s is stale (make examples): %v\n%s", file, err, Diff(string(old), string(text)))
	}
}

// Finish fails the test for files of the folder that are no example of a recorded call; with update, it removes them.
func (e *Examples) Finish(t *testing.T) {
	t.Helper()
	files, err := os.ReadDir(e.dir)
	e.h.Must(err)
	for _, f := range files {
		switch {
		case e.written[f.Name()], strings.HasPrefix(f.Name(), eventExample): // an example
		case e.update:
			e.h.Must(os.Remove(filepath.Join(e.dir, f.Name())))
		default:
			t.Errorf("%s is an example of no operation (make examples)", f.Name())
		}
	}
}

var (
	anyID     = regexp.MustCompile(`"([a-z]{3}_)([0-7][0-9a-hjkmnp-tv-z]{25})`)
	anyUUID   = regexp.MustCompile(`"([0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12})"`)
	anySecret = regexp.MustCompile(`whsec_[A-Za-z0-9+/]{44}`)
	anyCursor = regexp.MustCompile(`"next_cursor":"[^"]*"`)
)

// cursor is the cursor of all examples: real ones depend on a secret.
const cursor = "AVq2kTn0Y3Vyc29yLW9mLXRoZS1uZXh0LXBhZ2U"

// secret is the secret of all examples.
const secret = "whsec_MzMgcmFuZG9tIGJ5dGVzLCBvZiBhIHNlY3JldCBoZXJl"

// stabilize replaces values that differ between runs: cursors, secrets, and the ids of objects that a call created. The
// latter are greater than those of the demonstration, as an id begins with the time of its creation, which is later.
func (e *Examples) stabilize(body []byte) jsontext.Value {
	if len(body) == 0 {
		return nil
	}
	newest := domain.ID[domain.ClientKind](uuidAt(0xfff))
	text := anyID.ReplaceAllStringFunc(string(body), func(found string) string {
		prefix, id := found[:5], found[5:]
		if id <= strings.TrimPrefix(newest.String(), newest.Prefix()+"_") {
			return found
		}
		if e.stable[id] == "" {
			fresh := domain.ID[domain.ClientKind](uuidAt(len(e.stable) + 1))
			e.stable[id] = strings.TrimPrefix(fresh.String(), fresh.Prefix()+"_")
		}
		return prefix + e.stable[id]
	})

	text = anyUUID.ReplaceAllStringFunc(text, func(found string) string {
		id := strings.Trim(found, `"`)
		if id <= newest.UUID() {
			return found
		}
		if e.stable[id] == "" {
			e.stable[id] = domain.ID[domain.ClientKind](uuidAt(len(e.stable) + 1)).UUID()
		}
		return `"` + e.stable[id] + `"`
	})

	text = anySecret.ReplaceAllString(text, secret)
	text = anyCursor.ReplaceAllString(text, fmt.Sprintf(`"next_cursor":%q`, cursor))
	return jsontext.Value(text)
}

// uuidAt returns a UUID of version 7 with the time Noon and the number n, which has 12 bits.
func uuidAt(n int) (id [16]byte) {
	ms := Noon.UnixMilli()
	for i := range 6 {
		id[i] = byte(ms >> (8 * (5 - i)))
	}
	id[6], id[7], id[8] = 0x70|byte(n>>8&0xf), byte(n), 0x80
	return id
}

// Items returns the items of the first page of a list of version 2, read with the demonstration's key.
func (e *Examples) Items(path string) []map[string]any {
	e.h.T.Helper()
	var page struct{ Data []map[string]any }
	e.h.Get(path, e.Key).Want(http.StatusOK).Into(&page)
	return page.Data
}
