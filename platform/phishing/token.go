// Package phishing sends the simulated phishing mails and answers their
// links: the worker writes each mail from its template and marks it as sent,
// and the pages record what its reader does with it and explain what it was.
package phishing

import (
	"partnerapi/domain"
	"partnerapi/platform/seal"
)

// Tokens creates and verifies the tokens in the links of simulated mails. A token is the result's id and 128 bits
// of its HMAC. It is the same at every attempt of a mail and is not stored.
type Tokens struct {
	secret []byte
	others func() [][]byte
}

// NewTokens returns the tokens for the database's secret (db.TrackingSecret).
func NewTokens(secret []byte) Tokens { return Tokens{secret: secret} }

// Accept returns Tokens that also accept tokens made with other secrets.
func (t Tokens) Accept(others func() [][]byte) Tokens {
	t.others = others
	return t
}

// purpose is the purpose that the tokens are signed for.
const purpose = "simulation"

// Token returns the token of a result.
func (t Tokens) Token(id domain.ResultID) string { return seal.Sign(t.secret, purpose, id[:]) }

// Result returns the result of a token; false if the signature is not valid.
func (t Tokens) Result(token string) (id domain.ResultID, ok bool) {
	signed, ok := seal.Signed(t.secret, purpose, token, len(id))
	if !ok && t.others != nil {
		for _, secret := range t.others() {
			if signed, ok = seal.Signed(secret, purpose, token, len(id)); ok {
				break
			}
		}
	}
	if ok {
		copy(id[:], signed)
	}
	return id, ok
}
