package v2_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// TestOverrides verifies the overrides that a user's read shows, and their removal, for a user of no directory.
func TestOverrides(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	overrides := func() string {
		t.Helper()
		return fmt.Sprint(w.Get(w.userPath(), w.tenant.Key).Want(http.StatusOK).Field("overrides"))
	}
	remove := func(field string, want int) v2test.Response {
		t.Helper()
		w.Clock.Advance(time.Second)
		return w.Do("DELETE", w.userPath()+"/overrides/"+field, w.tenant.Key, nil).Want(want)
	}
	updated := func() any { return w.Get(w.userPath(), w.tenant.Key).Field("updated_at") }
	events := func() int { return w.Number("SELECT count(*) FROM events WHERE type = 'user.updated'") }

	if got := overrides(); got != "[]" {
		t.Errorf("the overrides of a new user are %s", got)
	}
	w.Do("PATCH", w.userPath(), w.tenant.Key, `{"role":"executive","department":"Payroll","status":"active","first_name":"New"}`).Want(http.StatusOK)
	before, n := updated(), events()
	w.Clock.Advance(time.Second)
	r := w.Do("PATCH", w.userPath(), w.tenant.Key, `{"first_name":"New","last_name":"`+fmt.Sprint(w.Get(w.userPath(), w.tenant.Key).Field("last_name"))+`"}`)
	if r.Want(http.StatusOK).Field("updated_at") == before || events() != n {
		t.Errorf("a new override of an unchanged field: updated_at %v, %d events, was %v, %d", r.Field("updated_at"), events(), before, n)
	}
	if got := overrides(); got != "[first_name last_name department status role]" {
		t.Errorf("the overrides are %s", got)
	}

	before = updated()
	remove("status", http.StatusNoContent)
	if got := overrides(); got != "[first_name last_name department role]" || updated() == before || events() != n {
		t.Errorf("without status: %s, updated_at %v, %d events, was %v, %d", got, updated(), events(), before, n)
	}
	before = updated()
	remove("role", http.StatusNoContent)
	u := w.Get(w.userPath(), w.tenant.Key)
	if u.Field("role") != "finance" || u.Field("risk.role") != "finance" || u.Field("updated_at") == before || events() != n+1 {
		t.Errorf("without role: %s, and %d events, was %d", u.Body, events(), n)
	}

	contents := w.contents()
	for _, field := range []string{"role", "status", "email", "unknown", "first_name%20", "Department"} {
		checkError(t, remove(field, http.StatusNotFound), domain.NotFound)
	}
	if w.contents() != contents {
		t.Error("a removal of what is no override changed something")
	}
	for _, field := range []string{"department", "first_name", "last_name"} {
		remove(field, http.StatusNoContent)
	}
	if got := overrides(); got != "[]" {
		t.Errorf("the overrides at the end are %s", got)
	}
}
