package v2_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// hooks is a service with a partner that has three clients and no webhook.
type hooks struct {
	*v2test.Harness
	tenant  v2test.Partner
	clients []domain.ClientID
}

func newHooks(t *testing.T, o v2test.Options) *hooks {
	o.Limits = v2test.Unlimited
	h := &hooks{Harness: v2test.New(t, o)}
	h.tenant = h.AddPartner("Partner")
	for _, name := range []string{"A", "B", "C"} {
		h.clients = append(h.clients, h.AddClient(h.tenant, name).ID)
	}
	return h
}

// body is that of a new webhook, limited to some of the clients.
func (h *hooks) body(clients ...domain.ClientID) map[string]any {
	body := map[string]any{"url": "https://example.com/hook", "events": []string{"user.created"}}
	if clients != nil {
		body["client_ids"] = clients
	}
	return body
}

// create adds a webhook, and returns its path and its secret.
func (h *hooks) create(key string, clients ...domain.ClientID) (path, secret string) {
	h.T.Helper()
	r := h.Do("POST", "/v2/webhooks", key, h.body(clients...)).Want(http.StatusCreated)
	return r.Header.Get("Location"), r.Field("secret").(string)
}

// deliver adds a delivery of an event of a client to a webhook.
func (h *hooks) deliver(path string, client domain.ClientID, status domain.DeliveryStatus) string {
	h.T.Helper()
	id, position := db.NewID[domain.DeliveryKind](), h.Number("SELECT count(*) + 1 FROM published_events")
	h.Exec(`INSERT INTO published_events (partner_id, position, client_id, id, type, created_at, body)
		VALUES ($1, $2, $3, gen_random_uuid(), 'user.created', $4, '{}')`, h.tenant.ID, position, client, h.Clock.Now())
	h.Exec(`INSERT INTO webhook_deliveries (webhook_id, id, partner_id, position, client_id, event_id, type, status, created_at, due_at, first_try_at, queued_at)
		SELECT $1, $2, partner_id, position, client_id, id, type, $4, $5, $5::timestamptz + interval '1 hour', $5, '2026-01-01Z' FROM published_events WHERE position = $3`,
		idOf[domain.WebhookKind](h.T, path), id, position, status, h.Clock.Now())
	return path + "/deliveries/" + id.String()
}

// TestWebhookLife: a webhook keeps its address as it was sent, shows a secret of 33 random
// bytes once, and is gone once it is deleted.
func TestWebhookLife(t *testing.T) {
	t.Parallel()
	h := newHooks(t, v2test.Options{})
	body := h.body()
	body["url"], body["description"] = "HTTPS://Example.com:8443/hook?a=b", "Ours"
	created := h.Do("POST", "/v2/webhooks", h.tenant.Key, body).Want(http.StatusCreated)
	path, secret := created.Header.Get("Location"), created.Field("secret").(string)
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if path != "/v2/webhooks/"+created.Field("id").(string) || created.Field("url") != body["url"] ||
		err != nil || len(raw) != 33 || len(secret) != 6+44 {
		t.Errorf("creates %s: %v", created.Body, err)
	}

	patch := func(body string) v2test.Response { return h.Do("PATCH", path, h.tenant.Key, body) }
	client := h.clients[1].String()
	changed := patch(`{"url":"https://other.example","events":["sync.failed"],"client_ids":["` + client + `"],"description":null}`)
	want := created.JSON()
	delete(want, "secret")
	want["url"], want["events"], want["client_ids"], want["description"] = "https://other.example", []any{"sync.failed"}, []any{client}, nil
	got := h.Get(path, h.tenant.Key).Want(http.StatusOK)
	if fmt.Sprint(got.JSON()) != fmt.Sprint(want) || string(got.Body) != string(changed.Body) {
		t.Errorf("changes to %s, and reads %s", changed.Body, got.Body)
	}
	for body, field := range map[string]string{
		`{"status":"disabled"}`: "status", `{"events":["nope"]}`: "events[0]", `{"url":"https://x.example#y"}`: "url",
	} {
		checkInvalid(t, patch(body), field)
	}
	checkError(t, patch("{}"), domain.InvalidRequest)
	h.Do("DELETE", path, h.tenant.Key, nil).Want(http.StatusNoContent)
	for _, method := range []string{"GET", "DELETE"} {
		checkError(t, h.Do(method, path, h.tenant.Key, nil), domain.NotFound)
	}
	checkError(t, patch(`{"status":"paused"}`), domain.NotFound)
}

