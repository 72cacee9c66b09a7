package directory_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"partnerapi/domain"
	"partnerapi/platform/directory"
	"partnerapi/platform/directory/directorytest"
)

// noon is when tests begin.
var noon = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)

// vendor is a server of directorytest.
type vendor interface {
	Endpoints() directory.Endpoints
	Settings(string) json.RawMessage
	Credentials() []byte
	Inject(...directorytest.Fault)
	Requests(string) int
	ExpireTokens()
	SetPageSize(int)
	Close()
}

// waits keeps what was waited for, on a clock that it moves.
type waits struct {
	*domain.ManualClock
	mu   sync.Mutex
	list []time.Duration
}

func (w *waits) wait(ctx context.Context, d time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, d)
	w.Advance(d)
	return ctx.Err()
}

// source connects to a server.
func source(t *testing.T, provider domain.Directory, v vendor, part string) (directory.Source, *waits) {
	t.Helper()
	w := &waits{ManualClock: domain.NewManualClock(noon)}
	connect := directory.ConnectAt(v.Endpoints(), w, w.wait)
	s, err := connect(provider, v.Settings(part), v.Credentials())
	if err != nil {
		t.Fatal(err)
	}
	return s, w
}

// read reads from a position on, until the last page or an error.
func read(ctx context.Context, s directory.Source, position string) (pages []directory.Page, err error) {
	for page, err := range s.Read(ctx, position) {
		if err != nil {
			return pages, err
		}
		pages = append(pages, page)
	}
	if len(pages) == 0 || !pages[len(pages)-1].Last {
		return pages, errors.New("there is no last page")
	}
	return pages, nil
}

func mustRead(t *testing.T, s directory.Source, position string) []directory.Page {
	t.Helper()
	pages, err := read(t.Context(), s, position)
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// accounts are those of pages.
func accounts(pages []directory.Page) (list []domain.DirectoryAccount) {
	for _, p := range pages {
		list = append(list, p.Accounts...)
	}
	return list
}

// next is where the next read goes on.
func next(pages []directory.Page) string { return pages[len(pages)-1].Next }

func objects(list []domain.DirectoryAccount) (ids []string) {
	for _, a := range list {
		ids = append(ids, a.ObjectID)
	}
	return ids
}

func wantAccounts(t *testing.T, got []domain.DirectoryAccount, want ...domain.DirectoryAccount) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

// wantError wants an error with these words, and none of the secrets in it.
func wantError(t *testing.T, v vendor, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Error("there is no error")
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error does not say %q: %v", word, err)
		}
	}
	if secret := string(v.Credentials()); strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "PRIVATE KEY") ||
		strings.Contains(err.Error(), "Bearer") {
		t.Errorf("the error shows a secret: %v", err)
	}
}

// fixture is a vendor's answer from testdata, with the server's address in it.
func fixture(t *testing.T, name, address string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "{server}", address)
}

// people are n accounts, each of the last ones' manager the first.
func people(n int) (list []directorytest.Account) {
	for i := range n {
		a := directorytest.Account{
			ID: fmt.Sprintf("id-%03d", i), Email: fmt.Sprintf("user%03d@example.com", i), First: "User", Last: fmt.Sprint(i), OrgUnit: "/corp/Sales",
		}
		if i > 0 {
			a.Manager = "id-000"
		}
		list = append(list, a)
	}
	return list
}

// vendors starts both servers on a directory.
func vendors(t *testing.T, d *directorytest.Directory) map[domain.Directory]vendor {
	return map[domain.Directory]vendor{domain.Microsoft: microsoft(t, d), domain.Google: googleServer(t, d)}
}

// list is the path of the first request for accounts.
var list = map[domain.Directory]string{domain.Microsoft: "/users/delta", domain.Google: "/directory/v1/users"}

