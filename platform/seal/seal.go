// Package seal encrypts secrets of clients and partners with AES-256-GCM under an operator's key, so that the database
// alone discloses none of them (decisions 8.15). It also signs the tokens in links.
package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// A sealed value is its prefix, which is a version and the key's id, followed by the output
// of cipher.NewGCMWithRandomNonce: a nonce, the ciphertext and its tag. The prefix and the
// context are authenticated as additional data.
const (
	version    = 1
	idSize     = 8
	prefixSize = 1 + idSize
	keySize    = 32
)

var (
	// ErrNoKey means that no key exists to seal or open with.
	ErrNoKey = errors.New("there is no encryption key; create one with partnerapi encryption-key, and set it for serve, " +
		"work and this command with --encryption-key or PARTNERAPI_ENCRYPTION_KEY")
	// ErrOtherKey means that a value was sealed with another key.
	ErrOtherKey = errors.New("encrypted with another encryption key")
	// ErrAltered means that a value was altered, is no sealed value, or was sealed for another context.
	ErrAltered = errors.New("altered since encryption, or moved from another place")
)

// NewKey returns a new key in the format of ParseKeys.
func NewKey() string {
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails
	return base64.StdEncoding.EncodeToString(key)
}

// Context returns the sealing context of a value: the kind of secret, without a colon, and the UUID of its row. A
// value sealed for another context cannot be opened.
func Context(kind, id string) []byte { return []byte(kind + ":" + id) }

// key is an encryption key. Values sealed with it begin with its prefix.
type key struct {
	prefix [prefixSize]byte
	aead   cipher.AEAD
}

// newKey returns the key of a secret of keySize bytes. Its id is the start of the secret's SHA-256.
func newKey(secret []byte) (k key, err error) {
	block, err := aes.NewCipher(secret)
	if err != nil {
		return k, err
	}
	if k.aead, err = cipher.NewGCMWithRandomNonce(block); err != nil {
		return k, err
	}
	id := sha256.Sum256(secret)
	k.prefix[0] = version
	copy(k.prefix[1:], id[:idSize])
	return k, nil
}

// additionalData returns the additional authenticated data of a value.
func (k key) additionalData(context []byte) []byte {
	return append(bytes.Clone(k.prefix[:]), context...)
}

// Seal encrypts a value for a context, with the current key. The nonce is random, and part of the result.
func (k *Keys) Seal(plain, context []byte) ([]byte, error) {
	ring, err := k.ring()
	if err != nil {
		return nil, err
	}
	current := ring[0]
	return current.aead.Seal(bytes.Clone(current.prefix[:]), nil, plain, current.additionalData(context)), nil
}

// Open decrypts a value that was sealed for the context with any of the keys. The nonce is in sealed. The error is or
// wraps ErrOtherKey, ErrAltered or ErrNoKey.
func (k *Keys) Open(sealed, context []byte) ([]byte, error) {
	ring, err := k.ring()
	if err != nil {
		return nil, err
	}
	if len(sealed) < prefixSize || sealed[0] != version {
		return nil, ErrAltered
	}
	for _, key := range ring {
		if bytes.Equal(sealed[:prefixSize], key.prefix[:]) {
			plain, err := key.aead.Open(nil, nil, sealed[prefixSize:], key.additionalData(context))
			if err != nil {
				return nil, ErrAltered
			}
			return plain, nil
		}
	}
	return nil, fmt.Errorf("%w (%x)", ErrOtherKey, sealed[1:prefixSize])
}

// Reseal opens a value and seals it with the current key, for the same context. The errors are those of Open.
func (k *Keys) Reseal(sealed, context []byte) ([]byte, error) {
	plain, err := k.Open(sealed, context)
	if err != nil {
		return nil, err
	}
	return k.Seal(plain, context)
}

// Prefix returns the header of values sealed with the current key.
func (k *Keys) Prefix() ([]byte, error) {
	ring, err := k.ring()
	if err != nil {
		return nil, err
	}
	return bytes.Clone(ring[0].prefix[:]), nil
}

// signatureLength is the number of HMAC bytes in a token.
const signatureLength = 16

// Sign returns a token for a URL: the base64 of the signed bytes and of 128 bits of their HMAC for a purpose. The
// token is not encrypted.
func Sign(secret []byte, purpose string, signed []byte) string {
	return base64.RawURLEncoding.EncodeToString(append(bytes.Clone(signed), signature(secret, purpose, signed)...))
}

// Verify returns the bytes that Sign put into a token; length is their number. ok is false if the token was altered, or
// was signed with another secret or for another purpose: the bytes are then not to be used.
func Verify(secret []byte, purpose, token string, length int) (signed []byte, ok bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(raw) != length+signatureLength || strings.ContainsAny(token, "\r\n") { // which decoding skips
		return nil, false
	}
	return raw[:length], hmac.Equal(raw[length:], signature(secret, purpose, raw[:length]))
}

// signature returns the first signatureLength bytes of the HMAC-SHA256 of a purpose, a space and the signed bytes.
func signature(secret []byte, purpose string, signed []byte) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(purpose + " "))
	h.Write(signed)
	return h.Sum(nil)[:signatureLength]
}
