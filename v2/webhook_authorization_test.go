package v2_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/seal"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// sent sends a ping to a webhook's endpoint, and returns the value of its header Authorization.
func (h *hooks) sent(path string) string {
	h.T.Helper()
	h.Do("POST", path+"/test", h.tenant.Key, nil).Want(http.StatusOK)
	_, sent := h.Receivers.Seen()
	return sent[len(sent)-1].Authorization
}

// authorized adds a webhook with a value of the header Authorization, and returns its path.
func (h *hooks) authorized(key, value string, headers ...string) string {
	h.T.Helper()
	body := h.body()
	body["authorization"] = value
	r := h.Do("POST", "/v2/webhooks", key, body, headers...).Want(http.StatusCreated)
	if r.Field("has_authorization") != true || strings.Contains(string(r.Body), value) {
		h.T.Errorf("creates %s", r.Body)
	}
	return r.Header.Get("Location")
}

// TestWebhookAuthorization verifies which changes of a webhook keep, replace and remove the value of the header
// Authorization, that it is sent, and that another server never gets it.
func TestWebhookAuthorization(t *testing.T) {
	t.Parallel()
	h := newHooks(t, v2test.Options{})
	const value = `Bearer a "b" ~!`
	for _, test := range []struct{ url, body, want string }{
		{"", `{"description":"x"}`, value},
		{"", `{"url":"https://example.com/other?a=b"}`, value},
		{"", `{"url":"https://EXAMPLE.com.:443"}`, value},
		{"https://bücher.example:8443", `{"url":"https://xn--bcher-kva.Example:8443/x"}`, value},
		{"https://[2606:2800:220:0:0::1]", `{"url":"https://[2606:2800:220::1]:443"}`, value},
		{"", `{"status":"paused"}`, value},
		{"", `{"url":"https://example.com:8443/hook"}`, ""},
		{"", `{"url":"https://www.example.com/hook"}`, ""},
		{"", `{"url":"https://example.org/hook"}`, ""},
		{"", `{"url":"https://93.184.216.34/hook"}`, ""},
		{"", `{"authorization":null}`, ""},
		{"", `{"authorization":null,"url":"https://example.com/other"}`, ""},
		{"", `{"authorization":"Basic dTpw"}`, "Basic dTpw"},
		{"", `{"authorization":"Basic dTpw","url":"https://example.org"}`, "Basic dTpw"},
	} {
		path := h.authorized(h.tenant.Key, value)
		if test.url != "" {
			h.Exec("UPDATE webhooks SET url = $1, authorization_url = $1", test.url)
		}
		before := h.Get(path, h.tenant.Key).Want(http.StatusOK)
		if got := h.sent(path); got != value || before.Field("has_authorization") != true {
			t.Errorf("sends %q, and shows %s", got, before.Body)
		}
		changed := h.Do("PATCH", path, h.tenant.Key, test.body).Want(http.StatusOK)
		read := h.Get(path, h.tenant.Key).Want(http.StatusOK)
		if got := h.sent(path); got != test.want || read.Field("has_authorization") != (test.want != "") || string(read.Body) != string(changed.Body) {
			t.Errorf("after %s it sends %q, and shows %s", test.body, got, changed.Body)
		}
		if stored := h.Number("SELECT count(*) FROM webhooks WHERE sealed_authorization IS NOT NULL"); (stored == 1) != (test.want != "") {
			t.Errorf("after %s, %d are stored", test.body, stored)
		}
		h.Do("DELETE", path, h.tenant.Key, nil).Want(http.StatusNoContent)
	}

	path, _ := h.create(h.tenant.Key)
	if got := h.sent(path); got != "" {
		t.Errorf("without one it sends %q", got)
	}
	longest := strings.Repeat("x", 1000)
	h.Do("PATCH", path, h.tenant.Key, map[string]any{"authorization": longest}).Want(http.StatusOK)
	for _, wrong := range []string{longest + "x", "", " ", " x", "x ", "x\ty", "x\ny", "x\r\nX-Other: y", "Zoë", "x\x7f", "x\u00a0y"} {
		body := h.body()
		body["authorization"] = wrong
		checkInvalid(t, h.Do("POST", "/v2/webhooks", h.tenant.Key, body), "authorization")
		checkInvalid(t, h.Do("PATCH", path, h.tenant.Key, map[string]any{"authorization": wrong}), "authorization")
	}
	if got := h.sent(path); got != longest {
		t.Errorf("sends %d characters", len(got))
	}
}

// TestWebhookAuthorizationStays verifies that a new secret and a new key leave the value of the header Authorization
// unchanged, and that version 1.0, which does not know it, cannot direct it to another URL.
func TestWebhookAuthorizationStays(t *testing.T) {
	t.Parallel()
	h := newHooks(t, v2test.Options{})
	old := h.AddKey(h.tenant, bothScopes, h.clients[:2])
	path := h.authorized(old, "Bearer token")
	h.Do("POST", path+"/secret", old, nil).Want(http.StatusOK)
	h.end(old, "revoked_at")
	h.Do("PATCH", path, h.tenant.Key, `{"status":"active"}`).Want(http.StatusOK)
	if got := h.sent(path); got != "Bearer token" {
		t.Errorf("sends %q", got)
	}

	h.Exec("UPDATE webhooks SET url = 'https://other.example'") // as 1.0 does
	for _, change := range []string{`{"description":"x"}`, `{"url":"https://example.com/hook"}`} {
		if r := h.Get(path, h.tenant.Key); h.sent(path) != "" || r.Field("has_authorization") != false {
			t.Errorf("after 1.0 changed the URL: %s", r.Body)
		}
		h.Do("PATCH", path, h.tenant.Key, change).Want(http.StatusOK)
	}
}

