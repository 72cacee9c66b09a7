// Package phishing writes simulated phishing emails from their templates (Simulations), and serves their links: Pages
// records the steps of an email's reader, such as a click, and explains the simulation.
package phishing

import (
	"partnerapi/domain"
	"partnerapi/platform/seal"
)

// Tokens creates and verifies the tokens in the links of simulated emails. A token is the result's id and 128 bits
// of its HMAC. It is the same at every attempt of an email and is not stored.
type Tokens struct {
	secret []byte
	others func() [][]byte
}

// NewTokens returns Tokens that are signed with a secret, the database's (db.TrackingSecret).
func NewTokens(secret []byte) Tokens { return Tokens{secret: secret} }

// Accept returns Tokens that also accept tokens made with other secrets, which others returns at each call.
func (t Tokens) Accept(others func() [][]byte) Tokens {
	t.others = others
	return t
}

// purpose distinguishes these tokens from others of the same secret.
const purpose = "simulation"

// Token returns the token of a result.
func (t Tokens) Token(id domain.ResultID) string { return seal.Sign(t.secret, purpose, id[:]) }

// HeaderName is the name of the header that each simulated email has, and no other email. Filters of a client recognize
// simulations by its value.
const HeaderName = "X-Simulation-Token"

// headerPurpose distinguishes values of the header from tokens in links.
const headerPurpose = "simulation header"

// Header returns the value of the header for a client. It is the same in all emails to the client, so that a rule can
// match it, and others cannot derive it.
func (t Tokens) Header(client domain.ClientID) string {
	return seal.Sign(t.secret, headerPurpose, client[:])
}

// Result returns the result of a token; false if it was signed with none of the secrets.
func (t Tokens) Result(token string) (id domain.ResultID, ok bool) {
	signed, ok := seal.Verify(t.secret, purpose, token, len(id))
	if !ok && t.others != nil {
		for _, secret := range t.others() {
			if signed, ok = seal.Verify(secret, purpose, token, len(id)); ok {
				break
			}
		}
	}
	if ok {
		copy(id[:], signed)
	}
	return id, ok
}
