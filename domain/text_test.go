package domain_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"partnerapi/domain"
)

func TestSortKey(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "Acme": "acme", "  Acme \t Corp\u00a0Ltd ": "acme corp ltd", "ÉCOLE": "école", "e\u0301cole": "école",
		"E\u0301COLE": "école", "Straße": "strasse", "ΣΊΣΥΦΟΣ": "σίσυφοσ", "a\u3000b": "a b", "\u212bngström": "ångström",
		"Ꭰᏸ": "ꭰᏸ", "ꭰᏸ": "ꭰᏸ",
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
	const control, invisible = "must not contain control characters", "must contain a visible character"
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
		"ΝΊΚΟΣ@example.com": "νίκος@example.com", "İzmir@example.com": "i̇zmir@example.com", "zo\u212a@example.com": "zok@example.com",
		"\u1fef@example.com": "`@example.com",
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
		strings.Repeat("a", 1<<20) + "@example.com", "a@xn--a.example", "a\xff@example.com", "a\u037eb@example.com",
	} {
		if got, ok := domain.CleanEmail(text); ok {
			t.Errorf("%.60q is taken as %q", text, got)
		}
	}
}

// keyLetters are letters whose case folding is another text than their lower case, and others of which the case mapping
// is not a letter for a letter.
var keyLetters = map[string]string{
	"ß": "ss", "ẞ": "ss", "ς": "σ", "ſ": "s", "µ": "μ", "ŉ": "ʼn", "ﬁ": "fi", "ﬃ": "ffi", "ﬀ": "ff", "ﬆ": "st", "և": "եւ",
	"ᾳ": "αι", "ᾼ": "αι", "ῃ": "ηι", "ῼ": "ωι", "ΐ": "ΐ", "ΰ": "ΰ", "ǰ": "ǰ", "ẖ": "ẖ", "ẚ": "aʾ", "ﬓ": "մն", "ﬗ": "մխ",
	"ϐ": "β", "ϑ": "θ", "ϕ": "φ", "ϖ": "π", "ϰ": "κ", "ϱ": "ρ", "ϵ": "ε", "ẛ": "ṡ", "\u1fbe": "ι", "İ": "i̇", "\u212a": "k",
	"\u212b": "å", "\u2126": "ω", "Ꭰ": "ꭰ", "ꭰ": "ꭰ", "Ά": "ά", "É": "é", "Ж": "ж", "Ǆ": "ǆ", "ǅ": "ǆ", "Ⅷ": "ⅷ", "Ⓐ": "ⓐ",
}

func TestEmailKey(t *testing.T) {
	for letter, folded := range keyLetters {
		keyOf := func(text string) string {
			email, ok := domain.CleanEmail("x" + text + "y@example.com")
			if !ok {
				t.Errorf("%q is not accepted", text)
			}
			return domain.EmailKey(email)
		}
		for _, text := range []string{letter, strings.ToUpper(letter), norm.NFD.String(letter), folded} {
			if got, want := keyOf(text), "x"+norm.NFC.String(folded)+"y@example.com"; got != want {
				t.Errorf("the key of %q is %q, not %q", text, got, want)
			}
		}
	}
	for text, want := range map[string]string{
		"a@xn--bcher-kva.example": "a@bücher.example", "a@xn--strae-oqa.example": "a@straße.example", "a@strasse.example": "a@strasse.example",
		"a@example.com": "a@example.com", "xn--a@example.com": "xn--a@example.com", "a@xn--a.example": "a@xn--a.example", "": "",
		"~0190": "~0190", "νίκος@xn--nxasmm1c.example": "νίκοσ@βόλος.example",
	} {
		if got := domain.EmailKey(text); got != want {
			t.Errorf("the key of %q is %q, not %q", text, got, want)
		}
	}
}

// TestEmailKeyOfAllLetters verifies for each character with a case or several forms that the key does not depend on
// these, that the key is its own key, and that no address becomes one in ASCII that is not canonically the same.
func TestEmailKeyOfAllLetters(t *testing.T) {
	for r := rune(1); r <= unicode.MaxRune; r++ {
		ofTables := r < '\u3000' || '\ufb00' <= r && r < '\ufe00' // where letters are that become several by their case
		if !ofTables && unicode.SimpleFold(r) == r && norm.NFC.IsNormalString(string(r)) {
			continue
		}
		email, ok := domain.CleanEmail("x" + string(r) + "y@example.com")
		if !ok {
			continue
		}
		checkKey(t, "x"+string(r)+"y")
		ascii := !strings.ContainsFunc(email, func(r rune) bool { return r > unicode.MaxASCII })
		if canonical := norm.NFC.String(string(r)); ascii && []rune(canonical)[0] > unicode.MaxASCII {
			t.Errorf("%U becomes %q", r, email)
		}
	}
}

