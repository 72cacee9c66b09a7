package domain_test

import (
	"testing"

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
