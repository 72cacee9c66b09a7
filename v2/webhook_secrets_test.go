package v2_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/platform/seal"
	"partnerapi/v2/v2test"
)

// secrets are those that a webhook's events are signed with, the newest first.
func (h *hooks) secrets(path string) (texts []string) {
	h.T.Helper()
	webhook, err := outbox.FindWebhook(h.tenant.Ctx, h.DB, idOf[domain.WebhookKind](h.T, path))
	if err != nil {
		h.T.Fatal(err)
	}
	target, err := webhook.Target(h.tenant.Ctx)
	if err != nil {
		h.T.Fatal(err)
	}
	message, err := target.Message(h.Keys.Open)
	if err != nil {
		h.T.Fatal(err)
	}
	return message.Secrets
}

// TestWebhookSecretsAreKept: a secret is shown by the answer that makes it and by its
// replays, and nowhere else: no table, log or other answer has it.
func TestWebhookSecretsAreKept(t *testing.T) {
	t.Parallel()
	log := &syncedBuilder{}
	h := newHooks(t, v2test.Options{Audit: true, Log: log})
	key := []string{"Idempotency-Key", "create"}
	created := h.Do("POST", "/v2/webhooks", h.tenant.Key, h.body(), key...).Want(http.StatusCreated)
	path, first := created.Header.Get("Location"), created.Field("secret").(string)
	replaced := h.Do("POST", path+"/secret", h.tenant.Key, nil, key[0], "replace").Want(http.StatusOK)
	second := replaced.Field("secret").(string)
	if first == second || !slices.Equal(h.secrets(path), []string{second, first}) {
		t.Errorf("the secrets are %v, not %s and %s", h.secrets(path), second, first)
	}
	// Replays.
	again := h.Do("POST", "/v2/webhooks", h.tenant.Key, h.body(), key...).Want(http.StatusCreated)
	if string(again.Body) != string(created.Body) || again.Header.Get("Idempotent-Replayed") != "true" || again.Header.Get("Location") != path {
		t.Errorf("replays %s %v", again.Body, again.Header)
	}
	if again := h.Do("POST", path+"/secret", h.tenant.Key, nil, key[0], "replace"); string(again.Body) != string(replaced.Body) {
		t.Errorf("replays %s", again.Body)
	}

	h.Do("POST", path+"/test", h.tenant.Key, nil, key[0], "test").Want(http.StatusOK)
	shown := []string{rowsOf(h.Harness), log.String()}
	for _, r := range []v2test.Response{
		h.Get(path, h.tenant.Key), h.Get("/v2/webhooks", h.tenant.Key), h.Get(path+"/deliveries", h.tenant.Key),
		h.Do("PATCH", path, h.tenant.Key, `{"description":"x"}`), h.Do("POST", path+"/test", h.tenant.Key, nil),
	} {
		shown = append(shown, string(r.Want(http.StatusOK).Body))
	}
	for i, text := range shown {
		for _, secret := range []string{first, second} {
			raw := strings.TrimPrefix(secret, domain.WebhookSecretPrefix)
			for _, form := range []string{raw, fmt.Sprintf("%x", raw), strings.ToUpper(fmt.Sprintf("%x", raw))} {
				if strings.Contains(text, form) {
					t.Errorf("place %d holds the secret", i)
				}
			}
		}
	}
	if !strings.Contains(shown[0], "example.com/hook") || !strings.Contains(shown[1], "webhooks.secret") {
		t.Errorf("the tables or the log were not read: %d, %d", len(shown[0]), len(shown[1]))
	}

	h.Clock.Advance(domain.ReplacedSecretLife - time.Second)
	if got := h.secrets(path); len(got) != 2 {
		t.Errorf("within 24 hours %d secrets sign", len(got))
	}
	h.Clock.Advance(time.Second)
	if got := h.secrets(path); len(got) != 1 {
		t.Errorf("after 24 hours %d secrets sign", len(got))
	}
}

// syncedBuilder is a strings.Builder for several goroutines.
type syncedBuilder struct {
	mu sync.Mutex
	strings.Builder
}

func (b *syncedBuilder) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Builder.Write(p)
}

func (b *syncedBuilder) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Builder.String()
}

// keysInFile returns the keys in a file, which at first has the key, and a function that writes the file anew.
func keysInFile(t *testing.T, key string) (keys *seal.Keys, write func(text string)) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	write = func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(key)
	keys, err := seal.ParseKeys("file:" + file)
	if err != nil {
		t.Fatal(err)
	}
	return keys, write
}

