package client_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"partnerapi/client"
	"partnerapi/db/dbtest"
	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// tripper is a transport that a function is.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answering calls a service whose answers are a function's; its error is a broken connection.
func answering(t *testing.T, c client.Config, answer func(http.ResponseWriter, *http.Request) error) *client.Client {
	t.Helper()
	c.URL, c.Key = "https://api.example.com/", "key"
	c.Transport = tripper(func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		if r.Body == nil {
			r.Body = http.NoBody
		}
		if err := answer(w, r); err != nil {
			return nil, err
		}
		return w.Result(), nil
	})
	made, err := client.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// waits notes pauses, in seconds: growing ones without the tenth more or less.
type waits []int

func (w *waits) wait(ctx context.Context, d time.Duration) error {
	seconds := d.Seconds()
	for _, growing := range []float64{1, 2, 4, 8} {
		if math.Abs(seconds-growing) <= growing/10 {
			seconds = growing
		}
	}
	*w = append(*w, int(seconds))
	return ctx.Err()
}

// TestService: of a running service, a POST whose answer is lost after the service did it is sent
// again with the same Idempotency-Key, and done once; a list and the feed are read page by page.
func TestService(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{})
	tenant := h.AddPartner("Acme")
	pauses, keys, broken := waits{}, []string{}, errors.New("the connection broke")
	through := h.Caller(tenant.Key).HTTP().Transport
	c, err := client.New(client.Config{
		URL: h.URL, Key: tenant.Key, Wait: pauses.wait,
		Transport: tripper(func(r *http.Request) (*http.Response, error) {
			keys = append(keys, r.Header.Get("Idempotency-Key"))
			response, err := through.RoundTrip(r)
			if len(keys) < 3 && err == nil {
				_ = response.Body.Close()
				return nil, broken
			}
			return response, err
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	in := &api.CreateClientInput{}
	in.Body.Name = "Northwind"
	made, err := client.Call(t.Context(), c, api.CreateClient, in)
	if err != nil || made.Name != "Northwind" {
		t.Fatalf("%+v, %v", made, err)
	}
	if len(keys) != 3 || len(slices.Compact(keys)) != 1 || len(keys[0]) < 20 || !slices.Equal(pauses, []int{1, 2}) {
		t.Errorf("keys %v, pauses %v", keys, pauses)
	}
	if n := h.Number("SELECT count(*) FROM clients"); n != 1 {
		t.Errorf("%d clients were made", n)
	}

	in.Body.Name, keys = "Southwind", []string{"", ""}
	if _, err := client.Call(client.WithIdempotencyKey(t.Context(), "order-1"), c, api.CreateClient, in); err != nil || keys[2] != "order-1" {
		t.Errorf("%v: %v", keys, err)
	}
	in.Body.Name = "Other"
	if _, err := client.Call(client.WithIdempotencyKey(t.Context(), "order-1"), c, api.CreateClient, in); !domain.IsCode(err, domain.Conflict) {
		t.Error(err)
	}

	h.Publish()
	list, feed := &api.ListClientsInput{}, &api.ListEventsInput{}
	list.Query.Limit, feed.Query.Limit, feed.Query.Types = 1, 1, api.EnumList[domain.EventType]{domain.ClientCreated}
	var listed, followed []string
	for of, err := range client.Items(t.Context(), c, api.ListClients, list) {
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, of.Name)
	}
	for page, err := range client.Feed(t.Context(), c, api.ListEvents, feed, 0) {
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range page.Data {
			var of api.Client
			if err := event.Data.Into(&of); err != nil {
				t.Error(err)
			}
			followed = append(followed, of.Name)
		}
	}
	if want := []string{"Northwind", "Southwind"}; !slices.Equal(listed, want) || !slices.Equal(followed, want) {
		t.Errorf("listed %q, followed %q", listed, followed)
	}
}

// epoch is what the clock of a service shows.
var epoch = time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)

// TestRetries: which answers are followed by another try, after which pause.
func TestRetries(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		statuses string // with Retry-After after a colon, + for a date so much later; 0 is a broken connection
		pauses   []int
		err      string // empty for success
	}{
		{"a rate limit", "429:17 200", []int{17}, ""},
		{"a rate limit until a date", "429:+17 503:+-5 200", []int{17, 2}, ""},
		{"too late a date", "503:+3600", nil, "503"},
		{"an outage", "503 502 504 500 200", []int{1, 2, 4, 8}, ""},
		{"for good", "503 503 503 503 503", []int{1, 2, 4, 8}, "503"},
		{"a slow request", "408 200", []int{1}, ""},
		{"a broken connection", "0 0 200", []int{1, 2}, ""},
		{"the same key is under way", "409:1 200", []int{1}, ""},
		{"a conflict", "409", nil, "409"},
		{"too long a wait", "429:3600", nil, "429"},
		{"a fault", "400", nil, "400"},
		{"not found", "404", nil, "404"},
		{"a redirect", "307", nil, "not followed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			left, pauses, told := strings.Fields(tt.statuses), waits{}, 0
			c := client.Config{Wait: pauses.wait, Retrying: func(error, time.Duration) { told++ }}
			_, err := answering(t, c, func(w http.ResponseWriter, _ *http.Request) error {
				text, after, _ := strings.Cut(left[0], ":")
				left = left[1:]
				status, _ := strconv.Atoi(text)
				if status == 0 {
					return errors.New("broken")
				}
				if later, date := strings.CutPrefix(after, "+"); date { // by the service's clock
					seconds, _ := strconv.Atoi(later)
					w.Header().Set("Date", epoch.Format(http.TimeFormat))
					after = epoch.Add(time.Duration(seconds) * time.Second).Format(http.TimeFormat)
				}
				w.Header().Set("Retry-After", after)
				w.Header().Set("Location", "https://elsewhere.example/")
				w.WriteHeader(status)
				return nil
			}).Do(t.Context(), client.Request{Method: "GET", Path: "/v2/clients"})
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Error(err)
			}
			if !slices.Equal(pauses, tt.pauses) || told != len(tt.pauses) || len(left) > 0 {
				t.Errorf("pauses %v, told %d times, %v is left", pauses, told, left)
			}
		})
	}
}