// TestWebhookAuthorizationIsKept verifies that no table, log or response contains the value of the header
// Authorization, that it is encrypted again with a new key, and that an audit entry names its field.
func TestWebhookAuthorizationIsKept(t *testing.T) {
	t.Parallel()
	older, newer := seal.NewKey(), seal.NewKey()
	keys, write := keysInFile(t, older)
	log := &syncedBuilder{}
	h := newHooks(t, v2test.Options{Audit: true, Log: log, Keys: keys})
	const first, second = "Bearer first-c6ad12", "Bearer second-c6ad12"
	path := h.authorized(h.tenant.Key, first, "Idempotency-Key", "k")
	h.authorized(h.tenant.Key, first, "Idempotency-Key", "k") // a replay
	shown := []string{rowsOf(h.Harness)}
	for _, r := range []v2test.Response{
		h.Do("PATCH", path, h.tenant.Key, map[string]any{"authorization": second}).Want(http.StatusOK), h.Get(path, h.tenant.Key),
		h.Get("/v2/webhooks", h.tenant.Key), h.Do("POST", path+"/test", h.tenant.Key, nil), h.Do("POST", path+"/secret", h.tenant.Key, nil),
		checkError(t, h.Do("PATCH", path, h.tenant.Key, map[string]any{"authorization": second + "\n"}), domain.InvalidRequest),
		checkError(t, h.Do("POST", "/v2/webhooks", h.tenant.Key, map[string]any{"authorization": second}), domain.InvalidRequest),
	} {
		shown = append(shown, string(r.Body))
	}
	shown = append(shown, rowsOf(h.Harness), log.String())
	for i, text := range shown {
		for _, form := range []string{"c6ad12", fmt.Sprintf("%x", "c6ad12")} {
			if strings.Contains(text, form) {
				t.Errorf("place %d contains the value", i)
			}
		}
	}
	fields := h.Text("SELECT fields::text FROM audit_entries WHERE operation = 'webhooks.update'")
	if !strings.Contains(fields, "authorization") {
		t.Errorf("the audit entry names %s", fields)
	}

	write(newer + "\n" + older)
	prefix, err := keys.Prefix()
	if err != nil {
		t.Fatal(err)
	}
	_, failed, err := h.DB.Reseal(t.Context(), db.SealedColumns, prefix, func(c db.SealedColumn, id string, sealed []byte) ([]byte, error) {
		return keys.Reseal(sealed, seal.Context(c.Kind, id))
	})
	if failed != nil || err != nil {
		t.Errorf("encrypted again: %v, %v", failed, err)
	}
	write(newer)
	if got := h.sent(path); got != second {
		t.Errorf("with the new key it sends %q", got)
	}

	// One that cannot be decrypted is set again.
	h.Exec("UPDATE webhooks SET sealed_authorization = secret")
	checkError(t, h.Do("POST", path+"/test", h.tenant.Key, nil), domain.Conflict)
	h.Do("PATCH", path, h.tenant.Key, map[string]any{"authorization": first}).Want(http.StatusOK)
	if got := h.sent(path); got != first {
		t.Errorf("set again, it sends %q", got)
	}
}

// TestWebhookAuthorizationWithoutKey verifies that a service without an encryption key stores no value of the header
// Authorization, and that an earlier release does not know it.
func TestWebhookAuthorizationWithoutKey(t *testing.T) {
	t.Parallel()
	h := newHooks(t, v2test.Options{NoKey: true})
	id, _ := subscribe(h.Harness, h.clients[0])
	path := "/v2/webhooks/" + id.String()
	r := checkError(t, h.Do("PATCH", path, h.tenant.Key, `{"authorization":"Bearer token"}`), domain.Conflict)
	if !strings.Contains(string(r.Body), "partnerapi encryption-key") {
		t.Errorf("says %s", r.Body)
	}
	h.Do("PATCH", path, h.tenant.Key, `{"authorization":null}`).Want(http.StatusOK)

	earlier := newHooks(t, v2test.Options{Release: op.V2_4})
	path, _ = earlier.create(earlier.tenant.Key)
	checkInvalid(t, earlier.Do("PATCH", path, earlier.tenant.Key, `{"authorization":"Bearer token"}`), "authorization")
	var shown map[string]any
	if err := json.Unmarshal(earlier.Get(path, earlier.tenant.Key).Body, &shown); err != nil {
		t.Fatal(err)
	}
	if _, has := shown["has_authorization"]; has {
		t.Errorf("release 2.4 shows %v", shown)
	}
}
