package domain_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"partnerapi/domain"
)

func FuzzParseID(f *testing.F) {
	for _, v := range idVectors {
		f.Add("usr_" + v.suffix)
		f.Add("cli_" + v.suffix)
	}
	f.Add("")
	f.Add("usr_")
	f.Add("usr_8zzzzzzzzzzzzzzzzzzzzzzzzz")
	f.Add("USR_01H455VB4PEX5VSKNK084SN02Q")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := domain.ParseID[domain.UserKind](text)
		if err != nil {
			if !id.IsZero() {
				t.Fatalf("%q is refused, yet gives %s", text, id)
			}
			return
		}
		if id.String() != text {
			t.Fatalf("%q is shown as %q: two texts for one id", text, id)
		}
		if again, err := domain.ParseUUID[domain.UserKind](id.UUID()); err != nil || again != id {
			t.Fatalf("%q as a UUID is %s, %v", text, again, err)
		}
	})
}

func FuzzParseUUID(f *testing.F) {
	for _, v := range idVectors {
		f.Add(v.uuid)
	}
	f.Add("")
	f.Add("01890A5D-AC96-774B-BCCE-B302099A8057")
	f.Add("01890a5dac96774bbcceb302099a8057")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := domain.ParseUUID[domain.UserKind](text)
		if err != nil {
			if !id.IsZero() {
				t.Fatalf("%q is refused, yet gives %s", text, id)
			}
			return
		}
		if id.UUID() != text {
			t.Fatalf("%q is shown as %q: two texts for one id", text, id.UUID())
		}
		if again, err := domain.ParseID[domain.UserKind](id.String()); err != nil || again != id {
			t.Fatalf("%q in v2's form is %s, %v", text, again, err)
		}
	})
}

func FuzzParseDate(f *testing.F) {
	for _, text := range []string{
		"0001-01-01", "1969-12-31", "1970-01-01", "2000-02-29", "2024-02-29", "9999-12-31",
		"", "0000-12-31", "1900-02-29", "2024-02-30", "2024-1-1", "2024-01-01T00:00:00Z", "10000-01-01",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		date, err := domain.ParseDate(text)
		if err != nil {
			if !date.IsZero() {
				t.Fatalf("%q is refused, yet gives %s", text, date)
			}
			return
		}
		if date.String() != text {
			t.Fatalf("%q is shown as %q: two texts for one day", text, date)
		}
		if again := domain.DateOf(date.Time()); again != date {
			t.Fatalf("%q starts on %s", text, again)
		}
		if there := date.AddDays(-400).AddDays(400); there.Before(date) {
			t.Fatalf("%q, back and forth, is %s", text, there)
		}
	})
}

// timeForm is RFC 3339's, without the range of its numbers.
var timeForm = regexp.MustCompile(`^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

func FuzzParseTime(f *testing.F) {
	for text := range goodTimes {
		f.Add(text)
	}
	for _, text := range badTimes {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at, err := domain.ParseTime(text)
		if err != nil {
			if !at.IsZero() {
				t.Fatalf("%q is refused, yet gives %s", text, at)
			}
			return
		}
		if !timeForm.MatchString(text) || at.Location() != time.UTC || at.Year() < 1 || at.Year() > 9999 {
			t.Fatalf("%q is taken as %s", text, at)
		}
		if again, err := domain.ParseTime(strings.ToLower(at.Format(time.RFC3339Nano))); err != nil || !again.Equal(at) {
			t.Fatalf("%q is %s, and that is %s, %v", text, at, again, err)
		}
	})
}
