package v2_test

import (
	"testing"

	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// TestNames holds decisions 2.5 and 2.8: names are stored trimmed, and compared
// by their key.
func TestNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	r := w.Do("POST", "/v2/clients", w.tenant.Key, `{"name":"\u00a0 STRASSE  U\u0308 \n"}`).Want(201)
	if r.Field("name") != "STRASSE  U\u0308" {
		t.Errorf("the name is stored as %q", r.Field("name"))
	}
	checkError(t, w.Do("POST", "/v2/clients", w.tenant.Key, `{"name":"straße ü"}`), domain.Conflict)
	path := "/v2/clients/" + w.client.ID.String()
	checkError(t, w.Do("PATCH", path, w.tenant.Key, `{"name":"Straße\tÜ"}`), domain.InvalidRequest)
	checkError(t, w.Do("PATCH", path, w.tenant.Key, `{"name":"Straße Ü "}`), domain.Conflict)
	for _, name := range []string{`a\u0007b`, `a\nb`, `\u200b`, `\u3164\u2060`} {
		checkInvalid(t, w.Do("POST", "/v2/clients", w.tenant.Key, `{"name":"`+name+`"}`), "name")
		checkInvalid(t, w.Do("POST", path+"/collections", w.tenant.Key, `{"name":"`+name+`"}`), "name")
	}

	body := map[string]any{
		"email": "A@MÜNCHEN.example", "manager_email": "B@Example.COM", "first_name": " Ada ", "last_name": " \t",
	}
	user := w.Do("POST", w.usersPath(), w.tenant.Key, body).Want(201)
	for field, want := range map[string]string{
		"email": "a@xn--mnchen-3ya.example", "manager_email": "b@example.com", "first_name": "Ada", "last_name": "",
	} {
		if user.Field(field) != want {
			t.Errorf("%s is stored as %q", field, user.Field(field))
		}
	}
	body["email"] = "a@mu\u0308nchen.example"
	checkError(t, w.Do("POST", w.usersPath(), w.tenant.Key, body), domain.Conflict)
	body["email"], body["first_name"], body["role"] = "a\u200b@example.com", "a\x01b", "king"
	r = w.Do("POST", w.usersPath()+"?x=%20", w.tenant.Key, body)
	if fields, _ := checkError(t, r, domain.InvalidRequest).Field("error.fields").([]any); len(fields) != 3 {
		t.Errorf("the faults are %v", fields)
	}
}

// TestMessageTypes: the filter takes 50 types at most, and each counts once.
func TestMessageTypes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	path := "/v2/users/" + w.user.ID.String() + "/emails?message_types="
	list := "welcome"
	for range 49 {
		list += ",welcome"
	}
	w.Get(path+list, w.tenant.Key).Want(200)
	checkInvalid(t, w.Get(path+list+",phishing", w.tenant.Key), "message_types", "50 items")
	period := "&since=2026-02-01t00:00:00z&until=2026-01-01T00:00:00Z"
	checkInvalid(t, w.Get(path+period, w.tenant.Key), "since", "must be before until")
}
