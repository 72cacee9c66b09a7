package mcp

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/url"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// session is what a session keeps from its first message: its limits, which no later message removes.
type session struct {
	readOnly bool
	// only is the one client that the session has access to; zero for all clients of the key.
	only domain.ClientID
}

// sessionSigner signs and verifies session ids.
type sessionSigner struct{ secret []byte }

// newSigner derives the secret of session ids from a secret that has other uses too.
func newSigner(secret []byte) sessionSigner {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("mcp session"))
	return sessionSigner{mac.Sum(nil)}
}

// A session id consists of random bytes, a byte that is 1 for a read-only session, the id of the session's client if it
// has access to one only, and the authentication code of all that.
const (
	uniqueLength = 16 // bytes
	codeLength   = sha256.Size
	clientLength = len(domain.ClientID{})
)

// newID returns the id, in base64, of a new session of a key.
func (s sessionSigner) newID(key domain.KeyID, in session) string {
	id := make([]byte, uniqueLength+1, uniqueLength+1+clientLength+codeLength)
	_, _ = rand.Read(id[:uniqueLength]) // never fails
	if in.readOnly {
		id[uniqueLength] = 1
	}
	if !in.only.IsZero() {
		id = append(id, in.only[:]...)
	}
	return base64.RawURLEncoding.EncodeToString(append(id, s.mac(key, id)...))
}

// verify returns the session with an id. ok is true only if newID returned the id for this key.
func (s sessionSigner) verify(key domain.KeyID, id string) (out session, ok bool) {
	signed, err := base64.RawURLEncoding.Strict().DecodeString(id)
	length := len(signed) - codeLength
	if err != nil || length != uniqueLength+1 && length != uniqueLength+1+clientLength {
		return out, false
	}
	body, mac := signed[:length], signed[length:]
	out.readOnly = body[uniqueLength] == 1
	copy(out.only[:], body[uniqueLength+1:])
	return out, hmac.Equal(mac, s.mac(key, body))
}

// mac returns the authentication code of a key and the body of a session id.
func (s sessionSigner) mac(key domain.KeyID, body []byte) []byte {
	mac := hmac.New(sha256.New, s.secret)
	mac.Write(key[:])
	mac.Write(body)
	return mac.Sum(nil)
}

// limit adds the limits that a request asks for to those of its session, and of the server. It returns InvalidRequest for
// a client to which the caller has no access; so does a session whose client the key can no longer access.
func (s *Server) limit(ctx context.Context, query url.Values, in session) (session, error) {
	in.readOnly = in.readOnly || s.ReadOnly || isSet(query, "read_only")
	given := query["client_id"]
	if s.Release >= op.V2_5 && len(given) > 0 && in.only.IsZero() {
		only, err := domain.ParseID[domain.ClientKind](given[0])
		if err != nil || len(given) > 1 {
			return in, errClient
		}
		in.only = only
	}
	if in.only.IsZero() {
		return in, nil
	}
	err := s.Reach(ctx, in.only, domain.UserID{})
	if domain.IsCode(err, domain.NotFound) {
		err = errClient
	}
	return in, err
}

// errClient is the error for a client_id that the caller has no access to.
var errClient = domain.ErrInvalid("client_id", "must be the ID of one client that this key can access")

// callerOf returns the caller of a message with the limits of its session.
func callerOf(ctx context.Context, in session) *domain.Caller {
	caller := domain.CallerFrom(ctx)
	if in.only.IsZero() {
		return caller
	}
	return caller.LimitTo(in.only)
}
