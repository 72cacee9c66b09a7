package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"partnerapi/domain"
)

// The headers of Standard Webhooks. The signature is "v1," and the standard base64 of the HMAC-SHA256 of the event's
// id, a dot, the time, a dot and the body. The key is the decoded base64 of the secret. While a secret is being
// replaced there are two signatures, separated by a space.
const (
	standardID        = "Webhook-Id"
	standardTime      = "Webhook-Timestamp"
	standardSignature = "Webhook-Signature"
)

// errSecret is the error for a secret in a wrong form, and for a message without secrets.
var errSecret = errors.New("a secret is " + domain.WebhookSecretPrefix + " and standard base64 of 24 to 64 bytes")

// The minimum and maximum number of bytes of a secret, as Standard Webhooks recommends.
const (
	minSecret = 24
	maxSecret = 64
)

// decodeSecret decodes the base64 of a secret after its prefix. The error is errSecret.
func decodeSecret(secret string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(secret, domain.WebhookSecretPrefix)
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(key) < minSecret || len(key) > maxSecret {
		return nil, errSecret
	}
	return key, nil
}

// CheckSecret returns an error for a secret that Sign refuses.
func CheckSecret(secret string) error {
	_, err := decodeSecret(secret)
	return err
}

// Sign sets the headers that authenticate a message's body and its time: the service's own, and those of Standard
// Webhooks. Each of the secrets makes a signature. The first one also signs the body alone if m.BodySigned
// (domain.BodySignatureHeader). The error is errSecret if there are no secrets, or one is invalid.
func Sign(h http.Header, m domain.DeliveryMessage, at time.Time) error {
	if len(m.Secrets) == 0 {
		return errSecret
	}
	unix := strconv.FormatInt(at.Unix(), 10)
	own, standard := "t="+unix, ""
	for _, secret := range m.Secrets {
		key, err := decodeSecret(secret)
		if err != nil {
			return err
		}
		own += ",v1=" + hex.EncodeToString(hmacSHA256([]byte(secret), unix+".", m.Body)) // keyed by the text, not by key
		if standard != "" {
			standard += " "
		}
		standard += "v1," + base64.StdEncoding.EncodeToString(hmacSHA256(key, m.ID+"."+unix+".", m.Body))
	}

	h.Set(domain.SignatureHeader, own)
	if m.BodySigned {
		h.Set(domain.BodySignatureHeader, "sha256="+hex.EncodeToString(hmacSHA256([]byte(m.Secrets[0]), "", m.Body)))
	}
	h.Set(standardID, m.ID)
	h.Set(standardTime, unix)
	h.Set(standardSignature, standard)
	return nil
}

// hmacSHA256 returns the HMAC-SHA256 of a prefix and a body.
func hmacSHA256(key []byte, prefix string, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte(prefix)) // never fails
	_, _ = mac.Write(body)
	return mac.Sum(nil)
}
