package domain

import (
	"crypto/rand"
	"encoding/base64"
	"regexp"
	"strings"
	"testing"
)

// TestAPIKeys: a new key has the documented form, which names its cell, and a checksum that needs no
// secret.
func TestAPIKeys(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^papi_[0-9A-Za-z]{40}$`)
	seen := map[string]bool{}
	for number := range 80 {
		c := Cell{number, 80}
		key, err := NewAPIKey(c)
		if err != nil || !form.MatchString(key) || key[5:7] != c.Code() || !MayBeAPIKey(key) || APIKeyPrefix(key) != key[:13] || seen[key[7:13]] {
			t.Fatalf("%q of %v (%v)", key, c, err)
		}
		seen[key[7:13]] = true
		for _, text := range []string{key, key[:13]} {
			if got := (Cell{3, 80}).OfKey(text); got != c {
				t.Errorf("%s is of %v", text, got)
			}
		}
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

// TestParseCell: codes count in base62, and are those of the cells that there are.
func TestParseCell(t *testing.T) {
	t.Parallel()
	for code, number := range map[string]int{"00": 0, "01": 1, "0A": 10, "0z": 61, "10": 62, "zz": 3843} {
		c, err := ParseCell(code, 3844)
		if err != nil || c != (Cell{number, 3844}) || c.Code() != code {
			t.Errorf("%s: %v, %v", code, c, err)
		}
	}
	for _, test := range []struct {
		code  string
		count int
		says  string
	}{
		{"00", 0, "between 1 and 3844"}, {"00", 3845, "between 1 and 3844"}, {"01", 1, "00 to 00"}, {"0A", 10, "00 to 09"},
		{"", 2, "two characters of"}, {"0", 2, "two characters of"}, {"000", 2, "two characters of"}, {"0-", 4, "two characters of"}, {"-z", 62, "two characters of"},
	} {
		if c, err := ParseCell(test.code, test.count); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s of %d: %v, %v", test.code, test.count, c, err)
		}
	}
}

// TestCellOfNoCode: a key that names no cell is of the first.
func TestCellOfNoCode(t *testing.T) {
	t.Parallel()
	for _, key := range []string{
		"papi_04" + strings.Repeat("0", 38), "papi_zz345678", "papi_", "papi_0", "papi_-1", "papi_1-", "pk_demo_all", "pk_01234567", "",
	} {
		if got := (Cell{2, 4}).OfKey(key); got != (Cell{0, 4}) {
			t.Errorf("%q is of %v", key, got)
		}
	}
}
