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
	tenant v2test.Tenant
	client api.Client
	users  []api.User
}

func newStaff(t *testing.T, users int) *staff {
	h := v2test.New(t, v2test.Options{Limits: v2test.Unlimited})
	s := &staff{Harness: h, tenant: h.Tenant("Partner")}
	s.client = h.Client(s.tenant, "Client")
	for i := range users {
		if i > 0 {
			h.Clock.Advance(time.Second)
		}
		s.users = append(s.users, h.User(s.tenant, s.client.ID, v2test.Email(i)))
	}
	return s
}
