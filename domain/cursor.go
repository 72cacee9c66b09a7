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

// CursorSealer converts positions to opaque cursors and back. A cursor is encrypted and authenticated, and bound to a
// list: the operation, its filters and its sort (decisions 3.3). The same position always has the same cursor in a
// list. Secret must be the secret of the database. CursorSealer is safe for concurrent use.
type CursorSealer struct {
	Secret []byte
	// Others returns further secrets that Open tries; nil means none. Seal does not use them.
	Others func() [][]byte
}

const (
	// encryptedCursor is the first byte of a cursor, and identifies its format: after it come the nonce, the ciphertext
	// and the tag of AES-256-GCM.
	encryptedCursor = 1
	// cursorBlock is the block size, in bytes, to which positions are padded, so that the length of a cursor reveals
	// almost nothing about the length of an email.
	cursorBlock = 64
)

var errBadCursor = errors.New("bad cursor")

// Seal returns the cursor of a position in the list that binding describes, in base64url without padding:
// encryptedCursor, which is authenticated too, the nonce and the encrypted JSON. Spaces hide the length of the JSON.
func (s CursorSealer) Seal(binding string, p Position) string {
	body := marshal(p)
	if remainder := len(body) % cursorBlock; remainder > 0 {
		body = append(body, bytes.Repeat([]byte(" "), cursorBlock-remainder)...)
	}
	aead := s.aead(binding)
	nonce := s.nonce(binding, body)[:aead.NonceSize()]
	raw := make([]byte, 0, 1+len(nonce)+len(body)+aead.Overhead())
	raw = append(append(raw, encryptedCursor), nonce...)
	return base64.RawURLEncoding.EncodeToString(aead.Seal(raw, nonce, body, raw[:1]))
}

// marshal returns the JSON of a position. HTML is not escaped: six bytes for < would make cursors longer than lists accept.
func marshal(p Position) []byte {
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false)
	_ = e.Encode(p) // two strings: cannot fail
	return bytes.TrimSuffix(body.Bytes(), []byte("\n"))
}

// nonce derives the nonce from the plaintext, body, so that the same position always has the same cursor. GCM is safe
// if no nonce is used for two plaintexts with the same key. This nonce is the output of a pseudorandom function
// (HMAC-SHA256) of the list and the plaintext, as in AES-SIV. It repeats only for the same plaintext, or by a collision
// of 96 bits, which is as unlikely as with random nonces. It reveals only whether two cursors of a list have the same
// position. The label "cursor nonce" separates this function from the derivation of keys in aead.
func (s CursorSealer) nonce(binding string, body []byte) []byte {
	h := hmac.New(sha256.New, s.Secret)
	h.Write([]byte("cursor nonce\x00"))
	h.Write([]byte(binding))
	h.Write([]byte{0})
	h.Write(body)
	return h.Sum(nil)
}

// Open returns the position of a cursor that Seal returned for the same binding, with Secret or one of Others. For any
// other text it returns an error.
func (s CursorSealer) Open(binding, cursor string) (p Position, err error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(raw) == 0 || strings.ContainsAny(cursor, "\r\n") { // decoding would ignore them
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

// open decrypts a decoded cursor, which is not empty, with Secret, and returns the JSON of its position.
func (s CursorSealer) open(binding string, raw []byte) ([]byte, error) {
	aead := s.aead(binding)
	if raw[0] != encryptedCursor || len(raw) < 1+aead.NonceSize() {
		return nil, errBadCursor
	}
	nonce, sealed := raw[1:1+aead.NonceSize()], raw[1+aead.NonceSize():]
	return aead.Open(nil, nonce, sealed, raw[:1])
}

// aead returns AES-256-GCM with a key for the list, which is derived from the secret. So cursors are bound to the list,
// and nonces of 96 bits are enough for 2^32 positions of each list.
func (s CursorSealer) aead(binding string) cipher.AEAD {
	h := hmac.New(sha256.New, s.Secret)
	h.Write([]byte("encrypted cursor\x00"))
	h.Write([]byte(binding))
	block, err := aes.NewCipher(h.Sum(nil))
	if err != nil {
		panic(err) // cannot happen: the key has 32 bytes
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // cannot happen: AES has the block size of GCM
	}
	return aead
}
