package v1compat

import (
	"net/http"
	"testing"

	"partnerapi/v2/v2test"
)

// TestDepartmentsAreTrimmed verifies that a new user's department and job title are stored without white space around
// them, and that blank ones count as absent.
func TestDepartmentsAreTrimmed(t *testing.T) {
	t.Parallel()
	s := start(t, setup{Options: v2test.Options{Limits: v2test.Unlimited}})
	tenant := s.AddPartner("Partner")
	client := s.AddClient(tenant, "Client").ID
	create := func(email, department, title string) {
		t.Helper()
		body := map[string]string{"email": email, "department": department, "job_title": title}
		s.Do("POST", "/v1/clients/"+s.number(client)+"/users", tenant.Key, body).Want(http.StatusCreated)
	}
	create("a@example.com", " \u00a0Sales\t", "  Clerk\u00a0")
	create("b@example.com", " \u00a0", "\t")
	const stored = "SELECT string_agg(concat_ws('|', email, coalesce(department, '-'), coalesce(job_title, '-')), ' ' ORDER BY email) FROM users"
	if got, want := s.Text(stored), "a@example.com|Sales|Clerk b@example.com|-|-"; got != want {
		t.Errorf("stored %q, want %q", got, want)
	}
}
