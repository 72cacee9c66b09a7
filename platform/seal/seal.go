// Package seal keeps secrets that others trust the service with: sealed by
// AES-256-GCM under an operator's key, so that the database alone reveals
// none of them (decisions 8.15). It signs the tokens in links, too.
package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
)

// A sealed value is a version, the key's id, and what
// cipher.NewGCMWithRandomNonce makes: a nonce, the ciphertext and its tag. The
// first two are authenticated with the context.
const (
	version    = 1
	idSize     = 8
	prefixSize = 1 + idSize
	keySize    = 32
)

var (
	// ErrNoKey says that there is no key to seal or open with.
	ErrNoKey = errors.New("there is no encryption key: make one with partnerapi encryption-key, and give it to serve, " +
		"work and this command by --encryption-key, or in PARTNERAPI_ENCRYPTION_KEY")
	// ErrOtherKey says that a value was sealed with another key.
	ErrOtherKey = errors.New("sealed with another encryption key")
	// ErrAltered says that a value is not as it was sealed, or was sealed for
	// another place.
	ErrAltered = errors.New("not as it was sealed: it was altered, or moved from another place")
)

// NewKey makes a key, in the text that ParseKeys reads.
func NewKey() string {
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails
	return base64.StdEncoding.EncodeToString(key)
}

// Context is what a value is sealed for: a kind of secret, without a colon, and the
// UUID of its row. A value that was sealed for another context can't be opened.
func Context(kind, id string) []byte { return []byte(kind + ":" + id) }

// key is one key.
type key struct {
	prefix [prefixSize]byte // of values that are sealed with it
	aead   cipher.AEAD
}

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

// authenticated is what is authenticated beside a value.
func (k key) authenticated(context []byte) []byte {
	return append(bytes.Clone(k.prefix[:]), context...)
}

// Seal seals a value for a context, with the current key.
func (k *Keys) Seal(plain, context []byte) ([]byte, error) {
	ring, err := k.ring()
	if err != nil {
		return nil, err
	}
	current := ring[0]
	return current.aead.Seal(bytes.Clone(current.prefix[:]), nil, plain, current.authenticated(context)), nil
}

// Open opens a value that was sealed for a context, with whichever of the keys it
// was sealed with. The error is ErrOtherKey, ErrAltered or ErrNoKey, or says it.
func (k *Keys) Open(sealed, context []byte) ([]byte, error) {
	ring, err := k.ring()
	if err != nil {
		return nil, err
	}
	if len(sealed) < prefixSize || sealed[0] != version {
		return nil, ErrAltered
	}
	for _, one := range ring {
		if bytes.Equal(sealed[:prefixSize], one.prefix[:]) {
			plain, err := one.aead.Open(nil, nil, sealed[prefixSize:], one.authenticated(context))
			if err != nil {
				return nil, ErrAltered
			}
			return plain, nil
		}
	}
	return nil, fmt.Errorf("%w (%x)", ErrOtherKey, sealed[1:prefixSize])
}

// Reseal opens a value and seals it with the current key.
func (k *Keys) Reseal(sealed, context []byte) ([]byte, error) {
	plain, err := k.Open(sealed, context)
	if err != nil {
		return nil, err
	}
	return k.Seal(plain, context)
}

// Prefix is what values begin with that are sealed with the current key.
func (k *Keys) Prefix() ([]byte, error) {
	ring, err := k.ring()
	if err != nil {
		return nil, err
	}
	return bytes.Clone(ring[0].prefix[:]), nil
}