// TestLasting: what fails in every try is tried once; what may pass is tried again.
func TestLasting(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err   error
		tries int
	}{
		{&tls.CertificateVerificationError{Err: errors.New("expired")}, 1},
		{x509.CertificateInvalidError{Cert: &x509.Certificate{}, Reason: x509.Expired}, 1},
		{x509.HostnameError{Certificate: &x509.Certificate{}, Host: "api.example.com"}, 1},
		{x509.UnknownAuthorityError{}, 1},
		{x509.SystemRootsError{}, 1},
		{http.ErrSchemeMismatch, 1},
		{tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, 1},
		{&net.OpError{Op: "dial", Err: &net.AddrError{Err: "invalid port", Addr: "99999"}}, 1},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", IsNotFound: true}}, 1},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Err: "server misbehaving", IsTemporary: true}}, 3},
		{&net.OpError{Op: "dial", Err: errors.New("connection refused")}, 3},
	} {
		asked, pauses := 0, waits{}
		c := answering(t, client.Config{Wait: pauses.wait, Tries: 3}, func(http.ResponseWriter, *http.Request) error {
			asked++
			return tt.err
		})
		if _, err := c.Do(t.Context(), client.Request{Method: "GET", Path: "/v2/clients"}); !errors.Is(err, tt.err) || asked != tt.tries {
			t.Errorf("%v: asked %d times", err, asked)
		}
	}

	service := httptest.NewUnstartedServer(http.NotFoundHandler())
	service.Config.ErrorLog = log.New(io.Discard, "", 0)
	service.StartTLS()
	t.Cleanup(service.Close)
	c, err := client.New(client.Config{URL: service.URL, Retrying: func(err error, _ time.Duration) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if _, err := c.Do(t.Context(), client.Request{Method: "GET", Path: "/v2/clients"}); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Error(err)
	}
}

