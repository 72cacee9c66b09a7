package v1compat

import (
	"slices"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// TestAudit: every write of v1 leaves one line in the audit trail, which says
// whose client was written to; what is refused or read leaves none.
func TestAudit(t *testing.T) {
	t.Parallel()
	s := newScene(t, setup{Options: v2test.Options{Audit: true}})
	var before []domain.AuditEntry // of what the scene made through v2
	trail := func() (entries []domain.AuditEntry) {
		t.Helper()
		err := s.DB.EachAuditEntry(t.Context(), domain.AuditFilter{}, func(e domain.AuditEntry) error {
			entries = append(entries, e)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return entries[len(before):]
	}
	before = trail()

	users := map[string]string{"sendphishing": s.user, "update-user": s.user}
	for _, r := range s.facade.routes {
		good := s.good(r)
		s.Do(r.Method, good.path, s.Key, good.body).Want(r.Status)
		s.Do(r.Method, good.path, "pk_wrong", good.body).Want(401)
		if strings.HasPrefix(good.body, "{") && r.operation.Meta().Scope == domain.Write {
			s.Do(r.Method, good.path, s.Key, "{").Want(400)
		}
		entries := trail()
		before = append(before, entries...)
		rehearses := strings.HasSuffix(r.ID, "-rehearsal") // of the scope read, and of no client
		if r.operation.Meta().Scope == domain.Read && !rehearses {
			if len(entries) != 0 {
				t.Errorf("%s leaves %+v", r.ID, entries)
			}
			continue
		}

		if len(entries) != 1 {
			t.Errorf("%s leaves %d lines", r.ID, len(entries))
			continue
		}
		e, want := entries[0], r.operation.Meta().ID
		if r.Successor != nil { // the operation that v2's audit log names
			want = r.Successor.Meta().ID
		}
		if e.Operation != want || e.Method != r.Method || e.Path != good.path ||
			e.Partner != s.ID || e.Client.IsZero() != rehearses {
			t.Errorf("%s leaves %+v", r.ID, e)
		}
		if r.ID != "create-client" && !rehearses && e.Client != s.client {
			t.Errorf("%s is said to be about the client %s", r.ID, e.Client)
		}
		if user := users[r.ID]; user != "" && e.User.UUID() != user {
			t.Errorf("%s is said to be about the user %s", r.ID, e.User)
		}
	}
	if !slices.ContainsFunc(before, func(e domain.AuditEntry) bool { return e.Operation == "phishing.send" }) {
		t.Error("no send was tried")
	}
}