// TestEmailKeyOfTexts is TestEmailKeyOfAllLetters for texts of several characters.
func TestEmailKeyOfTexts(t *testing.T) {
	letters := slices.Sorted(maps.Keys(keyLetters))
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.OneOf(rapid.SampledFrom(letters), rapid.StringMatching(`[a-zA-Z0-9.+\x{300}-\x{345}\x{370}-\x{58f}\x{1e00}-\x{1fff}]`))
		checkKey(t, "x"+strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "pieces"), "")+"y")
	})
}

// checkKey verifies the properties of the key of an address with a local part, if that is valid.
func checkKey(t interface{ Errorf(string, ...any) }, local string) {
	email, ok := domain.CleanEmail(local + "@example.com")
	if !ok {
		return
	}
	key := domain.EmailKey(email)
	if again := domain.EmailKey(key); again != key {
		t.Errorf("%q: the key of the key %q is %q", local, key, again)
	}
	if again, ok := domain.CleanEmail(email); !ok || again != email {
		t.Errorf("%q is stored as %q and then as %q", local, email, again)
	}
	if domain.IsOwnKey(email) && key != email {
		t.Errorf("%q has the key %q", email, key)
	}
	for _, spelling := range []string{
		norm.NFC.String(local), norm.NFD.String(local), cases.Lower(language.Und).String(local), cases.Upper(language.Und).String(local),
		cases.Fold().String(norm.NFD.String(local)),
	} {
		// U+0345 becomes a letter of its own by some mappings, unless it is ordered among the marks of its letter first.
		if strings.ContainsRune(norm.NFD.String(local), '\u0345') {
			spelling = norm.NFD.String(local)
		}
		if strings.ContainsRune(local, 'ı') { // its capital letter is I, and both are not equal
			spelling = strings.ReplaceAll(spelling, "I", "ı")
		}
		other, ok := domain.CleanEmail(spelling + "@example.com")
		if ok && domain.EmailKey(other) != key {
			t.Errorf("%q has the key %q, and %q has %q", local, key, spelling, domain.EmailKey(other))
		}
	}
}

func TestEmailTexts(t *testing.T) {
	for text, found := range map[string][]string{
		"νίκος": {"ΝΊΚΟΣ@example.com", "a@νίκος.example"}, "ΝΊΚΟΣ@ex": {"νίκος@example.com"}, "bücher": {"x@bücher.example", "bücher@x.example"},
		"XN--Bcher": {"x@bücher.example"}, "x@xn--bcher-kva.example": {"X@Bücher.example"}, "strasse": {"straße@x.example", "a@strasse.example"},
		"STRASSE": {"straße@x.example"}, "straße": {"strasse@x.example", "a@straße.example"}, "ν@xn--bch": {"ν@bücher.example"}, "B@EX": {"ab@example.com"},
	} {
		for _, address := range found {
			if !contains(t, address, text) {
				t.Errorf("%q is not found by %q", address, text)
			}
		}
	}
	for text, other := range map[string][]string{
		"straße.example": {"a@strasse.example"}, "strasse.example": {"a@straße.example"}, "izmir": {"İzmir@example.com"},
		"a@straße.example": {"a@strasse.example"}, "bücher": {"bucher@example.com"},
		"xn--": {"a@example.com"}, "XN--.": {"a@example.com"}, "a@xn--": {"a@example.com"}, // labels that are not complete
	} {
		for _, address := range other {
			if contains(t, address, text) {
				t.Errorf("%q is found by %q", address, text)
			}
		}
	}
}

// contains reports whether the text is a part of the address by domain.EmailTexts.
func contains(t *testing.T, address, text string) bool {
	email, ok := domain.CleanEmail(address)
	if !ok {
		t.Fatalf("%q is no address", address)
	}
	for _, texts := range domain.EmailTexts(text) {
		for i := range texts {
			texts[i] = regexp.QuoteMeta(texts[i])
		}
		if pattern := regexp.MustCompile(strings.Join(texts, ".*")); pattern.MatchString(email) || pattern.MatchString(domain.EmailKey(email)) {
			return true
		}
	}
	return false
}