// TestWebhookSecretsAreRotated: after a rotation of the encryption key, secrets and
// replays are read without the older one.
func TestWebhookSecretsAreRotated(t *testing.T) {
	t.Parallel()
	older, newer := seal.NewKey(), seal.NewKey()
	keys, write := keysInFile(t, older)
	h := newHooks(t, v2test.Options{Keys: keys})
	created := h.Do("POST", "/v2/webhooks", h.tenant.Key, h.body(), "Idempotency-Key", "k").Want(http.StatusCreated)
	path := created.Header.Get("Location")
	h.Do("POST", path+"/secret", h.tenant.Key, nil).Want(http.StatusOK)
	before := h.secrets(path)

	write(newer + "\n" + older)
	prefix, err := keys.Prefix()
	if err != nil {
		t.Fatal(err)
	}
	n, failed, err := h.DB.Reseal(t.Context(), db.SealedColumns, prefix, func(c db.SealedColumn, id string, sealed []byte) ([]byte, error) {
		return keys.Reseal(sealed, seal.Context(c.Kind, id))
	})
	if n != 3 || failed != nil || err != nil {
		t.Errorf("%d secrets are encrypted again: %v, %v", n, failed, err)
	}
	write(newer)
	if after := h.secrets(path); !slices.Equal(after, before) {
		t.Errorf("the secrets are %v, not %v", after, before)
	}
	if again := h.Do("POST", "/v2/webhooks", h.tenant.Key, h.body(), "Idempotency-Key", "k").Want(http.StatusCreated); string(again.Body) != string(created.Body) {
		t.Errorf("replays %s", again.Body)
	}

	// A secret of another key is replaced by a new one.
	write(seal.NewKey())
	checkError(t, h.Do("POST", path+"/test", h.tenant.Key, nil), domain.Conflict)
	h.Exec("UPDATE webhooks SET replaced_secret = NULL")
	h.Do("POST", path+"/secret", h.tenant.Key, nil).Want(http.StatusOK)
	h.Exec("UPDATE webhooks SET replaced_secret = NULL")
	h.Do("POST", path+"/test", h.tenant.Key, nil).Want(http.StatusOK)
}

// TestPing sends pings in every status, signed as deliveries of the served release are.
func TestPing(t *testing.T) {
	t.Parallel()
	h := newHooks(t, v2test.Options{Audit: true})
	path, secret := h.create(h.tenant.Key)
	answers := []domain.DeliveryTry{
		{StatusCode: 204, DurationMS: 3}, {StatusCode: 302, DurationMS: 4}, {StatusCode: 410}, {StatusCode: 500}, {Response: "refused", DurationMS: 7},
	}
	seen := map[string]bool{}
	for i, status := range []string{"active", "paused", "disabled", "active", "active"} {
		h.Exec("UPDATE webhooks SET status = $1", status)
		if err := h.DB.RecordRelease(t.Context(), []string{"2.4", "2.5"}[i%2]); err != nil {
			t.Fatal(err)
		}
		before := rowsOf(h.Harness)
		h.Receivers.Answer = func(context.Context, domain.DeliveryMessage) domain.DeliveryTry { return answers[i] }
		r := h.Do("POST", path+"/test", h.tenant.Key, nil).Want(http.StatusOK)
		want := map[string]any{"delivered": i == 0, "status_code": float64(answers[i].StatusCode), "duration_ms": float64(answers[i].DurationMS)}
		if fmt.Sprint(r.JSON()) != fmt.Sprint(want) {
			t.Errorf("answers %s", r.Body)
		}
		h.Exec("DELETE FROM audit_entries WHERE operation = 'webhooks.test'")
		if rowsOf(h.Harness) != before {
			t.Error("a test changes something")
		}
		_, sent := h.Receivers.Seen()
		last := sent[len(sent)-1]
		id := idOf[domain.WebhookKind](t, path).String()
		body := `{"id":"` + last.ID + `","type":"ping","created_at":"2026-06-15T12:00:00.000000Z","client_id":null,"data":{"webhook_id":"` + id + `"}}`
		if string(last.Body) != body || !strings.HasPrefix(last.ID, "evt_") || seen[last.ID] || last.URL != "https://example.com/hook" || !slices.Equal(last.Secrets, []string{secret}) || last.BodySigned != (i%2 == 1) {
			t.Errorf("sends %+v %s", last, last.Body)
		}
		seen[last.ID] = true
	}
	_, sent := h.Receivers.Seen()
	outside := h.AddKey(h.tenant, bothScopes, h.clients[:1])
	checkError(t, h.Do("POST", path+"/test", outside, nil), domain.NotFound)
	checkError(t, h.Do("POST", path+"/test", h.AddKey(h.tenant, []domain.Scope{domain.Read}, nil), nil), domain.Forbidden)
	if _, after := h.Receivers.Seen(); len(after) != len(sent) {
		t.Error("who may not test sends a ping")
	}
}