// TestUnsendable: a request that no try can send is tried once, and the error shows no key.
func TestUnsendable(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct {
		key string
		ctx context.Context
		client.Request
	}{
		"X-Api-Key":       {key: "sesame\n", Request: client.Request{Method: "GET", Path: "/v2/clients"}},
		"Idempotency-Key": {key: "k", ctx: client.WithIdempotencyKey(t.Context(), "a\x00b"), Request: client.Request{Method: "POST", Path: "/v2/clients"}},
		`"a b"`:           {key: "k", Request: client.Request{Method: "GET", Path: "/v2/clients", Header: http.Header{"a b": {"c"}}}},
		"is not a path":   {key: "k", Request: client.Request{Method: "GET", Path: "v2"}},
		"method":          {key: "k", Request: client.Request{Method: "G T", Path: "/v2/clients"}},
		"invalid URL":     {key: "k", Request: client.Request{Method: "GET", Path: "/v2/%zz"}},
	} {
		c, err := client.New(client.Config{
			URL: "https://api.example.com", Key: tt.key, Retrying: func(err error, _ time.Duration) { t.Errorf("%s is tried again: %v", what, err) },
			Wait: func(context.Context, time.Duration) error { return nil },
			Transport: tripper(func(*http.Request) (*http.Response, error) {
				return nil, errors.New("net/http: invalid header field value") // as net/http's own transport
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		if tt.ctx == nil {
			tt.ctx = t.Context()
		}
		if _, err := c.Do(tt.ctx, tt.Request); err == nil || !strings.Contains(err.Error(), what) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestNameIsGone: the name of a service that has answered is looked up again.
func TestNameIsGone(t *testing.T) {
	t.Parallel()
	asked, pauses := 0, waits{}
	c := answering(t, client.Config{Wait: pauses.wait}, func(http.ResponseWriter, *http.Request) error {
		if asked++; asked == 2 {
			return &net.DNSError{Err: "no such host", IsNotFound: true}
		}
		return nil
	})
	for range 2 {
		if _, err := c.Do(t.Context(), client.Request{Method: "GET", Path: "/v2/clients"}); err != nil {
			t.Error(err)
		}
	}
	if asked != 3 || !slices.Equal(pauses, []int{1}) {
		t.Errorf("asked %d times, pauses %v", asked, pauses)
	}
}

// TestStops: a context that ends stops the tries.
func TestStops(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	c := answering(t, client.Config{}, func(w http.ResponseWriter, _ *http.Request) error {
		asked++
		cancel()
		w.WriteHeader(http.StatusServiceUnavailable)
		return nil
	})
	if _, err := client.Call(ctx, c, api.GetPartner, &api.GetPartnerInput{}); err == nil || asked != 1 {
		t.Errorf("%d requests, %v", asked, err)
	}
}

// TestPages: each page is asked for with the cursor of the one before and the same filters.
// One that fails is an error, once, and the last that there is.
func TestPages(t *testing.T) {
	t.Parallel()
	var asked []string
	c := answering(t, client.Config{}, func(w http.ResponseWriter, r *http.Request) error {
		asked = append(asked, r.URL.RawQuery)
		n := len(asked)
		if n == 3 {
			w.WriteHeader(http.StatusBadRequest)
			return nil
		}
		fmt.Fprintf(w, `{"data":[{"name":"a%d"},{"name":"b%d"}],"page":{"next_cursor":"c+%d","has_more":true}}`, n, n, n)
		return nil
	})
	in := &api.ListClientsInput{}
	in.Query.Q, in.Query.Cursor = "x&y", "c0"
	var seen []string
	for item, err := range client.Items(t.Context(), c, api.ListClients, in) {
		seen = append(seen, item.Name)
		if err != nil {
			seen = append(seen, err.Error())
		}
	}
	if want := []string{"a1", "b1", "a2", "b2", "", "the service returned 400 Bad Request"}; !slices.Equal(seen, want) {
		t.Errorf("%q", seen)
	}
	if want := []string{"cursor=c0&q=x%26y", "cursor=c%2B1&q=x%26y", "cursor=c%2B2&q=x%26y"}; !slices.Equal(asked, want) {
		t.Errorf("%q", asked)
	}

	asked = nil
	for range client.Items(t.Context(), c, api.ListClients, in) {
		if len(asked) == 2 {
			break
		}
	}
	if len(asked) != 2 {
		t.Errorf("asked %d times after the loop was left", len(asked))
	}
}

// TestFeed: a feed ends where nothing follows, or goes on there after a pause. What is no
// page of one is an error.
func TestFeed(t *testing.T) {
	t.Parallel()
	pauses, asked := waits{}, 0
	c := answering(t, client.Config{Wait: pauses.wait}, func(w http.ResponseWriter, r *http.Request) error {
		if asked++; asked == 4 {
			fmt.Fprint(w, `{}`)
			return nil
		}
		fmt.Fprintf(w, `{"data":[],"page":{"next_cursor":"c%d","has_more":%t}}`, asked, asked == 1)
		return nil
	})
	follow := func(every time.Duration) (cursors []string, last error) {
		for page, err := range client.Feed(t.Context(), c, api.ListEvents, &api.ListEventsInput{}, every) {
			if last = err; err == nil {
				cursors = append(cursors, page.Page.NextCursor)
			}
		}
		return cursors, last
	}
	if cursors, err := follow(0); err != nil || !slices.Equal(cursors, []string{"c1", "c2"}) || len(pauses) > 0 {
		t.Errorf("%v, %v, paused %v", cursors, err, pauses)
	}
	asked = 0
	if cursors, err := follow(7 * time.Second); err == nil || !slices.Equal(cursors, []string{"c1", "c2", "c3", ""}) || !slices.Equal(pauses, []int{7, 7}) {
		t.Errorf("%v, %v, paused %v", cursors, err, pauses)
	}
}

// TestBounds: answers are bounded, also where they are compressed, and what is no answer of
// the operation is an error; neither is asked for again.
func TestBounds(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte(`{"name":"` + strings.Repeat("a", 1<<20) + `"}`))
	_ = w.Close()
	asked, agent := 0, ""
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.Header.Get("Accept-Encoding") != "gzip" || r.Header.Get("User-Agent") != cmp.Or(agent, "partnerapi-go/"+op.Latest.String()) {
			t.Error(r.Header)
		}
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	}))
	t.Cleanup(service.Close)
	for most, says := range map[int64]string{1 << 19: "over 524288 bytes", 0: "", 1 << 21: ""} {
		c, err := client.New(client.Config{URL: service.URL, MaxBody: most})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		_, err = client.Call(t.Context(), c, api.GetPartner, &api.GetPartnerInput{})
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%d: %v", most, err)
		}
	}
	if asked != 3 {
		t.Errorf("asked %d times", asked)
	}
	agent = "acme-sync/2.4"
	named, err := client.New(client.Config{URL: service.URL, UserAgent: agent})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(named.Close)
	if _, err := client.Call(t.Context(), named, api.GetPartner, &api.GetPartnerInput{}); err != nil {
		t.Error(err)
	}
	c := answering(t, client.Config{}, func(w http.ResponseWriter, _ *http.Request) error {
		asked++
		fmt.Fprint(w, "<html>")
		return nil
	})
	_, err = client.Call(t.Context(), c, api.GetPartner, &api.GetPartnerInput{})
	if err == nil || !strings.Contains(err.Error(), "an unexpected response") || asked != 5 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	if _, err := client.Call(t.Context(), c, api.GetClient, &api.GetClientInput{}); err == nil || asked != 5 {
		t.Errorf("a client that is not named: asked %d times: %v", asked, err)
	}
}
