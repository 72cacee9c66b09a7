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
// the result's id with a proof of 128 bits that this service made it: the same
// at every try of a mail, and stored nowhere.
type Tokens struct{ secret []byte }

// NewTokens takes the database's secret for them (db.TrackingSecret).
func NewTokens(secret []byte) Tokens { return Tokens{secret: secret} }

const proofLength = 16

// For is the token of a result.
func (t Tokens) For(id domain.ResultID) string {
	return base64.RawURLEncoding.EncodeToString(append(id[:], t.proof(id)...))
}

// Result is whose token it is; false where it is nobody's.
func (t Tokens) Result(token string) (id domain.ResultID, ok bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(raw) != len(id)+proofLength {
		return id, false
	}
	copy(id[:], raw)
	if !hmac.Equal(raw[len(id):], t.proof(id)) {
		return domain.ResultID{}, false
	}
	return id, true
}

func (t Tokens) proof(id domain.ResultID) []byte {
	h := hmac.New(sha256.New, t.secret)
	h.Write([]byte("simulation "))
	h.Write(id[:])
	return h.Sum(nil)[:proofLength]
}