// TestWebhookClientsAreReached: unknown clients, and those of others, are named by
// their places; a refused address is too. No host is looked up for a bad request.
func TestWebhookClientsAreReached(t *testing.T) {
	t.Parallel()
	h := newHooks(t, v2test.Options{})
	other := h.AddPartner("Other")
	theirs := h.AddClient(other, "Theirs").ID
	subset := h.AddKey(h.tenant, bothScopes, h.clients[:2])
	unknown := db.NewID[domain.ClientKind]()
	r := checkError(t, h.Do("POST", "/v2/webhooks", subset, h.body(h.clients[0], theirs, h.clients[2], unknown)), domain.InvalidRequest)
	if fields := fmt.Sprint(r.Field("error.fields")); !strings.Contains(fields, "client_ids[1]") || !strings.Contains(fields, "client_ids[2]") || !strings.Contains(fields, "client_ids[3]") || strings.Contains(fields, "client_ids[0]") {
		t.Errorf("names %s", fields)
	}
	if checked, _ := h.Receivers.Seen(); len(checked) != 0 {
		t.Errorf("looked up %v", checked)
	}
	path, _ := h.create(subset)
	h.Receivers.Refuse = func(string) error { return domain.ErrInvalid("url", "resolves to a private address") }
	checkInvalid(t, h.Do("POST", "/v2/webhooks", subset, h.body()), "url", "private")
	checkInvalid(t, h.Do("PATCH", path, subset, `{"url":"https://localhost"}`), "url", "private")
	h.Do("PATCH", path, subset, `{"description":"x"}`).Want(http.StatusOK)
	checked, _ := h.Receivers.Seen()
	checkError(t, h.Do("PATCH", "/v2/webhooks/"+strangers()["webhook_id"], subset, `{"url":"https://localhost"}`), domain.NotFound)
	if again, _ := h.Receivers.Seen(); len(again) != len(checked) {
		t.Error("a host is looked up for a webhook that is not there")
	}
	if n := h.Number("SELECT count(*) FROM webhooks"); n != 1 {
		t.Errorf("%d webhooks", n)
	}
}

// TestWebhookReach: who sees a webhook is who covers its access.
func TestWebhookReach(t *testing.T) {
	t.Parallel()
	h := newHooks(t, v2test.Options{})
	keys := map[string]string{
		"all": h.tenant.Key, "other all": h.AddKey(h.tenant, bothScopes, nil), "AB": h.AddKey(h.tenant, bothScopes, h.clients[:2]),
		"A": h.AddKey(h.tenant, bothScopes, h.clients[:1]), "BC": h.AddKey(h.tenant, bothScopes, h.clients[1:]),
		"none": h.AddKey(h.tenant, bothScopes, []domain.ClientID{}), "others'": h.AddPartner("Other").Key,
	}
	for _, test := range []struct {
		maker   string
		clients []domain.ClientID
		seenBy  string
	}{
		{"all", nil, "all, other all"},
		{"all", h.clients[:1], "all, other all, AB, A"},
		{"all", h.clients[1:2], "all, other all, AB, BC"},
		{"all", h.clients, "all, other all"},
		{"AB", nil, "all, other all, AB"},
		{"A", nil, "all, other all, AB, A"},
		{"AB", h.clients[:1], "all, other all, AB, A"},
		{"none", nil, "all, other all, none"},
		{"others'", nil, "others'"},
	} {
		path, _ := h.create(keys[test.maker], test.clients...)
		id := path[strings.LastIndex(path, "/")+1:]
		for name, key := range keys {
			sees := false
			for seer := range strings.SplitSeq(test.seenBy, ", ") {
				sees = sees || seer == name
			}
			read, listed := h.Get(path, key), column(h.Get("/v2/webhooks", key).Want(http.StatusOK), "id")
			if (read.Status == http.StatusOK) != sees || strings.Contains(strings.Join(listed, " "), id) != sees {
				t.Errorf("that of %s for %d clients: %s reads %d and lists %v", test.maker, len(test.clients), name, read.Status, listed)
			}
			status := h.Do("PATCH", path, key, `{"description":"x"}`).Status
			if (status == http.StatusOK) != sees {
				t.Errorf("that of %s for %d clients: %s is answered %d", test.maker, len(test.clients), name, status)
			}
		}
		h.Do("DELETE", path, keys[test.maker], nil).Want(http.StatusNoContent)
	}

	// A key gives a webhook no more access than it has itself, nor than the webhook's key has.
	wide, _ := h.create(keys["all"], h.clients[0])
	checkInvalid(t, h.Do("PATCH", wide, keys["AB"], `{"client_ids":[]}`), "client_ids", "at least one")
	checkInvalid(t, h.Do("PATCH", wide, keys["AB"], map[string]any{"client_ids": h.clients[2:]}), "client_ids[0]")
	h.Do("PATCH", wide, keys["AB"], map[string]any{"client_ids": h.clients[:2]}).Want(http.StatusOK)
	checkError(t, h.Get(wide, keys["A"]), domain.NotFound)
	narrow, _ := h.create(keys["A"])
	checkInvalid(t, h.Do("PATCH", narrow, keys["all"], map[string]any{"client_ids": h.clients[:2]}), "client_ids[1]")
	h.Do("PATCH", narrow, keys["all"], `{"client_ids":[]}`).Want(http.StatusOK)

	// Of another client a key sees no delivery.
	h.deliver(wide, h.clients[2], domain.DeliveryFailed)
	ours := h.deliver(wide, h.clients[1], domain.DeliveryFailed)
	if got := column(h.Get(wide+"/deliveries", keys["AB"]).Want(http.StatusOK), "id"); len(got) != 1 || !strings.HasSuffix(ours, got[0]) {
		t.Errorf("lists the deliveries %v", got)
	}
	if got := column(h.Get(wide+"/deliveries", keys["all"]).Want(http.StatusOK), "id"); len(got) != 2 {
		t.Errorf("lists the deliveries %v", got)
	}
}

