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
