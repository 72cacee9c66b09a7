package v2_test

import (
	"net/url"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// TestClientsByExternalID: the filter is exact in every character, several clients may
// share an identifier, and those of other partners, out of reach and archived are absent.
func TestClientsByExternalID(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{})
	tenant, other := h.Tenant("Partner"), h.Tenant("Other")
	add := func(of v2test.Tenant, name, external string) domain.ClientID {
		c := h.Client(of, name)
		h.Do("PATCH", "/v2/clients/"+c.ID.String(), of.Key, map[string]any{"external_id": external}).Want(200)
		return c.ID
	}
	first := add(tenant, "A", "CRM-1")
	add(tenant, "B", "CRM-1")
	add(tenant, "C", "crm-1")
	add(tenant, "D", " CRM-1")
	add(tenant, "E", "e\u0301")
	add(other, "F", "CRM-1")
	gone := add(tenant, "G", "CRM-1")
	h.Exec("UPDATE clients SET archived_at = now() WHERE id = $1", gone)
	h.CountClients()
	subset := h.NewKey(tenant, []domain.Scope{domain.Read}, []domain.ClientID{first})

	for external, want := range map[string]string{
		"CRM-1": "A|B", "crm-1": "C", " CRM-1": "D", "e\u0301": "E", "\u00e9": "", "CRM-": "", "": "A|B|C|D|E",
	} {
		path := "/v2/clients?external_id=" + url.QueryEscape(external)
		if got := strings.Join(names(h.Get(path, tenant.Key).Want(200)), "|"); got != want {
			t.Errorf("external_id=%s lists %s, not %s", external, got, want)
		}
	}
	if got := strings.Join(names(h.Get("/v2/clients?external_id=CRM-1", subset).Want(200)), "|"); got != "A" {
		t.Errorf("a key for one client lists %s", got)
	}
	checkInvalid(t, h.Get("/v2/clients?external_id="+strings.Repeat("x", 501), tenant.Key), "external_id", "500")
}

// TestNewClient holds what a client starts with.
func TestNewClient(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{})
	tenant := h.Tenant("Partner")
	c := h.Do("POST", "/v2/clients", tenant.Key, `{"name":"Fresh"}`).Want(201)
	for path, want := range map[string]any{
		"industry": nil, "external_id": nil, "users.active": 0.0, "users.inactive": 0.0,
		"risk.average_score": 750.0, "risk.grade": "B", "risk.high_risk_users": 0.0,
		"training.on_track_rate": 100.0, "training.overdue_users": 0.0,
		"phishing.click_rate_90d": 0.0, "phishing.report_rate_90d": 0.0,
		"features.directory_sync": nil, "created_at": "2026-06-15T12:00:00.000000Z", "updated_at": "2026-06-15T12:00:00.000000Z",
	} {
		if got := c.Field(path); got != want {
			t.Errorf("%s is %v, not %v", path, got, want)
		}
	}
	if list, ok := c.Field("frameworks").([]any); !ok || len(list) != 0 {
		t.Errorf("frameworks are %v", c.Field("frameworks"))
	}
	if n := h.Number("SELECT count(*) FROM program_courses"); n != 6 {
		t.Errorf("the program has %d courses, not the foundational six", n)
	}
	if n := h.Number("SELECT count(*) FROM groups WHERE manual AND name = 'Manual'"); n != 1 {
		t.Errorf("there are %d manual groups", n)
	}
	if n := h.Number("SELECT count(*) FROM events WHERE type = 'client.created' AND user_id IS NULL"); n != 1 {
		t.Errorf("%d events tell of it", n)
	}
}

// TestClientNames holds decisions 2.8: names clash by their key, per partner,
// and an archived client frees its name.
func TestClientNames(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{})
	a, b := h.Tenant("A"), h.Tenant("B")
	first := h.Client(a, "ÅNGSTRÖM Labs")
	second := h.Client(a, "Other")
	name := map[string]any{"name": "ångström LABS"}
	events := h.Number("SELECT count(*) FROM events")
	h.Do("POST", "/v2/clients", a.Key, name).Want(409)
	h.Do("PATCH", "/v2/clients/"+second.ID.String(), a.Key, name).Want(409)
	if n := h.Number("SELECT count(*) FROM events"); n != events {
		t.Errorf("%d events tell of clients that were refused", n-events)
	}
	if n := h.Number("SELECT count(*) FROM groups"); n != 2 {
		t.Errorf("a refused client left a group: %d", n)
	}
	h.Do("PATCH", "/v2/clients/"+first.ID.String(), a.Key, name).Want(200) // its own name is no clash
	h.Do("POST", "/v2/clients", b.Key, name).Want(201)
	h.Exec("UPDATE clients SET archived_at = now() WHERE id = $1", first.ID)
	h.CountClients()
	h.Do("POST", "/v2/clients", a.Key, name).Want(201)
}

// TestUpdatedAtMovesWithWhatIsShown holds decisions 3.8 for a client's own
// fields and its counters.
func TestUpdatedAtMovesWithWhatIsShown(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{})
	tenant := h.Tenant("Partner")
	client := h.Client(tenant, "Client")
	path := "/v2/clients/" + client.ID.String()
	user := h.User(tenant, client.ID, v2test.Email(1))
	moves := func(what string, want bool, fn func()) {
		t.Helper()
		before := h.Get(path, tenant.Key).Want(200).Field("updated_at")
		h.Clock.Advance(1e9)
		fn()
		after := h.Get(path, tenant.Key).Want(200).Field("updated_at")
		if (before != after) != want {
			t.Errorf("%s: updated_at went from %v to %v", what, before, after)
		}
		now := h.Clock.Now().Format("2006-01-02T15:04:05.000000Z")
		if want && after != now {
			t.Errorf("%s: updated_at is %v, not %s", what, after, now)
		}
	}
	patch := func(path, body string) func() {
		return func() { h.Do("PATCH", path, tenant.Key, body).Want(200) }
	}
	moves("a name", true, patch(path, `{"name":"Renamed"}`))
	moves("the same name", false, patch(path, `{"name":"Renamed"}`))
	moves("an industry", true, patch(path, `{"industry":"retail"}`))
	moves("the same industry", false, patch(path, `{"industry":"retail"}`))
	moves("no external id where there was none", false, patch(path, `{"external_id":null}`))
	moves("a new user", true, func() { h.User(tenant, client.ID, v2test.Email(2)) })
	userPath := "/v2/users/" + user.ID.String()
	moves("a user who leaves", true, patch(userPath, `{"status":"inactive"}`))
	moves("a user who stays away", false, patch(userPath, `{"status":"inactive"}`))
	moves("a user who comes back", true, patch(userPath, `{"status":"active"}`))
}
