package domain

import (
	"strings"
	"testing"
)

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
		{"", 2, "two of"}, {"0", 2, "two of"}, {"000", 2, "two of"}, {"0-", 4, "two of"}, {"-z", 62, "two of"},
	} {
		if c, err := ParseCell(test.code, test.count); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s of %d: %v, %v", test.code, test.count, c, err)
		}
	}
}

// TestKeysOfCells: a new key names its cell, and one that names none is of the first.
func TestKeysOfCells(t *testing.T) {
	t.Parallel()
	for number := range 80 {
		c := Cell{number, 80}
		key, err := NewAPIKey(c)
		if err != nil || !MayBeAPIKey(key) || key[5:7] != c.Code() {
			t.Fatalf("%q of %v (%v)", key, c, err)
		}
		asked := Cell{3, 80}
		if got := asked.OfKey(key); got != c {
			t.Errorf("%s is of %v", key, got)
		}
		if got := asked.OfKey(APIKeyPrefix(key)); got != c {
			t.Errorf("the prefix of %s is of %v", key, got)
		}
	}
	for _, key := range []string{
		"papi_04" + strings.Repeat("0", 38), "papi_zz345678", "papi_", "papi_0", "papi_-1", "papi_1-", "pk_demo_all", "pk_01234567", "",
	} {
		if got := (Cell{2, 4}).OfKey(key); got != (Cell{0, 4}) {
			t.Errorf("%q is of %v", key, got)
		}
	}
}
