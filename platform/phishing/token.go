// Package phishing sends the simulated phishing mails and answers their
// links: the worker writes each mail from its template and marks it as sent,
// and the pages take note of what is done with it and say what it was.
package phishing

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"

	"partnerapi/domain"
)

// Tokens makes and reads the tokens in the links of simulated mails. A token is
// the result's id and 128 bits of its HMAC. It is the same at every try of a mail
// and is not stored.
type Tokens struct{ secret []byte }

// NewTokens takes the database's secret for them (db.TrackingSecret).
func NewTokens(secret []byte) Tokens { return Tokens{secret: secret} }

const signatureLength = 16

// For is the token of a result.
func (t Tokens) For(id domain.ResultID) string {
	return base64.RawURLEncoding.EncodeToString(append(id[:], t.signature(id)...))
}

// Result returns the result of a token; false if the signature is not valid.
func (t Tokens) Result(token string) (id domain.ResultID, ok bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(raw) != len(id)+signatureLength {
		return id, false
	}
	copy(id[:], raw)
	if !hmac.Equal(raw[len(id):], t.signature(id)) {
		return domain.ResultID{}, false
	}
	return id, true
}

func (t Tokens) signature(id domain.ResultID) []byte {
	h := hmac.New(sha256.New, t.secret)
	h.Write([]byte("simulation "))
	h.Write(id[:])
	return h.Sum(nil)[:signatureLength]
}
