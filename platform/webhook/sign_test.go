package webhook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"partnerapi/domain"
	"partnerapi/platform/webhook"
)

var update = flag.Bool("update", false, "write the golden files")

// Two secrets as they are shown.
const (
	secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g"
	older  = "whsec_ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj9A"
)

// vector is a signed body, for verifiers in any language: testdata/signatures.json.
type vector struct {
	Name    string            `json:"name"`
	ID      string            `json:"id"`
	Time    int64             `json:"time"`
	Secrets []string          `json:"secrets"`
	Body    string            `json:"body"`
	Headers map[string]string `json:"headers"`
}

// vectors signs some bodies.
func vectors(t *testing.T) (all []vector) {
	t.Helper()
	for _, v := range []vector{
		{Name: "one secret", Secrets: []string{secret}, Body: `{"id":"evt_1","type":"user.updated"}`},
		{Name: "a secret that is being replaced", Secrets: []string{secret, older}, Body: `{"id":"evt_1","type":"user.updated"}`},
		{Name: "text beyond ASCII", Secrets: []string{secret}, Body: `{"name":"Zoë 字 \u0000"}`},
		{Name: "an empty body", Secrets: []string{secret}},
	} {
		v.ID, v.Time = "evt_2ceovmzkgm6fa", 1781524800
		h := http.Header{}
		if err := webhook.Sign(h, domain.DeliveryMessage{ID: v.ID, Secrets: v.Secrets, BodySigned: true, Body: []byte(v.Body)}, time.Unix(v.Time, 999)); err != nil {
			t.Fatal(err)
		}
		v.Headers = map[string]string{}
		for name := range h {
			v.Headers[strings.ToLower(name)] = h.Get(name)
		}
		all = append(all, v)
	}
	return all
}

// TestVectors holds the signatures against those in the golden file, which other
// verifiers are tried on.
func TestVectors(t *testing.T) {
	t.Parallel()
	got, err := json.MarshalIndent(vectors(t), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const name = "testdata/signatures.json"
	if *update {
		if err := os.WriteFile(name, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil || string(want) != string(got)+"\n" {
		t.Errorf("%s (-update writes it): %v\n%s", name, err, got)
	}
}

// TestVerifiers: what is signed is verified by Standard Webhooks' own library, with every
// secret that signs and no other, and not if a byte differs.
func TestVerifiers(t *testing.T) {
	t.Parallel()
	for _, v := range vectors(t) {
		h := http.Header{}
		for name, value := range v.Headers {
			h.Set(name, value)
		}
		for _, s := range []string{secret, older} {
			signs := len(v.Secrets) == 2 || s == secret
			library, err := standardwebhooks.NewWebhook(s)
			if err != nil {
				t.Fatal(err)
			}
			for body, right := range map[string]bool{v.Body: signs, v.Body + " ": false} {
				if err := library.VerifyIgnoringTimestamp([]byte(body), h); (err == nil) != right {
					t.Errorf("%s: %s of %q: %v", v.Name, s, body, err)
				}
			}
		}
	}
}

// TestBodySignature verifies the signature of the body alone as GitHub documents it: the HMAC-SHA256 of the body with the
// newest secret's text, in hexadecimal after "sha256=".
// https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
func TestBodySignature(t *testing.T) {
	t.Parallel()
	for _, v := range vectors(t) {
		mac := hmac.New(sha256.New, []byte(v.Secrets[0]))
		mac.Write([]byte(v.Body))
		if want := "sha256=" + hex.EncodeToString(mac.Sum(nil)); v.Headers["x-hub-signature-256"] != want {
			t.Errorf("%s: %s, not %s", v.Name, v.Headers["x-hub-signature-256"], want)
		}
	}
}

// TestNoSecret: what is no secret does not sign.
func TestNoSecret(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "whsec_", strings.TrimPrefix(secret, "whsec_"), "whsec_AAECAwQF", secret + "=", "whsec_" + strings.Repeat("A", 120)} {
		if webhook.CheckSecret(s) == nil || webhook.Sign(http.Header{}, domain.DeliveryMessage{ID: "evt", Secrets: []string{s}}, time.Now()) == nil {
			t.Errorf("%q signs", s)
		}
	}
	if webhook.Sign(http.Header{}, domain.DeliveryMessage{ID: "evt"}, time.Now()) == nil {
		t.Error("no secret signs")
	}
}

// While a secret is rotated, a delivery is signed with both.
func ExampleSign() {
	h := http.Header{}
	secrets := []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"}
	err := webhook.Sign(h, domain.DeliveryMessage{ID: "evt_1", Secrets: secrets, Body: []byte(`{}`)}, time.Unix(1767225600, 0))
	fmt.Println(err, h.Get("Webhook-Id"), h.Get("Webhook-Timestamp"), len(h.Get(domain.SignatureHeader)) > 0)
	// Output: <nil> evt_1 1767225600 true
}
