package domain

import (
	"crypto/rand"
	"encoding/base64"
	"hash/crc32"
	"math/big"
	"strings"
)

// The parts of an API key (decisions 1.7): papi_, keyRandom digits of base62, and keyChecksum digits of their checksum.
// The first two digits are the code of the cell, the others are random.
const (
	keyStart    = "papi_"
	keyRandom   = 34
	keyChecksum = 6
)

// keyShown is the number of characters after the start of a key that are stored in clear.
const keyShown = 8

// oldKeyStart is the start of keys from before there was a checksum: 32 random bytes in base64url follow it.
// demoKeyStart is the start of the keys of the demonstration.
const (
	oldKeyStart  = "pk_"
	demoKeyStart = "pk_demo_"
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// NewAPIKey returns a new API key of a cell.
func NewAPIKey(cell Cell) (string, error) {
	random := make([]byte, keyRandom)
	for i := copy(random, cell.Code()); i < keyRandom; i++ {
		digit, err := rand.Int(rand.Reader, big.NewInt(int64(len(base62))))
		if err != nil {
			return "", err
		}
		random[i] = base62[digit.Int64()]
	}
	return keyStart + string(random) + checksumOf(random), nil
}

// checksumOf returns the CRC-32 (IEEE) of a key's random digits, in base62.
func checksumOf(random []byte) string {
	var digits [keyChecksum]byte
	sum := crc32.ChecksumIEEE(random)
	for i := range digits {
		digits[keyChecksum-1-i] = base62[sum%uint32(len(base62))]
		sum /= uint32(len(base62))
	}
	return string(digits[:])
}

// MayBeAPIKey reports whether a text has the form of an API key, with a correct checksum. Old keys and those of the
// demonstration have no checksum.
func MayBeAPIKey(text string) bool {
	if digits, ok := strings.CutPrefix(text, keyStart); ok {
		return len(digits) == keyRandom+keyChecksum && strings.Trim(digits, base62) == "" &&
			checksumOf([]byte(digits[:keyRandom])) == digits[keyRandom:]
	}
	if name, ok := strings.CutPrefix(text, demoKeyStart); ok && len(name) <= 16 { // a longer one may be an old key
		return name != "" && strings.Trim(name, "0123456789abcdefghijklmnopqrstuvwxyz") == ""
	}
	secret, ok := strings.CutPrefix(text, oldKeyStart)
	if !ok || len(secret) != base64.RawURLEncoding.EncodedLen(32) {
		return false
	}
	_, err := base64.RawURLEncoding.Strict().DecodeString(secret)
	return err == nil && !strings.ContainsAny(secret, "\r\n") // decoding ignores these
}

// APIKeyPrefix returns the part of a key that is stored in clear and shown in lists: its start, such as papi_, and
// keyShown characters. If the text is too short, it returns "".
func APIKeyPrefix(key string) string {
	shown := len(oldKeyStart) + keyShown
	if strings.HasPrefix(key, keyStart) {
		shown = len(keyStart) + keyShown
	}
	if len(key) < shown {
		return ""
	}
	return key[:shown]
}
