package domain

import (
	"net/mail"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// texts returns the values of an enumeration, as its method Values lists them.
func texts[T ~string](values ...T) []string {
	list := make([]string, len(values))
	for i, value := range values {
		list[i] = string(value)
	}
	return list
}

// SortKey is what names are compared and sorted by, in byte order: the text in
// NFC, case-folded, with the white space around it removed and every white space
// inside it as one space (decisions 2.8). It is made here and not in the
// database, whose lower() depends on its locale.
func SortKey(text string) string {
	if isASCII(text) {
		text = strings.ToLower(text)
	} else {
		text = norm.NFC.String(cases.Fold().String(norm.NFD.String(text)))
	}
	return strings.Join(strings.Fields(text), " ")
}

// CleanName is a name as it is stored: without the white space around it.
func CleanName(text string) string { return strings.TrimSpace(text) }

// CheckName says what is wrong with a name that CleanName made, in words for
// callers; empty for a good name. The empty text is one.
func CheckName(name string) string {
	visible := name == ""
	for _, r := range name {
		if unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp) {
			return "must not hold control characters"
		}
		visible = visible || isVisible(r)
	}
	if !visible {
		return "must have a visible character"
	}
	return ""
}

// MaxEmail is the greatest length of an email address, in characters.
const MaxEmail = 254

// maxLocal is the greatest length of what stands before the @, in bytes (RFC
// 5321).
const maxLocal = 64

// hosts turns domains into their IDNA form as a resolver does, and refuses what
// no host can be called.
var hosts = idna.New(
	idna.MapForLookup(), idna.Transitional(false), idna.BidiRule(),
	idna.StrictDomainName(true), idna.VerifyDNSLength(true),
)

// CleanEmail returns an email address as it is stored and compared: in lower
// case, the domain in its IDNA form (decisions 2.8). It is false for a text that
// is no plain address of a named host, or that holds white space or invisible
// characters.
func CleanEmail(text string) (string, bool) {
	if len(text) > MaxEmail*utf8.UTFMax {
		return "", false
	}
	for _, r := range text {
		if !isVisible(r) {
			return "", false
		}
	}
	parsed, err := mail.ParseAddress(text)
	if err != nil || parsed.Name != "" || parsed.Address != text {
		return "", false
	}

	at := strings.LastIndexByte(text, '@')
	local := norm.NFC.String(strings.ToLower(text[:at]))
	host, err := hosts.ToASCII(text[at+1:])
	if err != nil || len(local) > maxLocal || !strings.Contains(strings.TrimSuffix(host, "."), ".") {
		return "", false
	}

	email := local + "@" + strings.TrimSuffix(host, ".")
	return email, utf8.RuneCountInString(email) <= MaxEmail
}

// isVisible reports whether a reader sees the character.
func isVisible(r rune) bool {
	const brailleBlank = '\u2800'
	return unicode.IsGraphic(r) && !unicode.IsSpace(r) && r != brailleBlank && r != utf8.RuneError &&
		!unicode.In(r, unicode.Zs, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
