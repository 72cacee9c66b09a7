package domain_test

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"partnerapi/domain"
)

const usersByEmail = `["users.list",{"sort":"email"}]`

// TestCursorShowsNothing: neither a sort key nor an id can be read in a cursor, two of
// one position have nothing in common, and those of two emails are of one length.
func TestCursorShowsNothing(t *testing.T) {
	sealer := domain.CursorSealer{Secret: []byte("secret")}
	seen := map[string]bool{}
	for _, key := range []string{"anna@example.com", "anna.maria.example-example@mail.example.com", "184467", ""} {
		p := domain.Position{Key: key, ID: "019b7740-0000-7000-8000-000000000001"}
		one, two := sealer.Seal(usersByEmail, p), sealer.Seal(usersByEmail, p)
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
			t.Errorf("%q is twice %s", key, one)
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

// TestCursorsOfBefore: cursors that were handed out before they were encrypted open,
// for their own list only, one whose first byte is that of the new form too.
func TestCursorsOfBefore(t *testing.T) {
	sealer := domain.CursorSealer{Secret: []byte("a secret of the release before..")}
	const id = "019b7740-0000-7000-8000-000000000001"
	for _, c := range []struct {
		binding, cursor string
		want            domain.Position
	}{
		{
			usersByEmail,
			"PrDG7MEpaug4ZD_Q_1DuQnsiayI6ImFubmFAZXhhbXBsZS5jb20iLCJpIjoiMDE5Yjc3NDAtMDAwMC03MDAwLTgwMDAtMDAwMDAwMDAwMDAxIn0",
			domain.Position{Key: "anna@example.com", ID: id},
		},
		{`["events.list",{}]`, "yyfAEoLjJKJpzoL8hWidensiayI6IjE4NDQ2NyIsImkiOiIifQ", domain.Position{Key: "184467"}},
		{
			usersByEmail,
			"AQNzlncN5SuEAMoiyhe9CHsiayI6IjE4MSIsImkiOiIwMTliNzc0MC0wMDAwLTcwMDAtODAwMC0wMDAwMDAwMDAwMDEifQ",
			domain.Position{Key: "181", ID: id},
		},
	} {
		if got, err := sealer.Open(c.binding, c.cursor); err != nil || got != c.want {
			t.Errorf("%s opens as %+v, %v", c.cursor, got, err)
		}
		if got, err := sealer.Open(c.binding+" ", c.cursor); err == nil {
			t.Errorf("%s opens for another list as %+v", c.cursor, got)
		}
		if got, err := sealer.Open(c.binding, c.cursor[:len(c.cursor)-2]); err == nil {
			t.Errorf("%s opens cut as %+v", c.cursor, got)
		}
		if again := sealer.Seal(c.binding, c.want); again == c.cursor || strings.Contains(again, c.cursor[22:]) {
			t.Errorf("%s is still made", c.cursor)
		}
	}
}

// BenchmarkCursor is what a page of a list pays: one cursor opened, one made.
func BenchmarkCursor(b *testing.B) {
	sealer := domain.CursorSealer{Secret: bytes.Repeat([]byte("s"), 32)}
	p := domain.Position{Key: "anna@example.com", ID: "019b7740-0000-7000-8000-000000000001"}
	cursor := sealer.Seal(usersByEmail, p)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := sealer.Open(usersByEmail, cursor); err != nil {
			b.Fatal(err)
		}
		sealer.Seal(usersByEmail, p)
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
