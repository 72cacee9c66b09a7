package directory_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
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

// TestGoogleDocumented reads what the documentation shows.
func TestGoogleDocumented(t *testing.T) {
	t.Parallel()
	g := googleServer(t, directorytest.New())
	s, _ := source(t, domain.Google, g, "")
	g.Inject(directorytest.Fault{Path: "/users", Body: fixture(t, "google_users.json", g.URL)})

	liz := bare("114511147312345678901", "liz@example.com", "Liz", "Smith", "Engineering")
	liz.Department, liz.JobTitle, liz.ManagerEmail = domain.Give("Sales"), domain.Give("Sales Engineer"), domain.Give("boss@example.com")
	liz.Language = domain.Give(domain.French)
	suspended := bare("114511147312345678902", "admin2@example.com", "", "", "")
	suspended.Display = domain.Give("Admin Two")
	suspended.Enabled = domain.Give(false)
	former := bare("114511147312345678903", "former@example.com", "Former", "Colleague", "Leavers")
	former.Enabled, former.Language = domain.Give(false), domain.Give(domain.Spanish)
	wantAccounts(t, accounts(mustRead(t, s, "")), liz, suspended, former)
}

// TestGoogleAnswers: Google throttles by a reason, forgets the tokens of pages, and shows nothing of an
// empty domain.
func TestGoogleAnswers(t *testing.T) {
	t.Parallel()
	g := googleServer(t, directorytest.New(people(5)...))
	s, w := source(t, domain.Google, g, "")
	g.Inject(directorytest.Fault{Path: "/users", Status: 403, Times: 2, Body: `{"error": {"errors": [{"reason": "userRateLimitExceeded"}]}}`})
	if pages := mustRead(t, s, ""); len(accounts(pages)) != 5 || !slices.Equal(w.list, []time.Duration{time.Second, 2 * time.Second}) {
		t.Errorf("%d accounts, waited %v", len(accounts(pages)), w.list)
	}
	if _, err := read(t.Context(), s, "2 ?"); !errors.Is(err, directory.ErrStartOver) {
		t.Errorf("an unknown token: %v", err)
	}
	none, _ := source(t, domain.Google, g, "nowhere.example")
	if pages := mustRead(t, none, ""); len(pages) != 1 || len(pages[0].Accounts) != 0 || !pages[0].Whole {
		t.Errorf("an empty domain: %+v", pages)
	}
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