// TestFaults injects what may happen to any request in the middle of a reading, and to
// those for a token, and wants it to go on from the same page.
func TestFaults(t *testing.T) {
	t.Parallel()
	at := noon.Add(90 * time.Second).Format(http.TimeFormat)
	for _, tt := range []struct {
		name   string
		fault  directorytest.Fault
		waited []time.Duration
		words  []string // of the error; none where the reading succeeds
		// temporary errors are those after which the same position may be read.
		temporary bool
	}{
		{"throttled by seconds", directorytest.Throttled("", "7", 2), []time.Duration{7 * time.Second, 7 * time.Second}, nil, false},
		{"throttled until a time", directorytest.Throttled("", at, 1), []time.Duration{90 * time.Second}, nil, false},
		{"throttled without a time", directorytest.Throttled("", "soon", 3), []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}, nil, false},
		{"throttled for long", directorytest.Throttled("", "3600", 1), nil, []string{"throttling", "30m"}, true},
		{"throttled without an end", directorytest.Throttled("", "0", 1_000_000), nil, []string{"throttling", "30m"}, true},
		{"unavailable", directorytest.Fault{Status: 503, Header: map[string]string{"Retry-After": "2"}}, []time.Duration{2 * time.Second}, nil, false},
		{"failing", directorytest.Failing("", 500, 2), []time.Duration{time.Second, 2 * time.Second}, nil, false},
		{"failing for good", directorytest.Failing("", 502, 5), []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}, []string{"502", "5 times"}, true},
		{"cut", directorytest.Cut("", 2), []time.Duration{time.Second, 2 * time.Second}, nil, false},
		{"cut for good", directorytest.Cut("", 5), []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}, []string{"broke off", "5 times"}, true},
		{"HTML once", directorytest.HTML("", 2), []time.Duration{time.Second, 2 * time.Second}, nil, false},
		{"HTML for good", directorytest.HTML("", 3), []time.Duration{time.Second, 2 * time.Second}, []string{"other than JSON", "proxy", "3 times"}, false},
		{"partial once", directorytest.Fault{Body: `{}`}, []time.Duration{time.Second}, nil, false},
		{"partial for good", directorytest.Fault{Body: `{}`, Times: 3}, []time.Duration{time.Second, 2 * time.Second}, []string{"3 times"}, false},
		{"half an object", directorytest.Fault{Body: `{"value": [`}, []time.Duration{time.Second}, nil, false},
		{"a wrong type", directorytest.Fault{Body: `{"value": 1, "kind": "admin#directory#users", "users": {}}`, Times: 3}, []time.Duration{time.Second, 2 * time.Second}, []string{"can't be read"}, false},
		{"too large", directorytest.Fault{Body: `{"x": "` + strings.Repeat("x", 32<<20) + `"}`}, nil, []string{"32 MiB"}, false},
		{"token throttled", directorytest.Throttled("token", "7", 1), []time.Duration{7 * time.Second}, nil, false},
		{"token failing", directorytest.Failing("token", 500, 1), []time.Duration{time.Second}, nil, false},
		{"token cut", directorytest.Cut("token", 1), []time.Duration{time.Second}, nil, false},
		{"token HTML", directorytest.HTML("token", 3), []time.Duration{time.Second, 2 * time.Second}, []string{"other than JSON"}, false},
		{"no token", directorytest.Fault{Path: "token", Body: `{}`, Times: 3}, []time.Duration{time.Second, 2 * time.Second}, []string{"token"}, false},
		{"redirected", directorytest.Fault{Status: 302, Header: map[string]string{"Location": "http://localhost:1/login"}}, nil, []string{"another host", "localhost"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for provider, v := range vendors(t, directorytest.New(people(10)...)) {
				v.SetPageSize(4)
				s, w := source(t, provider, v, "")
				fault := tt.fault
				if fault.Path == "" {
					fault.Path, fault.After = list[provider], 1 // the second page
				}
				v.Inject(fault)
				pages, err := read(t.Context(), s, "")
				if temporary := (*directory.Temporary)(nil); errors.As(err, &temporary) != tt.temporary {
					t.Errorf("%s: temporary is %t: %v", provider, !tt.temporary, err)
				}
				if tt.words != nil {
					wantError(t, v, err, append(tt.words, map[domain.Directory]string{domain.Microsoft: "Microsoft", domain.Google: "Google"}[provider])...)
				} else if err != nil || len(accounts(pages)) != 10 || len(pages) != 3 {
					t.Errorf("%s: %d accounts on %d pages: %v", provider, len(accounts(pages)), len(pages), err)
				}
				if (tt.waited != nil || tt.words == nil) && !slices.Equal(w.list, tt.waited) {
					t.Errorf("%s: waited %v, want %v", provider, w.list, tt.waited)
				}
			}
		})
	}
}

// TestExpiredToken has tokens expire between pages: each is renewed once. One that
// is refused at once is an error.
func TestExpiredToken(t *testing.T) {
	t.Parallel()
	for provider, v := range vendors(t, directorytest.New(people(9)...)) {
		v.SetPageSize(3)
		s, w := source(t, provider, v, "")
		count := 0
		for page, err := range s.Read(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			count += len(page.Accounts)
			v.ExpireTokens()
		}
		if count != 9 || len(w.list) > 0 {
			t.Errorf("%s: %d accounts, waited %v", provider, count, w.list)
		}
		if n := v.Requests("token"); n != 3 {
			t.Errorf("%s: %d tokens", provider, n)
		}
		v.Inject(directorytest.Failing(list[provider], 401, 2))
		pages, err := read(t.Context(), s, "")
		if len(pages) > 0 {
			t.Errorf("%s: %d pages", provider, len(pages))
		}
		wantError(t, v, err, "401")
	}
}

