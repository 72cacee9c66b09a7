package domain_test

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"partnerapi/domain"
)

const usersByEmail = `users.list /clients/cli_01h455vb4pex5vsknk084sn02q/users?sort=email`

// TestCursorShowsNothing: neither a sort key nor an id can be read in a cursor, those of one
// position are the same in one list and have nothing in common in two, and those of two
// emails are of one length.
func TestCursorShowsNothing(t *testing.T) {
	sealer := domain.CursorSealer{Secret: []byte("secret")}
	seen := map[string]bool{}
	for _, key := range []string{"anna@example.com", "anna.maria.example-example@mail.example.com", "184467", ""} {
		p := domain.Position{Key: key, ID: "019b7740-0000-7000-8000-000000000001"}
		one, two := sealer.Seal(usersByEmail, p), sealer.Seal(usersByEmail+"&q=a", p)
		raw, err := base64.RawURLEncoding.DecodeString(one)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{key, p.ID} {
			if secret != "" && (bytes.Contains(raw, []byte(secret)) || strings.Contains(one, secret)) {
				t.Errorf("%q can be read in %q", secret, raw)
			}
		}
		if one[2:20] == two[2:20] || one[len(one)-40:] == two[len(two)-40:] {
			t.Errorf("%q is %s in two lists", key, one)
		}
		if again := sealer.Seal(usersByEmail, p); again != one {
			t.Errorf("%q is %s, then %s", key, one, again)
		}
		if len(key) > 6 && len(raw)-1-12-16 != 128 {
			t.Errorf("a cursor of %d characters has %d bytes", len(key), len(raw))
		}
		seen[one], seen[two] = true, true
	}
	if len(seen) != 8 {
		t.Errorf("%d different cursors", len(seen))
	}
}

// TestCursorOfAnother: a cursor of another secret opens where that is one of the others,
// and none is sealed with it.
func TestCursorOfAnother(t *testing.T) {
	theirs := domain.CursorSealer{Secret: []byte("theirs")}
	p := domain.Position{Key: "k", ID: "019b7740-0000-7000-8000-000000000001"}
	ours := domain.CursorSealer{Secret: []byte("ours"), Others: func() [][]byte { return [][]byte{[]byte("third"), theirs.Secret} }}
	if got, err := ours.Open(usersByEmail, theirs.Seal(usersByEmail, p)); err != nil || got != p {
		t.Errorf("another's cursor opens as %v, %v", got, err)
	}
	if _, err := theirs.Open(usersByEmail, ours.Seal(usersByEmail, p)); err == nil {
		t.Error("a cursor is sealed with another's secret")
	}
	fourth := domain.CursorSealer{Secret: []byte("fourth")}
	if _, err := ours.Open(usersByEmail, fourth.Seal(usersByEmail, p)); err == nil {
		t.Error("a cursor of an unknown secret opens")
	}
}
