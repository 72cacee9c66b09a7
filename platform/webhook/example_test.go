package webhook_test

import (
	"fmt"
	"net/http"
	"time"

	"partnerapi/domain"
	"partnerapi/platform/webhook"
)

// While a secret is rotated, a delivery is signed with both.
func ExampleSign() {
	h := http.Header{}
	secrets := []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"}
	err := webhook.Sign(h, "evt_1", time.Unix(1767225600, 0), secrets, []byte(`{}`))
	fmt.Println(err, h.Get("Webhook-Id"), h.Get("Webhook-Timestamp"), len(h.Get(domain.SignatureHeader)) > 0)
	// Output: <nil> evt_1 1767225600 true
}