// TestPingOnce: a repetition under an Idempotency-Key sends no ping, whether the first
// is in progress or has ended; a failure frees the key.
func TestPingOnce(t *testing.T) {
	t.Parallel()
	h := newHooks(t, v2test.Options{})
	path, _ := h.create(h.tenant.Key)
	reached, release := make(chan bool), make(chan bool)
	h.Receivers.Answer = func(context.Context, domain.DeliveryMessage) domain.DeliveryTry {
		reached <- true
		<-release
		return domain.DeliveryTry{StatusCode: http.StatusOK}
	}
	ping := func(headers ...string) v2test.Response {
		return h.Do("POST", path+"/test", h.tenant.Key, nil, headers...)
	}
	key := []string{"Idempotency-Key", "k"}
	first := make(chan v2test.Response)
	go func() { first <- ping(key...) }()
	<-reached
	if n := h.Number("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'"); n != 0 {
		t.Errorf("%d transactions are open while an endpoint is talked to", n)
	}
	if r := checkError(t, ping(key...), domain.Conflict); r.Header.Get("Retry-After") != "1" {
		t.Errorf("a repetition is answered %s", r.Body)
	}
	if r := checkError(t, ping(), domain.RateLimited); !strings.Contains(string(r.Body), "in progress") {
		t.Errorf("a second test is answered %s", r.Body)
	}
	checkError(t, h.Do("POST", path+"/secret", h.tenant.Key, nil, key...), domain.Conflict)
	release <- true
	done := (<-first).Want(http.StatusOK)
	for range 2 {
		if again := ping(key...).Want(http.StatusOK); string(again.Body) != string(done.Body) || again.Header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("replays %s", again.Body)
		}
	}
	if _, sent := h.Receivers.Seen(); len(sent) != 1 {
		t.Errorf("%d pings", len(sent))
	}

	// What fails before the transaction frees the key.
	h.Receivers.Refuse = func(string) error { return domain.ErrInvalid("url", "does not resolve") }
	checkInvalid(t, h.Do("POST", "/v2/webhooks", h.tenant.Key, h.body(), "Idempotency-Key", "new"), "url")
	h.Receivers.Refuse = nil
	h.Do("POST", "/v2/webhooks", h.tenant.Key, h.body(), "Idempotency-Key", "new").Want(http.StatusCreated)
	checked, _ := h.Receivers.Seen()
	h.Do("POST", "/v2/webhooks", h.tenant.Key, h.body(), "Idempotency-Key", "new").Want(http.StatusCreated)
	if again, _ := h.Receivers.Seen(); len(again) != len(checked) {
		t.Error("a replay looks a host up")
	}

	// A process that died leaves the key taken for a while.
	h.Receivers.Answer = nil
	h.Exec("UPDATE idempotency_records SET status = 0, created_at = $1 WHERE idempotency_key = 'k'", h.Clock.Now())
	checkError(t, ping(key...), domain.Conflict)
	h.Clock.Advance(domain.ReservedFor)
	ping(key...).Want(http.StatusOK)
}

// TestHolderWaits: the request that holds an Idempotency-Key is not refused as another
// one looks at the key in the moment in which the first comes back to it: the first
// waits, and has its effect.
func TestHolderWaits(t *testing.T) {
	t.Parallel()
	h := newHooks(t, v2test.Options{})
	looks, looked := make(chan bool), make(chan error, 1)
	h.Receivers.Refuse = func(string) error { // the first has reserved the key
		go func() {
			looked <- h.DB.Tx(h.tenant.Ctx, func(ctx context.Context) error {
				_, _, err := h.DB.Reserve(ctx, "k", domain.RequestDigest{Exact: []byte("another"), Canonical: []byte("request")})
				looks <- true
				<-looks
				return err
			})
		}()
		<-looks
		return nil
	}
	first := make(chan v2test.Response, 1)
	go func() { first <- h.Do("POST", "/v2/webhooks", h.tenant.Key, h.body(), "Idempotency-Key", "k") }()
	for h.Number("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted") == 0 {
		if len(first) > 0 {
			break // it was refused
		}
	}
	looks <- true
	if err := <-looked; !domain.IsCode(err, domain.Conflict) {
		t.Errorf("another request with the key ends with %v", err)
	}
	(<-first).Want(http.StatusCreated)
}