// TestResume reads on from the position after each page.
func TestResume(t *testing.T) {
	t.Parallel()
	for provider, v := range vendors(t, directorytest.New(people(10)...)) {
		v.SetPageSize(3)
		s, _ := source(t, provider, v, "")
		pages := mustRead(t, s, "")
		for i, page := range pages[:len(pages)-1] {
			again, _ := source(t, provider, v, "")
			rest := mustRead(t, again, page.Next)
			if want := objects(accounts(pages[i+1:])); !slices.Equal(objects(accounts(rest)), want) || !rest[0].Whole {
				t.Errorf("%s: after page %d: %v, want %v", provider, i, objects(accounts(rest)), want)
			}
		}
	}
}

// TestCancelled ends the context while throttling is waited out.
func TestCancelled(t *testing.T) {
	t.Parallel()
	for provider, v := range vendors(t, directorytest.New(people(1)...)) {
		ctx, cancel := context.WithCancel(t.Context())
		s, err := directory.NewConnect(v.Endpoints(), nil)(provider, v.Settings(""), v.Credentials())
		if err != nil {
			t.Fatal(err)
		}
		v.Inject(directorytest.Throttled(list[provider], "600", 1))
		done := make(chan error)
		go func() {
			_, err := read(ctx, s, "")
			done <- err
		}()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", provider, err)
		}
	}
}

// silent answers no request.
type silent struct{ requests int }

func (h *silent) RoundTrip(r *http.Request) (*http.Response, error) {
	h.requests++
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestHanging gives each of five tries half a minute, with pauses between them.
func TestHanging(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &silent{}
		connect := directory.NewConnect(directory.Endpoints{}, func(http.RoundTripper) http.RoundTripper { return h })
		s, err := connect("microsoft", json.RawMessage(`{"tenant": "t", "app_id": "a"}`), []byte("s3cr3t"))
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		_, err = read(t.Context(), s, "")
		if err == nil || !strings.Contains(err.Error(), "did not respond within 30s (tried 5 times)") {
			t.Errorf("%v", err)
		}
		if took := time.Since(begin); h.requests != 5 || took != 5*30*time.Second+15*time.Second {
			t.Errorf("%d requests in %v", h.requests, took)
		}
	})
}

// with is the key file of a service account with one field changed.
func with(t *testing.T, g *directorytest.Google, name, value string) string {
	t.Helper()
	var file map[string]string
	if err := json.Unmarshal(g.Credentials(), &file); err != nil {
		t.Fatal(err)
	}
	file[name] = value
	text, _ := json.Marshal(file)
	return string(text)
}

// TestConnect refuses what can't be right, without a request.
func TestConnect(t *testing.T) {
	t.Parallel()
	const microsoft, google = `{"tenant": "t", "app_id": "a"}`, `{"admin": "a@example.com"}`
	none, g := directory.Endpoints{}, googleServer(t, directorytest.New())
	here := g.Endpoints()
	broken := strings.Replace(string(g.Credentials()), `KEY-----\n`, `KEY-----\n???`, 1)
	for _, tt := range []struct {
		endpoints             directory.Endpoints
		provider              domain.Directory
		settings, credentials string
		words                 []string
	}{
		{none, "okta", `{}`, "x", []string{"okta", "microsoft and google"}},
		{none, "microsoft", `{`, "x", []string{"settings"}},
		{none, "microsoft", `{"tenant": "t"}`, "x", []string{"tenant", "app"}},
		{none, "microsoft", microsoft, " \n", []string{"secret", "empty"}},
		{directory.Endpoints{Graph: "http://graph.example"}, "microsoft", microsoft, "x", []string{"must be an https URL"}},
		{directory.Endpoints{Login: "https://user@login.example"}, "microsoft", microsoft, "x", []string{"must consist only of"}},
		{none, "google", `{"admin": "someone"}`, "{}", []string{"administrator"}},
		{directory.Endpoints{Google: "ftp://admin.example"}, "google", google, "{}", []string{"must be an https URL"}},
		{here, "google", google, "<html>", []string{"not JSON", "service account"}},
		{here, "google", google, "", []string{"not JSON"}},
		{here, "google", google, "[]", []string{"not JSON"}},
		{here, "google", google, `{"installed": {}}`, []string{"service_account", "OAuth client"}},
		{here, "google", google, with(t, g, "type", "authorized_user"), []string{"authorized_user"}},
		{here, "google", google, with(t, g, "client_email", ""), []string{"client_email"}},
		{here, "google", google, with(t, g, "token_uri", "http://tokens.example"), []string{"token_uri", "https"}},
		{here, "google", google, with(t, g, "private_key", "none"), []string{"private_key"}},
		{here, "google", google, broken, []string{"private_key"}},
		{none, "google", google, with(t, g, "token_uri", "http://127.0.0.1:1/"), []string{"token_uri", "public https URL"}},
		{none, "google", google, with(t, g, "token_uri", "https://127.0.0.1/token"), []string{"token_uri", "public https URL"}},
		{none, "google", google, with(t, g, "token_uri", "https://[::1]/token"), []string{"token_uri", "public https URL"}},
		{none, "google", google, with(t, g, "token_uri", "https://10.1.2.3/token"), []string{"token_uri", "public https URL"}},
		{none, "google", google, with(t, g, "token_uri", ""), []string{"token_uri", "public https URL"}},
	} {
		_, err := directory.NewConnect(tt.endpoints, nil)(tt.provider, json.RawMessage(tt.settings), []byte(tt.credentials))
		wantError(t, g, err, tt.words...)
	}
}

