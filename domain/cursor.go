package domain

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
)

// CursorSealer turns positions into opaque cursors and back. A cursor is
// encrypted and authenticated, and bound to one list: the operation, its filters
// and its sort (decisions 3.3). A position has one cursor in each list. The zero value
// has an empty secret; give it the one that the database holds. It is safe for
// concurrent use.
type CursorSealer struct {
	Secret []byte
	// Others, if set, returns further secrets that Open tries. Seal does not use them.
	Others func() [][]byte
}

const (
	// encryptedCursor is the first byte of a cursor, and names its form: the
	// nonce, the ciphertext and the tag of AES-256-GCM follow.
	encryptedCursor = 1
	// cursorBlock is the block size, in bytes, to which positions are padded, so
	// that the length of a cursor reveals next to nothing of that of an email.
	cursorBlock = 64
)

var errBadCursor = errors.New("bad cursor")

// Seal returns the cursor for a position in the list that binding describes: base64url
// without padding.
func (s CursorSealer) Seal(binding string, p Position) string {
	body, _ := json.Marshal(p) // two strings: cannot fail
	if over := len(body) % cursorBlock; over > 0 {
		body = append(body, bytes.Repeat([]byte(" "), cursorBlock-over)...)
	}
	aead := s.aead(binding)
	raw := make([]byte, 0, 1+aead.NonceSize()+len(body)+aead.Overhead())
	raw = append(append(raw, encryptedCursor), s.nonce(binding, body)[:aead.NonceSize()]...)
	return base64.RawURLEncoding.EncodeToString(aead.Seal(raw, raw[1:], body, raw[:1]))
}

// nonce derives the nonce from the body that is encrypted, so that the same page has
// the same bytes. GCM is safe as long as no nonce is used for two bodies under one key.
// This nonce is the output of a pseudorandom function (HMAC-SHA256) of the list and the
// body, as in AES-SIV: it repeats for the same body, whose cursor is then the same, or
// by a collision of 96 bits, as unlikely as with random nonces. A caller learns from it
// only that two cursors of a list are of one position. The labels separate the function
// from the one that derives the keys.
func (s CursorSealer) nonce(binding string, body []byte) []byte {
	h := hmac.New(sha256.New, s.Secret)
	h.Write([]byte("cursor nonce\x00"))
	h.Write([]byte(binding))
	h.Write([]byte{0})
	h.Write(body)
	return h.Sum(nil)
}

// Open returns the position of a cursor that Seal made with the same binding,
// and an error for every other text.
func (s CursorSealer) Open(binding, cursor string) (p Position, err error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(raw) == 0 || strings.ContainsAny(cursor, "\r\n") { // which decoding ignores
		return Position{}, errBadCursor
	}
	body, err := s.open(binding, raw)
	if err != nil && s.Others != nil {
		for _, secret := range s.Others() {
			if body, err = (CursorSealer{Secret: secret}).open(binding, raw); err == nil {
				break
			}
		}
	}
	if err != nil || json.Unmarshal(body, &p) != nil {
		return Position{}, errBadCursor
	}
	return p, nil
}

// open returns the position's JSON in a cursor.
func (s CursorSealer) open(binding string, raw []byte) ([]byte, error) {
	aead := s.aead(binding)
	if raw[0] != encryptedCursor || len(raw) < 1+aead.NonceSize() {
		return nil, errBadCursor
	}
	nonce, sealed := raw[1:1+aead.NonceSize()], raw[1+aead.NonceSize():]
	return aead.Open(nil, nonce, sealed, raw[:1])
}

// aead returns AES-256-GCM with the list's own key, derived from the secret: it binds
// cursors to the list, and nonces of 96 bits last for 2^32 positions of each list.
func (s CursorSealer) aead(binding string) cipher.AEAD {
	h := hmac.New(sha256.New, s.Secret)
	h.Write([]byte("encrypted cursor\x00"))
	h.Write([]byte(binding))
	block, err := aes.NewCipher(h.Sum(nil))
	if err != nil {
		panic(err) // 32 bytes are a key
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // AES has the block that GCM wants
	}
	return aead
}
