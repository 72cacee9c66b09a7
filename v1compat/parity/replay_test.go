package parity

import (
	"fmt"
	"strings"
	"testing"

	"partnerapi/db/seed"
	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v1compat/v1test"
)

// traffic is recorded requests of the demonstration's first client, and what else
// callers ask for.
func traffic(t *testing.T, s *v1test.Service, keys seed.DemoKeys, address string) string {
	t.Helper()
	number := s.NumberIn(idmap.Client, idmap.UUID(keys.Client))
	var page struct{ Items []struct{ ID string } }
	s.Get(fmt.Sprintf("/v1/clients/%d/users?limit=3", number), keys.All).Want(200).Into(&page)
	user := page.Items[1].ID
	var some struct{ Items []struct{ ID int } }
	s.Get(fmt.Sprintf("/v1/clients/%d/policies", number), keys.All).Want(200).Into(&some)
	var entries []string
	entry := func(method, path, body string) {
		entries = append(entries, fmt.Sprintf(`{"request":{"method":%q,"url":"https://x.example/v1/%s","postData":{"text":%q}}}`, method, path, body))
	}
	for _, path := range []string{
		"partner", "clients", "clients?limit=7&offset=5", "clients?offset=1000", "clients?limit=0", "clients?limit=x",
		"clients?ids={c},999999", "clients?ids=", "clients/{c}/users", "clients/{c}/users?status=all&limit=50&offset=50",
		"clients/{c}/users?status=inactive&limit=1000", "clients/{c}/users?status=gone", "clients/999999/users", "clients/0/users",
		"clients/{c}/collections?limit=1&offset=1", "clients/{c}/policies", "clients/{c}/policies/{p}/users?status=signed&limit=3",
		"clients/{c}/policies/999999/users", "clients/{c}/darkweb/exposures?start=2025-06-15&end=2026-06-01",
		"clients/{c}/darkweb/exposures?start=2026-06-15&end=2025-06-01", "clients/{c}/darkweb/exposures?start=2026-01-01T00:00:00Z&limit=5",
		"clients/{c}/reports?limit=3&offset=1", "users/{u}/training", "users/{u}/phishing?limit=2&offset=1", "users/nobody/training",
		"users/" + domain.UserID(unusedID).UUID() + "/phishing",
	} {
		path = strings.NewReplacer("{c}", fmt.Sprint(number), "{u}", user, "{p}", fmt.Sprint(some.Items[0].ID)).Replace(path)
		entry("GET", path, "")
	}
	for _, body := range []string{
		`{"user_infima_id":"` + user + `"}`, `{"user_infima_id":"` + user + `","start_time":"2026-05-01T00:00:00Z","message_types":["phishing"]}`,
		`{"email_address":"nobody@example.com"}`, `{"email_address":"` + address + `","start_time":"2026-05-01T00:00:00Z"}`,
		`{"email_address":"no address"}`, `{}`,
	} {
		entry("POST", "sentemails?limit=5", body)
	}
	entry("DELETE", "clients", "")
	return `{"log":{"version":"1.2","entries":[` + strings.Join(entries, ",") + `]}}`
}

// TestReplay: recorded requests are answered alike, lines that are none are told, and a
// difference is found.
func TestReplay(t *testing.T) {
	t.Parallel()
	s := demo(t)
	keys, err := seed.Demo(t.Context(), s.DB) // which is there
	if err != nil {
		t.Fatal(err)
	}
	const shared = "shared@example.com" // of two clients' users who were sent mails
	s.Exec(`UPDATE users SET email = $1 FROM (
			SELECT DISTINCT ON (client_id) client_id, user_id FROM sent_emails
			WHERE message_type = 'phishing' AND sent_at >= '2026-05-05Z' LIMIT 2
		) AS sent
		WHERE users.client_id = sent.client_id AND id = user_id`, shared)
	har := traffic(t, s, keys, shared)
	replay := func(c Config) *Report {
		r, err := Replay(t.Context(), c, strings.NewReader(har), func(n int, reason string) { t.Errorf("%d: %s", n, reason) })
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	c := config(s.URL, keys.All, s.Clock.Now())
	apart := c
	apart.OldURL = s.URL
	for _, c := range []Config{c, apart} {
		if r := replay(c); r.Different() > 0 {
			t.Errorf("differences:\n%s", text(r))
		}
	}

	at := v1test.Proxy(t, s.URL, func(request string, a *v1test.Answer) {
		if strings.Contains(request, "/v1/sentemails") {
			replace(`"subject":"`, `"subject":"Re: `)(a)
		}
		if strings.Contains(request, "/v1/users/") && strings.Contains(request, "/training") {
			replace(`"order":1,`, `"order":1,"score":3,`)(a)
		}
		if strings.Contains(request, "/v1/clients?offset=5") || strings.Contains(request, "/v1/clients?limit=7") {
			dropFirst("items")(a)
		}
	})
	r := replay(config(at, keys.All, s.Clock.Now()))
	for operation, field := range map[string]string{"GET /v1/users/{user_id}/training": "score", clients: "missing row", mails: "subject"} {
		found := differences(r, operation, field)
		if len(found) == 0 || !strings.Contains(found[0].Request, "/v1/") {
			t.Errorf("%s of %s: %v", field, operation, found)
		}
	}
}

// TestReplayOfRefusals: with the key of another partner nothing is compared but refusals,
// which proves nothing.
func TestReplayOfRefusals(t *testing.T) {
	t.Parallel()
	s := demo(t)
	keys, err := seed.Demo(t.Context(), s.DB) // which is there
	if err != nil {
		t.Fatal(err)
	}
	lines := fmt.Sprintf("/v1/clients/%d/users\n/v1/clients?limit=x\n", s.NumberIn(idmap.Client, idmap.UUID(keys.Client)))
	ignore := func(int, string) {}
	_, err = Replay(t.Context(), config(s.URL, keys.Other, s.Clock.Now()), strings.NewReader(lines), ignore)
	if err == nil || !strings.Contains(err.Error(), "only error responses") {
		t.Errorf("the error is %v", err)
	}
	if _, err := Replay(t.Context(), config(s.URL, keys.All, s.Clock.Now()), strings.NewReader(lines), ignore); err != nil {
		t.Error(err)
	}
}
