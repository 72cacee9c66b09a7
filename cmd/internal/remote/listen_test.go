package remote

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"partnerapi/cmd/internal/cli"
	"partnerapi/domain"
)

// The ids of events.
var (
	first, bad = domain.EventID{1}.String(), domain.EventID{9}.String()
	second     = domain.EventID{2}.String()
	third      = domain.EventID{3}.String()
)

// following is a service whose answers a test says, and an endpoint.
type following struct {
	t       *testing.T
	mu      sync.Mutex
	asked   []url.Values
	pauses  []time.Duration
	posted  []string
	answers []func(http.ResponseWriter)
	stop    context.CancelFunc
}

func page(cursor string, more bool, ids ...string) func(http.ResponseWriter) {
	var items []string
	for _, id := range ids {
		items = append(items, fmt.Sprintf(`{"id":%q,"type":"user.updated","created_at":"2026-06-15T12:00:00Z","client_id":%q,"data":{"n":1}}`, id, domain.ClientID{1}))
	}
	return func(w http.ResponseWriter) {
		fmt.Fprintf(w, `{"data":[%s],"page":{"next_cursor":%q,"has_more":%t}}`, strings.Join(items, ","), cursor, more)
	}
}

func refusing(status int, after, message string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":{"code":"x","message":%q}}`, message)
	}
}

// ServeHTTP answers as the script says, and ends the command after that.
func (f *following) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.URL.Path != "/base/v2/events" || r.Header.Get("X-API-Key") != "key" || r.Method != "GET" {
		f.t.Errorf("%s %s", r.Method, r.URL)
	}
	f.asked = append(f.asked, r.URL.Query())
	answer := f.answers[0]
	if f.answers = f.answers[1:]; len(f.answers) == 0 {
		f.stop()
	}
	answer(w)
}

// wait notes a pause, without the tenth more or less.
func (f *following) wait(_ context.Context, d time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pauses = append(f.pauses, d.Round(time.Second))
	return nil
}

// run runs the command on the script, whose last answer is not used.
func (f *following) run(change func(*Listen)) (out, errs string, err error) {
	f.t.Helper()
	service := httptest.NewServer(f)
	defer service.Close()
	sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		library, _ := standardwebhooks.NewWebhook("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g")
		if err := library.Verify(body, r.Header); err != nil || r.Header.Get("X-Service-Signature") == "" || !strings.HasSuffix(string(body), `"data":{"n":1}}`) {
			f.t.Errorf("%s: %v: %v", body, r.Header, err)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.posted = append(f.posted, r.Header.Get("Webhook-Id"))
		if r.Header.Get("Webhook-Id") == bad {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	defer sink.Close()
	c := Listen{
		ForwardTo: sink.URL + "/hook", URL: service.URL + "/base/", KeyFlag: KeyFlag{Key: "key"}, From: "latest",
		Secret: "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g",
	}
	if change != nil {
		change(&c)
	}
	if err := c.Validate(); err != nil {
		f.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(f.t.Context())
	defer stop()
	f.stop = stop
	var text, problems bytes.Buffer
	err = c.follow(ctx, cli.Env{Out: &text, Err: &problems}, f.wait)
	return text.String(), problems.String(), err
}

// TestListen: events are posted in their order, once each, signed, and the cursor
// moves on; an outage of the service is waited out, as client.TestRetries has all of them.
func TestListen(t *testing.T) {
	t.Parallel()
	f := &following{t: t, answers: []func(http.ResponseWriter){
		refusing(429, "17", "slow down"), page("c1", false), page("c2", true, first, bad), page("c3", false, second),
		page("c4", false, third), page("c5", false, domain.EventID{4}.String()),
	}}
	out, errs, err := f.run(func(c *Listen) { c.Types, c.Client = []string{"user.updated", "user.created"}, "cli_1" })
	if err != nil {
		t.Fatal(err)
	}
	var cursors []string
	for _, q := range f.asked {
		cursors = append(cursors, q.Get("cursor"))
		if q.Get("types") != "user.updated,user.created" || q.Get("client_id") != "cli_1" {
			t.Error(q)
		}
	}
	if got := strings.Join(cursors, " "); got != "latest latest c1 c2 c3 c4" {
		t.Error(got)
	}
	if !slices.Equal(f.posted, []string{first, bad, second, third}) {
		t.Error(f.posted)
	}
	if want := []time.Duration{17 * time.Second, time.Second, time.Second, time.Second}; !slices.Equal(f.pauses, want) {
		t.Error(f.pauses)
	}
	for _, want := range []string{"signed with whsec_AAEC", " user.updated " + first + " 200 (", " user.updated " + bad + " 418 (", third + " 200"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q lacks %q", out, want)
		}
	}
	if !strings.Contains(errs, "429 slow down") || !strings.Contains(errs, "--from c4") {
		t.Error(errs)
	}
}

// TestListenAway: while nobody answers at the local address, events are tried once
// each and said to have failed. Without a secret there is a new one, and start
// begins with the oldest events.
func TestListenAway(t *testing.T) {
	t.Parallel()
	f := &following{t: t, answers: []func(http.ResponseWriter){page("c1", false, first), page("c2", false)}}
	out, _, err := f.run(func(c *Listen) { c.ForwardTo, c.Secret, c.From = "http://127.0.0.1:1/", "", "start" })
	if err != nil || !strings.Contains(out, first+" failed: ") || !strings.Contains(out, "signed with whsec_") || f.asked[0].Has("cursor") {
		t.Errorf("%v: %s %v", err, out, f.asked)
	}
}

// TestListenRefused: what will not pass ends the command, and redirects are not
// followed with the key.
func TestListenRefused(t *testing.T) {
	t.Parallel()
	for _, answer := range []func(http.ResponseWriter){
		refusing(401, "", "the API key is unknown"), refusing(400, "", "cursor is not valid"), func(w http.ResponseWriter) { fmt.Fprint(w, "<html>") },
		func(w http.ResponseWriter) { w.Header().Set("Location", "/elsewhere"); w.WriteHeader(http.StatusFound) },
	} {
		f := &following{t: t, answers: []func(http.ResponseWriter){answer, page("c", false)}}
		if _, _, err := f.run(nil); err == nil || len(f.asked) != 1 {
			t.Errorf("%v, asked %d times", err, len(f.asked))
		}
	}
	for _, c := range []Listen{
		{URL: "example.com", ForwardTo: "http://localhost/"}, {URL: "https://example.com/?a=b", ForwardTo: "http://localhost/"},
		{URL: "https://example.com", ForwardTo: "localhost:3000"}, {URL: "https://example.com", ForwardTo: "ftp://localhost/"},
		{URL: "https://example.com", ForwardTo: "http://localhost/", Secret: "whsec_short"},
	} {
		if c.Validate() == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}