// TestWebhookLimit: of many at once, a partner gets 20.
func TestWebhookLimit(t *testing.T) {
	t.Parallel()
	h := newHooks(t, v2test.Options{})
	keys := []string{h.tenant.Key, h.AddKey(h.tenant, bothScopes, h.clients[:1])}
	statuses := v2test.AtOnce(26, func(i int) int { return h.Do("POST", "/v2/webhooks", keys[i%2], h.body()).Status })
	if statuses[http.StatusCreated] != domain.MaxWebhooks || statuses[http.StatusConflict] != 6 {
		t.Errorf("answers %v", statuses)
	}
	if r := checkError(t, h.Do("POST", "/v2/webhooks", h.tenant.Key, h.body()), domain.Conflict); !strings.Contains(string(r.Body), "20") {
		t.Errorf("says %s", r.Body)
	}
	h.Do("POST", "/v2/webhooks", h.AddPartner("Other").Key, h.body()).Want(http.StatusCreated)
	h.Do("DELETE", "/v2/webhooks/"+column(h.Get("/v2/webhooks", h.tenant.Key), "id")[7], h.tenant.Key, nil).Want(http.StatusNoContent)
	h.create(keys[1])
}

// TestWebhookStatus: pausing drops what waits, and activating begins anew.
func TestWebhookStatus(t *testing.T) {
	t.Parallel()
	h := newHooks(t, v2test.Options{})
	path, _ := h.create(h.tenant.Key)
	set := func(status string) v2test.Response {
		return h.Do("PATCH", path, h.tenant.Key, map[string]any{"status": status}).Want(http.StatusOK)
	}
	waiting := h.deliver(path, h.clients[0], domain.DeliveryWaiting)
	h.deliver(path, h.clients[0], domain.DeliverySucceeded)
	since := func() int {
		return h.Number("SELECT (extract(epoch FROM active_since) * 1000000)::bigint FROM webhooks")
	}
	begin := since()
	set("active")
	if since() != begin {
		t.Error("a webhook that is active is made so again")
	}
	if r := set("paused"); r.Field("status") != "paused" {
		t.Errorf("answers %s", r.Body)
	}
	dropped := "SELECT count(*) FROM webhook_deliveries WHERE status = 'dropped' AND reason = 'the subscription was paused' AND id = $1"
	if n := h.Number(dropped, idOf[domain.DeliveryKind](t, waiting)); n != 1 || h.Number("SELECT count(*) FROM webhook_deliveries") != 2 {
		t.Errorf("%d deliveries that waited are dropped", n)
	}
	for _, from := range []string{"paused", "disabled"} {
		h.Exec("UPDATE webhooks SET status = $1, failing_since = now()", from)
		before := since()
		if r := h.Get(path, h.tenant.Key).Want(http.StatusOK); r.Field("failing_since") == nil {
			t.Errorf("a failing one is shown as %s", r.Body)
		}
		if r := set("active"); r.Field("status") != "active" || r.Field("failing_since") != nil || since() <= before || h.Number("SELECT count(failing_since) FROM webhooks") != 0 {
			t.Errorf("from %s it becomes %s", from, r.Body)
		}
	}
}