// TestRefusals: what a vendor refuses for good is said at once, in its words and with what to do.
func TestRefusals(t *testing.T) {
	t.Parallel()
	all := vendors(t, directorytest.New(people(5)...))
	m, g := all[domain.Microsoft], all[domain.Google]
	reason := func(reason string) directorytest.Fault {
		return directorytest.Fault{
			Path: "/users", Status: 403, Body: `{"error": {"code": 403, "message": "No.", "errors": [{"reason": "` + reason + `"}]}}`,
		}
	}
	for _, tt := range []struct {
		provider domain.Directory
		fault    directorytest.Fault
		words    []string
	}{
		{domain.Microsoft, directorytest.Failing("/users/delta", 403, 1), []string{"User.Read.All", "GroupMember.Read.All", "Directory.Read.All", "consent"}},
		{domain.Microsoft, directorytest.Failing("/users/delta", 400, 1), []string{"rejected the request", "400", "It fails."}},
		{domain.Microsoft, directorytest.Failing("/manager", 403, 1), []string{"User.Read.All", "403"}},
		{domain.Google, reason("forbidden"), []string{"admin@example.com", "administrator", "admin.directory.user.readonly", "domain-wide delegation", "1234567890"}},
		{domain.Google, reason("accessNotConfigured"), []string{"Admin SDK API"}},
		{domain.Google, directorytest.Failing("/users", 400, 1), []string{"rejected the request", "400"}},
		{domain.Google, directorytest.Failing("/users", 404, 1), []string{"no such domain"}},
		{domain.Google, directorytest.Fault{Path: "token", Status: 401, Body: `{"error": "unauthorized_client", "error_description": "Client is unauthorized"}`},
			[]string{"domain-wide delegation", "1234567890", "admin.directory.user.readonly"}},
	} {
		s, w := source(t, tt.provider, all[tt.provider], "")
		all[tt.provider].Inject(tt.fault)
		_, err := read(t.Context(), s, "")
		if wantError(t, all[tt.provider], err, tt.words...); len(w.list) > 0 {
			t.Errorf("%v: waited %v", tt.words, w.list)
		}
	}

	theirs := string(googleServer(t, directorytest.New()).Credentials())
	var other struct {
		Key string `json:"private_key"`
	}
	if err := json.Unmarshal([]byte(theirs), &other); err != nil {
		t.Fatal(err)
	}
	microsoft, secret := string(m.Settings("")), string(m.Credentials())
	for _, tt := range []struct {
		vendor                vendor
		provider              domain.Directory
		settings, credentials string
		words                 []string
	}{
		{m, "microsoft", microsoft, "a-wrong-secret", []string{"client secret", "expired", "AADSTS7000215", "…"}},
		{m, "microsoft", strings.Replace(microsoft, "0c7b1f6e", "11111111", 1), secret, []string{"AADSTS700016", "app ID"}},
		{m, "microsoft", strings.Replace(microsoft, "5f1a3c52", "22222222", 1), secret, []string{"AADSTS90002", "tenant"}},
		{g, "google", string(g.Settings("")), with(t, g.(*directorytest.Google), "private_key", other.Key), []string{"invalid_grant", "deleted", "Signature"}},
		{g, "google", `{"admin": "nobody@example.com"}`, string(g.Credentials()), []string{"nobody@example.com is a user", "Invalid email"}},
	} {
		s, err := directory.NewConnect(tt.vendor.Endpoints(), nil)(tt.provider, []byte(tt.settings), []byte(tt.credentials))
		if err != nil {
			t.Fatal(err)
		}
		_, err = read(t.Context(), s, "")
		if wantError(t, tt.vendor, err, tt.words...); strings.Contains(err.Error(), tt.credentials) {
			t.Errorf("the error shows the secret: %v", err)
		}
	}
}
