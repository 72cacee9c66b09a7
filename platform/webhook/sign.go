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

// The headers of Standard Webhooks. The signature is v1, a comma and the HMAC-SHA256
// of the event's id, a dot, the time, a dot and the body in standard base64, keyed by
// the bytes that the secret's base64 stands for. While a secret is being replaced
// there are two, separated by a space.
const (
	standardID        = "Webhook-Id"
	standardTime      = "Webhook-Timestamp"
	standardSignature = "Webhook-Signature"
)

// errSecret is returned for a secret that is not one of the service's.
var errSecret = errors.New("a secret is " + domain.WebhookSecretPrefix + " and standard base64 of 24 to 64 bytes")

// The bytes that a secret may have: those that Standard Webhooks recommends.
const (
	minSecret = 24
	maxSecret = 64
)

// secretBytes decodes the base64 of a secret.
func secretBytes(secret string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(secret, domain.WebhookSecretPrefix)
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(key) < minSecret || len(key) > maxSecret {
		return nil, errSecret
	}
	return key, nil
}

// CheckSecret returns an error if Sign would refuse the secret.
func CheckSecret(secret string) error {
	_, err := secretBytes(secret)
	return err
}

// Sign sets the headers that authenticate a body and its time. id is the event's id as callers see it. secrets are
// in text form, newest first; each of them signs. It fails if there is none, or if one of them is invalid.
func Sign(h http.Header, id string, at time.Time, secrets []string, body []byte) error {
	if len(secrets) == 0 {
		return errSecret
	}
	unix := strconv.FormatInt(at.Unix(), 10)
	own, standard := "t="+unix, ""
	for _, secret := range secrets {
		key, err := secretBytes(secret)
		if err != nil {
			return err
		}
		own += ",v1=" + hex.EncodeToString(sum([]byte(secret), unix+".", body))
		if standard != "" {
			standard += " "
		}
		standard += "v1," + base64.StdEncoding.EncodeToString(sum(key, id+"."+unix+".", body))
	}

	h.Set(domain.SignatureHeader, own)
	h.Set(standardID, id)
	h.Set(standardTime, unix)
	h.Set(standardSignature, standard)
	return nil
}

// sum returns the HMAC-SHA256 of a text and a body.
func sum(key []byte, before string, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte(before)) // never fails
	_, _ = mac.Write(body)
	return mac.Sum(nil)
}
