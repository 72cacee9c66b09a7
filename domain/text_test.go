package domain_test

import (
	"strings"
	"testing"

	"partnerapi/domain"
)

func TestSortKey(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "Acme": "acme", "  Acme \t Corp\u00a0Ltd ": "acme corp ltd", "ÉCOLE": "école", "e\u0301cole": "école",
		"E\u0301COLE": "école", "Straße": "strasse", "ΣΊΣΥΦΟΣ": "σίσυφοσ", "a\u3000b": "a b", "\u212bngström": "ångström",
	} {
		got := domain.SortKey(text)
		if got != want {
			t.Errorf("the key of %q is %q, not %q", text, got, want)
		}
		if again := domain.SortKey(got); again != got {
			t.Errorf("the key of the key %q is %q", got, again)
		}
	}
}

func TestNames(t *testing.T) {
	const control, invisible = "must not hold control characters", "must have a visible character"
	for text, want := range map[string]string{
		"Acme": "", " Acme\n": "", "": "", "  ": "", "n\u0303": "", "👩‍🚀": "", "می\u200cخواهم": "",
		"a\nb": control, "a\tb": control, "a\u0085b": control, "a\u2028b": control, "\x7fa": control, "a\u0000": control,
		"\u200b": invisible, "\u2060\ufeff": invisible, "\u3164": invisible, "\u2800": invisible, "\u00ad": invisible,
		"\u200b \u200b": invisible, "\ufe0f": invisible,
	} {
		if got := domain.CheckName(domain.CleanName(text)); got != want {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
	}
	if got := domain.CleanName("\u00a0 A  b\u3000\n"); got != "A  b" {
		t.Errorf("the name is stored as %q", got)
	}
}

func TestEmails(t *testing.T) {
	for text, want := range map[string]string{
		"Ada.L+x@Example.COM": "ada.l+x@example.com", "a@MÜNCHEN.example": "a@xn--mnchen-3ya.example", "ÄÖ@example.com": "äö@example.com",
		"a@mu\u0308nchen.example": "a@xn--mnchen-3ya.example", "a@xn--mnchen-3ya.example": "a@xn--mnchen-3ya.example",
		"a@straße.example": "a@xn--strae-oqa.example", "o'neil@a-b.co": "o'neil@a-b.co", "e\u0301@x.example": "é@x.example",
	} {
		got, ok := domain.CleanEmail(text)
		if got != want || !ok {
			t.Errorf("%q is stored as %q, %t, not %q", text, got, ok, want)
		}
		if again, ok := domain.CleanEmail(got); again != got || !ok {
			t.Errorf("%q is then stored as %q, %t", got, again, ok)
		}
	}
	long := strings.Repeat("a", 64)
	for _, text := range []string{
		"", "@", "a", "a@", "@example.com", "a@b", "a@@example.com", "a@b@example.com", "a b@example.com", "a@exam ple.com", " a@example.com",
		"a@example.com ", "a@example.com\n", "a\u200b@example.com", "a@exa\u00admple.com", "a@example\u200b.com", "a\u00a0@example.com",
		"\ufeffa@example.com", "a\u202e@example.com", "a@.example.com", "a@example..com", "a@-example.com", "a@exa_mple.com", "a@[127.0.0.1]",
		"Ada <a@example.com>", "<a@example.com>", `"a b"@example.com`, "a@example.com (x)", ".a@example.com", "a.@example.com", "a..b@example.com",
		"a,b@example.com", long + "a@example.com", "a@" + strings.Repeat("b", 64) + ".com", "a@" + strings.Repeat("b.", 130) + "com",
		strings.Repeat("a", 1<<20) + "@example.com", "a@xn--a.example", "a\xff@example.com",
	} {
		if got, ok := domain.CleanEmail(text); ok {
			t.Errorf("%.60q is taken as %q", text, got)
		}
	}
}
