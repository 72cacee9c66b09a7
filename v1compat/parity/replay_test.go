package parity

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"partnerapi/db/seed"
	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v1compat/v1test"
)

// traffic is recorded requests of the demonstration's first client, and what else
// callers ask for.
func traffic(t *testing.T, s *v1test.Service, keys seed.DemoKeys) string {
	t.Helper()
	number := s.NumberIn(idmap.Client, idmap.UUID(keys.Client))
	var page struct{ Items []struct{ ID string } }
	s.Get(fmt.Sprintf("/v1/clients/%d/users?limit=3", number), keys.All).Want(200).Into(&page)
	user := page.Items[1].ID
	var some struct{ Items []struct{ ID int } }
	s.Get(fmt.Sprintf("/v1/clients/%d/policies", number), keys.All).Want(200).Into(&some)
	var b strings.Builder
	for _, path := range []string{
		"partner", "clients", "clients?limit=7&offset=5", "clients?offset=1000", "clients?limit=0", "clients?limit=x",
		"clients?ids={c},999999", "clients?ids=", "clients/{c}/users", "clients/{c}/users?status=all&limit=50&offset=50",
		"clients/{c}/users?status=inactive&limit=1000", "clients/{c}/users?status=gone", "clients/999999/users", "clients/0/users",
		"clients/{c}/collections?limit=1&offset=1", "clients/{c}/policies", "clients/{c}/policies/{p}/users?status=signed&limit=3",
		"clients/{c}/policies/999999/users", "clients/{c}/darkweb/exposures?start=2025-06-15&end=2026-06-01",
		"clients/{c}/darkweb/exposures?start=2026-06-15&end=2025-06-01", "clients/{c}/darkweb/exposures?start=2026-01-01T00:00:00Z&limit=5",
		"clients/{c}/reports?limit=3&offset=1", "users/{u}/training", "users/{u}/phishing?limit=2&offset=1", "users/nobody/training",
		"users/" + domain.UserID(nobody).UUID() + "/phishing",
	} {
		path = strings.NewReplacer("{c}", fmt.Sprint(number), "{u}", user, "{p}", fmt.Sprint(some.Items[0].ID)).Replace(path)
		fmt.Fprintf(&b, "{\"method\":\"GET\",\"path\":\"/v1/%s\"}\n", path)
	}
	for _, body := range []string{
		`{"user_infima_id":"` + user + `"}`, `{"user_infima_id":"` + user + `","start_time":"2026-05-01T00:00:00Z","message_types":["phishing"]}`,
		`{"email_address":"nobody@example.com"}`, `{}`,
	} {
		fmt.Fprintf(&b, "{\"method\":\"POST\",\"path\":\"/v1/sentemails?limit=5\",\"body\":%s}\n", body)
	}
	return b.String()
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
	lines := traffic(t, s, keys) + "nonsense\n{\"method\":\"DELETE\",\"path\":\"/v1/clients\"}\n"
	replay := func(url string) (*Report, []int) {
		var bad []int
		r, err := Replay(t.Context(), config(url, keys.All, s.Clock.Now()), strings.NewReader(lines), func(n int, _ string) { bad = append(bad, n) })
		if err != nil {
			t.Fatal(err)
		}
		return r, bad
	}
	r, bad := replay(s.URL)
	if n := strings.Count(lines, "\n"); !slices.Equal(bad, []int{n - 1, n}) {
		t.Errorf("unreadable: %v of %d", bad, n)
	}
	if r.Different() > 0 {
		_ = r.WriteText(t.Output())
		t.Errorf("%d differences", r.Different())
	}

	at := proxy(t, s.URL, func(request string, a *answered) {
		if strings.Contains(request, "/v1/users/") && strings.Contains(request, "/training") {
			a.body = strings.Replace(a.body, `"order":1,`, `"order":1,"score":3,`, 1)
		}
		if strings.Contains(request, "/v1/clients?offset=5") || strings.Contains(request, "/v1/clients?limit=7") {
			a.body = dropFirst(a.body, "items")
		}
	})
	r, _ = replay(at)
	found := map[string]bool{}
	for _, o := range r.Operations {
		for _, d := range o.Differences {
			found[o.Operation+" "+d.Field] = strings.Contains(d.Request, "/v1/")
		}
	}
	if !found["GET /v1/users/{user_id}/training score"] || !found["GET /v1/clients order"] {
		t.Errorf("found %v", found)
	}
}
