package client_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"partnerapi/client"
	"partnerapi/domain"
	"partnerapi/platform/webhook"
)

// TestVerify: a delivery is verified with each secret that signs, within the tolerance.
func TestVerify(t *testing.T) {
	t.Parallel()
	const secret, older, body = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g", "whsec_ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj9A", `{"a":1}`
	at := time.Unix(1781524800, 0)
	signed := http.Header{}
	message := domain.DeliveryMessage{ID: "evt_1", Secrets: []string{secret, older}, Body: []byte(body)}
	if err := webhook.Sign(signed, message, at); err != nil {
		t.Fatal(err)
	}
	valid := signed.Get("X-Service-Signature")
	for _, tt := range []struct {
		name, header, secret, body string
		later                      time.Duration
		ok                         bool
	}{
		{"the new secret", valid, secret, body, 0, true},
		{"the secret that is replaced", valid, older, body, 0, true},
		{"another secret", valid, "whsec_other", body, 0, false},
		{"another body", valid, secret, body + " ", 0, false},
		{"five minutes ago", valid, secret, body, 5 * time.Minute, true},
		{"longer ago", valid, secret, body, 5*time.Minute + time.Second, false},
		{"five minutes ahead", valid, secret, body, -5 * time.Minute, true},
		{"further ahead", valid, secret, body, -5*time.Minute - time.Second, false},
		{"another time", strings.Replace(valid, "t=1781524800", "t=1781524801", 1), secret, body, 0, false},
		{"no signature", "t=1781524800", secret, body, 0, false},
		{"an empty one", "t=1781524800,v1=", secret, body, 0, false},
		{"no header", "", secret, body, 0, false},
		{"no time", strings.TrimPrefix(valid, "t=1781524800,"), secret, body, 0, false},
	} {
		h := http.Header{}
		h.Set("X-Service-Signature", tt.header)
		if err := client.Verify(tt.secret, h, []byte(tt.body), at.Add(tt.later)); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
