package v2_test

import (
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

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
	other := w.AddClient(w.tenant, "Other")
	w.Do("POST", "/v2/clients/"+other.ID.String()+"/admins/invites", w.tenant.Key, `{"email":"known@example.com","role":"viewer"}`).Want(202)
	checkInvalid(t, w.Do("POST", "/v2/clients/"+other.ID.String()+"/admins/invites", w.tenant.Key, `{"email":"o@example.com","role":"owner"}`), "role", "admin, viewer")
}

// atOnce is as many requests of one key as may be in progress at a time: on a busy
// machine more are refused, after a second (decisions 2.2).
const atOnce = 16

// TestConcurrentInvites: of many at once, one is accepted.
func TestConcurrentInvites(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	statuses := v2test.AtOnce(atOnce, func(i int) int {
		return w.invite([]string{"one@example.com", "ONE@EXAMPLE.COM"}[i%2]).Status
	})
	if statuses[http.StatusAccepted] != 1 || statuses[http.StatusConflict] != atOnce-1 {
		t.Errorf("answers %v", statuses)
	}
	if n := w.Number("SELECT count(*) FROM admin_invites") * w.Number("SELECT count(*) FROM mail_requests"); n != 1 {
		t.Error("not exactly one invite and one mail")
	}
}

// TestInviteLimits: of many at once no more are accepted than a client and a partner may
// have within their sliding times (decisions 3.14). A replay is no invite.
func TestInviteLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	// invite sends n invites to each of these clients, fewer at once than a key may have
	// in progress, and returns how many were accepted.
	number := 0
	invite := func(tenant v2test.Partner, n int, clients ...domain.ClientID) (accepted int32) {
		var passed atomic.Int32
		var all errgroup.Group
		all.SetLimit(12)
		for i := range n * len(clients) {
			number++
			email, client := fmt.Sprintf("a%d@example.com", number), clients[i%len(clients)]
			all.Go(func() error {
				r := w.Do("POST", "/v2/clients/"+client.String()+"/admins/invites", tenant.Key, map[string]any{"email": email})
				if r.Status == 202 {
					passed.Add(1)
				} else if r.Code() != domain.RateLimited || r.Header.Get("Retry-After") == "" {
					t.Errorf("answers %d %s", r.Status, r.Body)
				}
				return nil
			})
		}
		_ = all.Wait()
		return passed.Load()
	}
	want := func(what string, got, want int32) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %d are accepted, not %d", what, got, want)
		}
	}
	path, key := "/v2/clients/"+w.client.ID.String()+"/admins/invites", []string{"Idempotency-Key", "once"}
	w.Do("POST", path, w.tenant.Key, `{"email":"first@example.com"}`, key...).Want(202)
	want("at once", invite(w.tenant, 30, w.client.ID), 19)
	w.Do("POST", path, w.tenant.Key, `{"email":"first@example.com"}`, key...).Want(202)

	w.Clock.Advance(time.Hour - time.Second)
	r := w.invite("late@example.com")
	if checkError(t, r, domain.RateLimited); r.Header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After is %q", r.Header.Get("Retry-After"))
	}
	w.Clock.Advance(time.Second)
	want("an hour later", invite(w.tenant, 5, w.client.ID), 5)

	// the day of the partner, whose clients are asked at once
	others := make([]domain.ClientID, 6)
	for i := range others {
		others[i] = w.AddClient(w.tenant, fmt.Sprintf("Client %d", i)).ID
	}
	want("of the partner", invite(w.tenant, 20, others...), 75)
	r = w.invite("later@example.com")
	if r.Code() != domain.RateLimited || r.Header.Get("Retry-After") != strconv.Itoa(23*60*60) {
		t.Errorf("Retry-After is %q", r.Header.Get("Retry-After"))
	}
	other := w.AddPartner("Another partner")
	want("another partner", invite(other, 1, w.AddClient(other, "Client").ID), 1)
	w.Clock.Advance(23 * time.Hour)
	want("a day later", invite(w.tenant, 3, w.client.ID), 3)
}
