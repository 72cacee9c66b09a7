package directory_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/platform/directory"
	"partnerapi/platform/directory/directorytest"
	"partnerapi/platform/egress"
)

func googleServer(t *testing.T, d *directorytest.Directory) *directorytest.Google {
	g := directorytest.NewGoogle(d)
	t.Cleanup(g.Close)
	return g
}

// TestGoogle reads everything, each time.
func TestGoogle(t *testing.T) {
	t.Parallel()
	d := directorytest.New(people(7)...)
	g := googleServer(t, d)
	g.SetPageSize(3)
	s, _ := source(t, domain.Google, g, "")
	pages := mustRead(t, s, "")
	got := accounts(pages)
	if len(pages) != 3 || len(got) != 7 || !pages[0].Whole || !pages[2].Whole || next(pages) != "" {
		t.Fatalf("%d accounts on %d pages; next %q", len(got), len(pages), next(pages))
	}
	second := bare("id-001", "user001@example.com", "User", "1", "Sales")
	second.ManagerEmail = domain.Give("user000@example.com")
	wantAccounts(t, got[:2], bare("id-000", "user000@example.com", "User", "0", "Sales"), second)

	d.Remove("id-003")
	d.Put(directorytest.Account{ID: "id-100", Email: "zoe@elsewhere.example"})
	if got := accounts(mustRead(t, s, "")); len(got) != 7 || got[6].Group != domain.Give("") {
		t.Errorf("%+v", got)
	}
	one, _ := source(t, domain.Google, g, "elsewhere.example")
	if got := objects(accounts(mustRead(t, one, ""))); !slices.Equal(got, []string{"id-100"}) {
		t.Errorf("one domain: %v", got)
	}
	none, _ := source(t, domain.Google, g, "nowhere.example")
	if pages := mustRead(t, none, ""); len(pages) != 1 || len(pages[0].Accounts) != 0 || !pages[0].Whole {
		t.Errorf("an empty domain: %+v", pages)
	}
}

// TestGoogleDocumented reads what the documentation shows.
func TestGoogleDocumented(t *testing.T) {
	t.Parallel()
	g := googleServer(t, directorytest.New())
	s, _ := source(t, domain.Google, g, "")
	g.Inject(directorytest.Fault{Path: "/users", Body: fixture(t, "google_users.json", g.URL)})

	liz := bare("114511147312345678901", "liz@example.com", "Liz", "Smith", "Engineering")
	liz.Department, liz.JobTitle, liz.ManagerEmail = domain.Give("Sales"), domain.Give("Sales Engineer"), domain.Give("boss@example.com")
	liz.Language = domain.Give(domain.French)
	suspended := bare("114511147312345678902", "admin2@example.com", "Admin", "Two", "")
	suspended.Enabled = domain.Give(false)
	former := bare("114511147312345678903", "former@example.com", "Former", "Colleague", "Leavers")
	former.Enabled, former.Language = domain.Give(false), domain.Give(domain.Spanish)
	wantAccounts(t, accounts(mustRead(t, s, "")), liz, suspended, former)
}

// TestGoogleRefuses has what Google refuses, in its words.
func TestGoogleRefuses(t *testing.T) {
	t.Parallel()
	g := googleServer(t, directorytest.New(people(5)...))
	g.SetPageSize(2)
	s, w := source(t, domain.Google, g, "")
	refusal := func(reason string, times int) directorytest.Fault {
		return directorytest.Fault{
			Path: "/users", Status: 403, Times: times, Body: `{"error": {"code": 403, "message": "No.", "errors": [{"reason": "` + reason + `"}]}}`,
		}
	}
	for reason, words := range map[string][]string{
		"forbidden":           {"admin@example.com", "administrator", "admin.directory.user.readonly", "domain-wide delegation", "1234567890"},
		"accessNotConfigured": {"Admin SDK API"},
	} {
		g.Inject(refusal(reason, 1))
		_, err := decodeSettings(t.Context(), s, "")
		wantError(t, g, err, words...)
	}
	for status, words := range map[int][]string{400: {"refuses the request", "400"}, 404: {"no such domain"}} {
		g.Inject(directorytest.Failing("/users", status, 1))
		_, err := decodeSettings(t.Context(), s, "")
		wantError(t, g, err, words...)
	}
	if len(w.list) > 0 {
		t.Errorf("waited %v", w.list)
	}
	g.Inject(refusal("userRateLimitExceeded", 2))
	if pages := mustRead(t, s, ""); len(accounts(pages)) != 5 || !slices.Equal(w.list, []time.Duration{time.Second, 2 * time.Second}) {
		t.Errorf("%d accounts, waited %v", len(accounts(pages)), w.list)
	}
	if _, err := decodeSettings(t.Context(), s, "?"); !errors.Is(err, directory.ErrStartOver) {
		t.Errorf("a page's token that is no longer known: %v", err)
	}
}

