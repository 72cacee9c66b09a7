package v2_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// end revokes a key, or lets it expire, and disables its webhooks.
func (h *hooks) end(key, column string) {
	h.T.Helper()
	h.Exec("UPDATE api_keys SET "+column+" = $1 WHERE digest = $2", h.Clock.Now(), db.KeyDigest(key))
	if _, err := outbox.FollowKeys(context.WithoutCancel(h.T.Context()), h.DB); err != nil {
		h.T.Fatal(err)
	}
}

// TestWebhookOfEndedKey verifies that a webhook whose key ended can be read and deleted with another key, and otherwise
// only be activated, which hands it to the calling key.
func TestWebhookOfEndedKey(t *testing.T) {
	t.Parallel()
	h := newHooks(t, v2test.Options{})
	for _, column := range []string{"revoked_at", "expires_at"} {
		old, reason := h.AddKey(h.tenant, bothScopes, h.clients[:2]), "revoked"
		path, _ := h.create(old)
		d := h.deliver(path, h.clients[0], domain.DeliveryFailed)
		if h.end(old, column); column == "expires_at" {
			reason = "expired"
		}
		if r := h.Get(path, h.tenant.Key).Want(http.StatusOK); r.Field("status") != "disabled" || r.Field("disabled_reason") != map[string]string{"revoked": "key_revoked", "expired": "key_expired"}[reason] {
			t.Errorf("%s: %s", column, r.Body)
		}
		h.Get(path+"/deliveries", h.tenant.Key).Want(http.StatusOK)
		for _, r := range []v2test.Response{
			h.Do("POST", path+"/test", h.tenant.Key, nil), h.Do("POST", path+"/secret", h.tenant.Key, nil),
			h.Do("POST", d+"/redeliver", h.tenant.Key, nil), h.Do("PATCH", path, h.tenant.Key, `{"status":"paused"}`),
			h.Do("PATCH", path, h.tenant.Key, `{"url":"https://other.example"}`), h.Do("PATCH", path, h.tenant.Key, `{"description":null}`),
		} {
			if checkError(t, r, domain.Conflict); !strings.Contains(string(r.Body), reason) || !strings.Contains(string(r.Body), "PATCH the webhook") {
				t.Errorf("says %s", r.Body)
			}
		}
		narrower := h.AddKey(h.tenant, bothScopes, h.clients[:1])
		checkError(t, h.Do("PATCH", path, narrower, `{"status":"active"}`), domain.NotFound)
		h.Do("PATCH", path, h.tenant.Key, `{"status":"active"}`).Want(http.StatusOK)
		h.Do("POST", path+"/test", h.tenant.Key, nil).Want(http.StatusOK)
		h.end(h.AddKey(h.tenant, bothScopes, nil), column) // of another key
		if r := h.Get(path, h.tenant.Key); r.Field("status") != "active" || r.Field("disabled_reason") != nil {
			t.Errorf("taken over: %s", r.Body)
		}
		h.Do("DELETE", path, h.tenant.Key, nil).Want(http.StatusNoContent)
	}
}

// TestTakeOverKeepsAccess verifies that a webhook keeps the clients that it had when another key takes it over.
func TestTakeOverKeepsAccess(t *testing.T) {
	t.Parallel()
	h := newHooks(t, v2test.Options{})
	ab, abAgain := h.AddKey(h.tenant, bothScopes, h.clients[:2]), h.AddKey(h.tenant, bothScopes, h.clients[:2])
	abc, all := h.AddKey(h.tenant, bothScopes, h.clients), h.AddKey(h.tenant, bothScopes, nil)
	for name, c := range map[string]struct {
		old, by string
		clients []domain.ClientID // that it is limited to
		send    any               // client_ids of the PATCH
		want    []domain.ClientID
	}{
		"a key of the same clients":      {old: ab, by: abAgain},
		"a key of more clients":          {old: ab, by: abc, want: h.clients[:2]},
		"a key of all clients":           {old: ab, by: all, want: h.clients[:2]},
		"limited":                        {old: ab, by: all, clients: h.clients[:1], want: h.clients[:1]},
		"limited, by a list":             {old: ab, by: abc, clients: h.clients[:1], want: h.clients[:1]},
		"from all to all":                {old: h.tenant.Key, by: all},
		"from all, limited, to a list":   {old: h.tenant.Key, by: ab, clients: h.clients[1:2], want: h.clients[1:2]},
		"with the list that it has read": {old: ab, by: all, send: []domain.ClientID{}, want: h.clients[:2]},
		"with clients that are named":    {old: ab, by: all, send: h.clients[1:2], want: h.clients[1:2]},
	} {
		path, _ := h.create(c.old, c.clients...)
		h.end(c.old, "revoked_at")
		body := map[string]any{"status": "active"}
		if c.send != nil {
			body["client_ids"] = c.send
		}
		r := h.Do("PATCH", path, c.by, body).Want(http.StatusOK)
		want := []any{}
		for _, id := range c.want {
			want = append(want, id.String())
		}
		if fmt.Sprint(r.Field("client_ids")) != fmt.Sprint(want) || r.Field("status") != "active" {
			t.Errorf("%s: %s", name, r.Body)
		}
		if n := h.Number("SELECT count(*) FROM webhooks AS w JOIN api_keys AS k ON k.id = w.key_id WHERE k.digest = $1", db.KeyDigest(c.by)); n != 1 {
			t.Errorf("%s: the webhook is not the calling key's", name)
		}
		h.Do("DELETE", path, h.tenant.Key, nil)
		h.Do("DELETE", path, all, nil)
		h.Exec("UPDATE api_keys SET revoked_at = NULL")
	}

	path, _ := h.create(ab)
	h.end(ab, "revoked_at")
	h.Exec("INSERT INTO clients (SELECT (jsonb_populate_record(c, jsonb_build_object('id', gen_random_uuid(), 'name', n::text, 'name_key', n::text))).* FROM clients AS c, generate_series(1, 499) AS n WHERE c.id = $1)", h.clients[2])
	h.Exec("INSERT INTO api_key_clients SELECT k.id, c.id FROM api_keys AS k, clients AS c WHERE k.digest = $1 ON CONFLICT DO NOTHING", db.KeyDigest(ab))
	r := checkError(t, h.Do("PATCH", path, all, `{"status":"active"}`), domain.Conflict)
	if !strings.Contains(string(r.Body), "client_ids") {
		t.Errorf("says %s", r.Body)
	}
	h.Do("PATCH", path, all, map[string]any{"status": "active", "client_ids": h.clients[:1]}).Want(http.StatusOK)
}
