package seal

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// signatureLength is how many bytes of an HMAC prove that a token was signed here.
const signatureLength = 16

// Sign makes a token for an address: what is signed, and 128 bits of its HMAC for a
// purpose. Nothing of it is stored or secret.
func Sign(secret []byte, purpose string, signed []byte) string {
	return base64.RawURLEncoding.EncodeToString(append(signed, signature(secret, purpose, signed)...))
}

// Signed returns what a token of Sign signs, of which that is the length in bytes; false
// where the token was altered or is of another purpose.
func Signed(secret []byte, purpose, token string, length int) ([]byte, bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(raw) != length+signatureLength || strings.ContainsAny(token, "\r\n") {
		return nil, false
	}
	return raw[:length], hmac.Equal(raw[length:], signature(secret, purpose, raw[:length]))
}

func signature(secret []byte, purpose string, signed []byte) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(purpose + " "))
	h.Write(signed)
	return h.Sum(nil)[:signatureLength]
}