// TestGoogleCredentials has credentials files that are none, and those that Google
// does not take.
func TestGoogleCredentials(t *testing.T) {
	t.Parallel()
	g, other := googleServer(t, directorytest.New(people(1)...)), googleServer(t, directorytest.New())
	connect := directory.NewConnect(g.Endpoints(), nil)
	with := func(name, value string) string {
		var file map[string]string
		if err := json.Unmarshal(g.Credentials(), &file); err != nil {
			t.Fatal(err)
		}
		file[name] = value
		text, _ := json.Marshal(file)
		return string(text)
	}
	key := func() string {
		var file map[string]string
		_ = json.Unmarshal(other.Credentials(), &file)
		return file["private_key"]
	}()
	for _, tt := range []struct {
		text  string
		words []string
	}{
		{"<html>", []string{"not JSON", "service account"}},
		{"", []string{"not JSON"}},
		{"[]", []string{"not JSON"}},
		{`{"installed": {}}`, []string{"service_account", "OAuth client"}},
		{with("type", "authorized_user"), []string{"authorized_user"}},
		{with("client_email", ""), []string{"client_email"}},
		{with("token_uri", "http://tokens.example"), []string{"token_uri", "https"}},
		{with("private_key", "none"), []string{"private_key"}},
		{with("private_key", strings.Replace(key, "M", "?", 5)), []string{"private_key"}},
	} {
		_, err := connect(t.Context(), "google", g.Settings(""), []byte(tt.text))
		wantError(t, g, err, tt.words...)
	}

	for _, address := range []string{"http://127.0.0.1:1/", "https://127.0.0.1/token", "https://[::1]/token", "https://10.1.2.3/token", ""} {
		_, err := directory.NewConnect(directory.Endpoints{}, nil)(t.Context(), "google", g.Settings(""), []byte(with("token_uri", address)))
		wantError(t, g, err, "token_uri", "public https address")
	}
	for _, tt := range []struct {
		settings, text string
		words          []string
	}{
		{`{"admin": "admin@example.com"}`, with("private_key", key), []string{"invalid_grant", "deleted", "Signature"}},
		{`{"admin": "nobody@example.com"}`, string(g.Credentials()), []string{"nobody@example.com is a user", "Invalid email"}},
	} {
		s, err := connect(t.Context(), "google", []byte(tt.settings), []byte(tt.text))
		if err != nil {
			t.Fatal(err)
		}
		_, err = decodeSettings(t.Context(), s, "")
		wantError(t, g, err, tt.words...)
	}
	s, _ := source(t, domain.Google, g, "")
	g.Inject(directorytest.Fault{Path: "token", Status: 401, Body: `{"error": "unauthorized_client", "error_description": "Client is unauthorized"}`})
	_, err := decodeSettings(t.Context(), s, "")
	wantError(t, g, err, "domain-wide delegation", "1234567890", "admin.directory.user.readonly")
}

// TestPublicTokens: what a credentials file names is connected to at public addresses
// only, whatever its name resolves to; a proxy of the environment may be anywhere.
func TestPublicTokens(t *testing.T) {
	t.Parallel()
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer server.Close()
	transport := &http.Transport{}
	client := http.Client{Transport: directory.OnlyPublic(transport)}
	if _, err := client.Get(server.URL); !errors.Is(err, egress.ErrSpecial) || asked != 0 {
		t.Errorf("%v, %d requests", err, asked)
	}
	transport.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(server.URL) }
	answer, err := client.Get("http://tokens.example/")
	if err != nil || asked != 1 {
		t.Fatalf("%v, %d requests", err, asked)
	}
	answer.Body.Close()
}
