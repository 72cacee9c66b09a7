package v2_test

import (
	"testing"

	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// TestNames holds decisions 2.8: names are stored trimmed and clash by their key, per
// partner, and an archived client frees its name.
func TestNames(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{})
	a, b := h.AddPartner("A"), h.AddPartner("B")
	r := h.Do("POST", "/v2/clients", a.Key, `{"name":"\u00a0 STRASSE  U\u0308 \n"}`).Want(201)
	if r.Field("name") != "STRASSE  U\u0308" {
		t.Errorf("the name is stored as %q", r.Field("name"))
	}
	const name = `{"name":"Straße Ü "}`
	checkError(t, h.Do("POST", "/v2/clients", a.Key, name), domain.Conflict)
	checkError(t, h.Do("PATCH", "/v2/clients/"+h.AddClient(a, "Other").ID.String(), a.Key, name), domain.Conflict)
	h.Do("PATCH", r.Header.Get("Location"), a.Key, name).Want(200) // its own name is no clash
	h.Do("POST", "/v2/clients", b.Key, name).Want(201)
	h.Exec("UPDATE clients SET archived_at = now() WHERE name LIKE 'Straße%'")
	h.CountClients()
	h.Do("POST", "/v2/clients", a.Key, name).Want(201)
}

// TestUpdatedAtMovesWithWhatIsShown holds decisions 3.8 for a client's own
// fields and its counters.
func TestUpdatedAtMovesWithWhatIsShown(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{})
	tenant := h.AddPartner("Partner")
	client := h.AddClient(tenant, "Client")
	path := "/v2/clients/" + client.ID.String()
	user := h.AddUser(tenant, client.ID, v2test.Email(1))
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
	moves("a new user", true, func() { h.AddUser(tenant, client.ID, v2test.Email(2)) })
	userPath := "/v2/users/" + user.ID.String()
	moves("a user who leaves", true, patch(userPath, `{"status":"inactive"}`))
	moves("a user who stays away", false, patch(userPath, `{"status":"inactive"}`))
	moves("a user who comes back", true, patch(userPath, `{"status":"active"}`))
}