// TestRedeliver makes deliveries wait again.
func TestRedeliver(t *testing.T) {
	t.Parallel()
	h := newHooks(t, v2test.Options{})
	path, _ := h.create(h.tenant.Key)
	state := func(delivery string) string {
		return h.Text(`SELECT concat_ws(' ', status, reason, due_at <= $2, first_try_at IS NULL, lease IS NULL, queued_at > '2026-02-01')
			FROM webhook_deliveries WHERE id = $1`, idOf[domain.DeliveryKind](t, delivery), h.Clock.Now())
	}
	again := func(delivery string) v2test.Response { return h.Do("POST", delivery+"/redeliver", h.tenant.Key, nil) }
	for _, status := range []domain.DeliveryStatus{domain.DeliverySucceeded, domain.DeliveryFailed, domain.DeliveryDropped} {
		d := h.deliver(path, h.clients[0], status)
		h.Exec("UPDATE webhook_deliveries SET reason = 'x' WHERE status = 'dropped'")
		event := h.Get(path+"/deliveries?limit=1", h.tenant.Key).JSON()["data"].([]any)[0].(map[string]any)
		r := again(d).Want(http.StatusOK)
		if r.Field("status") != "waiting" || r.Field("event_id") != event["event_id"] || r.Field("reason") != nil || state(d) != "waiting t t t t" {
			t.Errorf("a %s one: %s, %s", status, r.Body, state(d))
		}
		h.Clock.Advance(time.Second)
	}
	waits := h.deliver(path, h.clients[0], domain.DeliveryWaiting)
	if again(waits).Want(http.StatusOK); state(waits) != "waiting t f t f" {
		t.Errorf("one that waits: %s", state(waits))
	}
	underWay := h.deliver(path, h.clients[0], domain.DeliveryWaiting)
	h.Exec("UPDATE webhook_deliveries SET lease = gen_random_uuid() WHERE due_at > $1", h.Clock.Now())
	if again(underWay).Want(http.StatusOK); state(underWay) != "waiting f f f f" {
		t.Errorf("one that is under way: %s", state(underWay))
	}

	d := h.deliver(path, h.clients[0], domain.DeliveryFailed)
	refused := func(word string) {
		t.Helper()
		if r := checkError(t, again(d), domain.Conflict); !strings.Contains(string(r.Body), word) {
			t.Errorf("says %s, not %q", r.Body, word)
		}
	}
	h.Do("PATCH", path, h.tenant.Key, map[string]any{"client_ids": h.clients[1:]}).Want(http.StatusOK)
	refused("access")
	h.Do("PATCH", path, h.tenant.Key, `{"client_ids":[]}`).Want(http.StatusOK)
	for _, status := range []string{"paused", "disabled"} {
		h.Exec("UPDATE webhooks SET status = $1", status)
		refused(status)
	}
	h.Exec("UPDATE webhooks SET status = 'active'")
	other := h.AddKey(h.tenant, bothScopes, nil)
	h.Exec("UPDATE api_keys SET revoked_at = now() WHERE digest = $1", db.KeyDigest(h.tenant.Key))
	if r := checkError(t, h.Do("POST", d+"/redeliver", other, nil), domain.Conflict); !strings.Contains(string(r.Body), "revoked") {
		t.Errorf("says %s", r.Body)
	}
	h.Exec("UPDATE api_keys SET revoked_at = NULL")
	h.Exec("DELETE FROM published_events")
	refused("30 days")
}

// TestDeletedWebhooks deletes the deliveries of a deleted webhook in the background.
func TestDeletedWebhooks(t *testing.T) {
	t.Parallel()
	h := newHooks(t, v2test.Options{})
	path, _ := h.create(h.tenant.Key)
	other, _ := h.create(h.tenant.Key)
	h.deliver(path, h.clients[0], domain.DeliveryWaiting)
	h.deliver(path, h.clients[0], domain.DeliveryFailed)
	h.deliver(other, h.clients[0], domain.DeliveryFailed)
	h.Do("DELETE", path, h.tenant.Key, nil).Want(http.StatusNoContent)
	drop := func(want string) {
		t.Helper()
		if err := h.DB.DropDeletedWebhooks(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(h.Number("SELECT count(*) FROM webhook_deliveries"), h.Number("SELECT count(*) FROM deleted_webhooks")); got != want {
			t.Errorf("%s deliveries and deleted webhooks are left, not %s", got, want)
		}
	}
	drop("1 0")
}

// TestWebhookWithoutKey: without a key to keep secrets with, what needs one says how
// to make one.
func TestWebhookWithoutKey(t *testing.T) {
	t.Parallel()
	h := newHooks(t, v2test.Options{NoKey: true})
	path, _ := subscribe(h.Harness, h.clients[0])
	at := "/v2/webhooks/" + path.String()
	for _, r := range []v2test.Response{
		h.Do("POST", "/v2/webhooks", h.tenant.Key, h.body()), h.Do("POST", at+"/secret", h.tenant.Key, nil), h.Do("POST", at+"/test", h.tenant.Key, nil),
		h.Do("POST", "/v2/webhooks", h.tenant.Key, h.body(), "Idempotency-Key", "k"),
	} {
		if checkError(t, r, domain.Conflict); !strings.Contains(string(r.Body), "partnerapi encryption-key") {
			t.Errorf("says %s", r.Body)
		}
	}
	h.Get(at, h.tenant.Key).Want(http.StatusOK)
	h.Do("PATCH", at, h.tenant.Key, `{"status":"paused"}`).Want(http.StatusOK)
}
