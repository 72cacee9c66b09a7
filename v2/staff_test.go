package v2_test

import (
	"testing"
	"time"

	"partnerapi/v2/api"
	"partnerapi/v2/v2test"
)

// staff is a service with one client and its users, created a second apart.
type staff struct {
	*v2test.Harness
	tenant v2test.Partner
	client api.Client
	users  []api.User
}

func newStaff(t *testing.T, users int) *staff {
	return newStaffOf(t, v2test.Options{Limits: v2test.Unlimited}, users)
}

// newStaffOf is newStaff of a service with options.
func newStaffOf(t *testing.T, o v2test.Options, users int) *staff {
	h := v2test.New(t, o)
	s := &staff{Harness: h, tenant: h.AddPartner("Partner")}
	s.client = h.AddClient(s.tenant, "Client")
	for i := range users {
		if i > 0 {
			h.Clock.Advance(time.Second)
		}
		s.users = append(s.users, h.AddUser(s.tenant, s.client.ID, v2test.Email(i)))
	}
	return s
}

// more adds active users to the client, of a year ago, in plain SQL.
func (s *staff) more(n int) {
	s.T.Helper()
	s.Exec(`INSERT INTO users (client_id, id, email, first_name, last_name, name_key, status, role, preferred_language, source, score, created_at, updated_at)
		SELECT $1, gen_random_uuid(), 'more' || n || '@example.com', 'U', '', 'u', 'active', 'standard', 'en', 'api', 750, $2, $2 FROM generate_series(1, $3) AS n`,
		s.client.ID, s.Clock.Now().AddDate(-1, 0, 0), n)
}
