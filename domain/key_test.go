package domain

import (
	"crypto/rand"
	"encoding/base64"
	"regexp"
	"strings"
	"testing"
)

// TestAPIKeys: a new key has the documented form, whose checksum needs no secret.
func TestAPIKeys(t *testing.T) {
	form := regexp.MustCompile(`^papi_00[0-9A-Za-z]{38}$`)
	seen := map[string]bool{}
	for range 200 {
		key, err := NewAPIKey(Cell{0, 1})
		if err != nil || !form.MatchString(key) || !MayBeAPIKey(key) || APIKeyPrefix(key) != key[:13] || seen[key[:13]] {
			t.Fatalf("%q (%v)", key, err)
		}
		seen[key[:13]] = true
		for i := range key { // each single wrong character is found
			for _, other := range []byte{'0', 'z', '_'} {
				wrong := key[:i] + string(other) + key[i+1:]
				if wrong != key && MayBeAPIKey(wrong) {
					t.Fatalf("%q passes for %q", wrong, key)
				}
			}
		}
	}
}

// TestMayBeAPIKey: known checksums, keys of before, and what is none.
func TestMayBeAPIKey(t *testing.T) {
	old := make([]byte, 32)
	_, _ = rand.Read(old)
	secret := base64.RawURLEncoding.EncodeToString(old)
	for text, want := range map[string]bool{
		// By Python's binascii.crc32: 662668069 and 2168803803.
		"papi_" + strings.Repeat("0", 34) + "0iqUEf": true,
		"papi_" + strings.Repeat("z", 34) + "2Mm4wV": true,
		"papi_" + strings.Repeat("0", 40):            false,
		"pk_" + secret:                               true,
		"pk_" + secret[1:]:                           false,
		"pk_" + secret + "A":                         false,
		"pk_" + secret[1:] + "=":                     false,
		"pk_" + "\n" + secret[1:]:                    false,
		"pk_demo_all":                                true,
		"pk_demo_readonly":                           true,
		"pk_demo_":                                   false,
		"pk_demo_All":                                false,
		"":                                           false,
		"papi_":                                      false,
		"pk_":                                        false,
		"good":                                       false,
		" pk_demo_all":                               false,
	} {
		if got := MayBeAPIKey(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestAPIKeyPrefix: eight characters behind the start are shown.
func TestAPIKeyPrefix(t *testing.T) {
	for key, want := range map[string]string{
		"papi_123456789": "papi_12345678", "pk_123456789": "pk_12345678", "pk_demo_all": "pk_demo_all",
		"papi_1234567": "", "pk_": "",
	} {
		if got := APIKeyPrefix(key); got != want {
			t.Errorf("%s: %q", key, got)
		}
	}
}
