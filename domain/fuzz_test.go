package domain_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"partnerapi/domain"
)

// goodDigits are the digits of a valid id.
const goodDigits = "01h455vb4pex5vsknk084sn02q"

// fuzzForm holds that a text is a value's only where the value is shown by the very text: so
// nothing has two texts, and none of the wrong seeds is taken.
func fuzzForm[T comparable](f *testing.F, parse func(string) (T, error), show func(T) string) {
	f.Fuzz(func(t *testing.T, text string) {
		var none T
		v, err := parse(text)
		switch {
		case err != nil && v != none:
			t.Fatalf("%q is refused, yet gives %s", text, show(v))
		case err == nil && show(v) != text:
			t.Fatalf("%q is shown as %q", text, show(v))
		}
	})
}

func FuzzParseID(f *testing.F) {
	for _, v := range idVectors {
		f.Add("usr_" + v.suffix)
		f.Add("cli_" + v.suffix) // another kind
	}
	for _, wrong := range []string{
		"", "usr_", goodDigits, "USR_" + goodDigits, "usr_" + strings.ToUpper(goodDigits), "USR_" + strings.ToUpper(goodDigits),
		"usr-" + goodDigits, "usr_8" + goodDigits[1:], "usr_8zzzzzzzzzzzzzzzzzzzzzzzzz", "usr_zzzzzzzzzzzzzzzzzzzzzzzzzz", // beyond 128 bits
		"usr_" + goodDigits[1:], "usr_" + goodDigits + "0", "usr_" + goodDigits[:24] + "é", " usr_" + goodDigits[1:],
		"usr_" + goodDigits[:25] + "i", "usr_" + goodDigits[:25] + "l", "usr_" + goodDigits[:25] + "o", "usr_" + goodDigits[:25] + "u",
		"01890a5d-ac96-774b-bcce-b302099a8057", "usr_01890a5d-ac96-774b-bcce-b302099a8057",
	} {
		f.Add(wrong)
	}
	fuzzForm(f, domain.ParseID[domain.UserKind], domain.UserID.String)
}

func FuzzParseUUID(f *testing.F) {
	for _, v := range idVectors {
		f.Add(v.uuid)
	}
	for _, wrong := range []string{
		"", "01890A5D-AC96-774B-BCCE-B302099A8057", "01890a5dac96774bbcceb302099a8057", "{01890a5d-ac96-774b-bcce-b302099a8057}",
		"01890a5d-ac96-774b-bcce-b302099a805", "01890a5d-ac96-774b-bcce-b302099a80577", "01890a5d_ac96-774b-bcce-b302099a8057",
		"01890a5d-ac96-774b-bcce-b302099a805g", "usr_" + goodDigits,
	} {
		f.Add(wrong)
	}
	fuzzForm(f, domain.ParseUUID[domain.UserKind], domain.UserID.UUID)
}

func FuzzParseDate(f *testing.F) {
	for _, text := range []string{
		"0001-01-01", "1969-12-31", "1970-01-01", "2000-02-29", "2024-02-29", "9999-12-31",
		"", "0000-01-01", "0000-12-31", "-001-01-01", "1900-02-29", "2023-02-29", "2024-02-30", "2024-13-01", "10000-01-01",
		"2024", "2024-1-1", "2024-2-09", "2024-02-9", "2024-01-01T00:00:00Z", " 2024-02-01", "2024-02-01 ", "2024/02/01",
		"2024-02-01.5", "infinity",
	} {
		f.Add(text)
	}
	fuzzForm(f, domain.ParseDate, domain.Date.String)
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
