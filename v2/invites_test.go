package v2_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

func (w *world) invite(email string) v2test.Response {
	w.T.Helper()
	return w.Do("POST", "/v2/clients/"+w.client.ID.String()+"/admins/invites", w.tenant.Key, map[string]any{"email": email})
}

// TestInvites holds decisions 3.14.
func TestInvites(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	r := w.invite("New.Admin@Example.com").Want(202)
	if r.Field("email") != "new.admin@example.com" || r.Field("status") != "queued" || r.Field("expires_at") != "2026-06-22T12:00:00.000000Z" {
		t.Errorf("invited %s", r.Body)
	}
	if n := w.Number("SELECT count(*) FROM admin_invites AS i JOIN mail_requests AS m ON m.invite_id = i.id AND m.type = 'admin-invite' WHERE i.role = 'admin'"); n != 1 {
		t.Errorf("%d mails are to be sent", n)
	}
	w.Clock.Advance(7*24*time.Hour - time.Microsecond)
	checkError(t, w.invite("new.admin@example.com"), domain.Conflict)
	if n := w.Number("SELECT count(*) FROM mail_requests"); n != 1 {
		t.Errorf("a refused invite asks for a mail")
	}
	w.Clock.Advance(time.Microsecond)
	w.invite("new.admin@example.com").Want(202) // the first has expired
	w.Exec("UPDATE admin_invites SET accepted_at = now()")
	w.invite("new.admin@example.com").Want(202) // accepted ones are not open

	w.Exec("INSERT INTO admins (id, partner_id, client_id, email, name, role, created_at) VALUES (gen_random_uuid(), $1, $2, 'known@example.com', 'K', 'owner', now())",
		w.tenant.ID, w.client.ID)
	checkError(t, w.invite("KNOWN@example.com"), domain.Conflict)
	other := w.Client(w.tenant, "Other")
	w.Do("POST", "/v2/clients/"+other.ID.String()+"/admins/invites", w.tenant.Key, `{"email":"known@example.com","role":"viewer"}`).Want(202)
	checkInvalid(t, w.Do("POST", "/v2/clients/"+other.ID.String()+"/admins/invites", w.tenant.Key, `{"email":"o@example.com","role":"owner"}`), "role", "admin, viewer")
}

// TestConcurrentInvites: of fifty at once, one is accepted.
func TestConcurrentInvites(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	var accepted, refused atomic.Int32
	var all sync.WaitGroup
	for i := range 50 {
		email := "one@example.com"
		if i%2 == 0 {
			email = strings.ToUpper(email)
		}
		all.Go(func() {
			switch r := w.invite(email); r.Status {
			case 202:
				accepted.Add(1)
			case 409:
				refused.Add(1)
			default:
				t.Errorf("answers %d %s", r.Status, r.Body)
			}
		})
	}
	all.Wait()
	if accepted.Load() != 1 || refused.Load() != 49 {
		t.Errorf("%d accepted, %d refused", accepted.Load(), refused.Load())
	}
	if n := w.Number("SELECT count(*) FROM admin_invites") * w.Number("SELECT count(*) FROM mail_requests"); n != 1 {
		t.Error("not exactly one invite and one mail")
	}
}

// TestPartnerAndAdmins: the partner shows its own admins, a client's list those
// of the client only, by their creation.
func TestPartnerAndAdmins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	admin := func(client any, email, role, created string) {
		w.Exec("INSERT INTO admins (id, partner_id, client_id, email, name, role, created_at) VALUES (gen_random_uuid(), $1, $2, $3, 'N', $4, $5)",
			w.tenant.ID, client, email, role, created)
	}
	admin(nil, "p@example.com", "owner", "2026-01-02T00:00:00Z")
	admin(w.client.ID, "b@example.com", "viewer", "2026-01-03T00:00:00Z")
	admin(w.client.ID, "a@example.com", "admin", "2026-01-01T00:00:00Z")
	admin(w.Client(w.tenant, "Other").ID, "o@example.com", "admin", "2026-01-01T00:00:00Z")
	r := w.Get("/v2/clients/"+w.client.ID.String()+"/admins", w.tenant.Key).Want(200)
	if got := strings.Join(column(r, "email"), " ") + " " + strings.Join(column(r, "scope"), " "); got != "a@example.com b@example.com client client" {
		t.Errorf("lists %s", got)
	}
	first := r.Field("data").([]any)[0].(map[string]any)
	if first["client_id"] != w.client.ID.String() || first["last_login_at"] != nil || first["role"] != "admin" {
		t.Errorf("shows %v", first)
	}
	p := w.Get("/v2/partner", w.tenant.Key).Want(200)
	admins := p.Field("admins").([]any)
	if p.Field("name") != "Partner" || len(admins) != 1 {
		t.Fatalf("the partner is %s", p.Body)
	}
	if a := admins[0].(map[string]any); a["email"] != "p@example.com" || a["scope"] != "partner" || a["client_id"] != nil || a["role"] != "owner" {
		t.Errorf("its admin is %v", a)
	}
}
