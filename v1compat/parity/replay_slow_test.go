//go:build slow

package parity

import (
	"fmt"
	"strings"
	"testing"

	"partnerapi/db/seed"
	"partnerapi/idmap"
	"partnerapi/v1compat/v1test"
)

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
