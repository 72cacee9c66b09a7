package mcp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"

	"partnerapi/domain"
)

// sealer makes and reads the ids of sessions.
type sealer struct{ secret []byte }

// newSealer derives the secret of sessions from one that has other uses too.
func newSealer(secret []byte) sealer {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("mcp session"))
	return sealer{mac.Sum(nil)}
}

// The parts of an id, in bytes: what makes it unique, whether the session is
// read-only, and the seal.
const (
	uniqueLength  = 16
	sessionLength = uniqueLength + 1 + sha256.Size
)

// seal returns the id of a new session of a key.
func (s sealer) seal(key domain.KeyID, readOnly bool) string {
	id := make([]byte, uniqueLength+1, sessionLength)
	_, _ = rand.Read(id[:uniqueLength]) // which never fails
	if readOnly {
		id[uniqueLength] = 1
	}
	return base64.RawURLEncoding.EncodeToString(append(id, s.mac(key, id)...))
}

// open reports whether the session is read-only; ok is false for an id that is
// none of the key's.
func (s sealer) open(key domain.KeyID, id string) (readOnly, ok bool) {
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(id)
	if err != nil || len(sealed) != sessionLength {
		return false, false
	}
	body, mac := sealed[:uniqueLength+1], sealed[uniqueLength+1:]
	return body[uniqueLength] == 1, hmac.Equal(mac, s.mac(key, body))
}

func (s sealer) mac(key domain.KeyID, body []byte) []byte {
	mac := hmac.New(sha256.New, s.secret)
	mac.Write(key[:])
	mac.Write(body)
	return mac.Sum(nil)
}
