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

// texts returns the values of an enumeration as strings, for its method Values.
func texts[T ~string](values ...T) []string {
	list := make([]string, len(values))
	for i, value := range values {
		list[i] = string(value)
	}
	return list
}

// SortKey returns the key by which names are compared and sorted, in byte order: the text case-folded, in NFC, without
// the white space around it, and with one space for every run of white space in it (decisions 2.8). The database does
// not compute it, because its lower() depends on its locale.
func SortKey(text string) string {
	if isASCII(text) {
		text = strings.ToLower(text)
	} else {
		text = norm.NFC.String(cases.Fold().String(norm.NFD.String(text)))
	}
	return strings.Join(strings.Fields(text), " ")
}

// CleanName returns a name as it is stored: without the white space around it.
func CleanName(text string) string { return strings.TrimSpace(text) }

// CheckName returns, in words for callers, why a result of CleanName is not a valid name: it has control characters or
// separators of lines, or no visible character. It returns "" for a valid name, and for the empty text.
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

// maxLocal is the greatest length of the part before the @, in bytes (RFC 5321).
const maxLocal = 64

// hosts converts domains to their IDNA form as resolvers do, and returns an error for invalid names of hosts.
var hosts = idna.New(
	idna.MapForLookup(), idna.Transitional(false), idna.BidiRule(),
	idna.StrictDomainName(true), idna.VerifyDNSLength(true),
)

// CleanEmail returns an email address as it is stored and compared: in lower case, with the domain in its IDNA form and
// without a final dot (decisions 2.8). It returns false for a text that is not a plain address, whose domain is invalid
// or has no dot, that has white space or invisible characters, or that is too long.
func CleanEmail(text string) (string, bool) {
	isInvisible := func(r rune) bool { return !isVisible(r) }
	if len(text) > MaxEmail*utf8.UTFMax || strings.ContainsFunc(text, isInvisible) {
		return "", false
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

// isVisible reports whether a reader sees the character. A space and utf8.RuneError are not visible.
func isVisible(r rune) bool {
	const brailleBlank = '\u2800'
	return unicode.IsGraphic(r) && !unicode.IsSpace(r) && r != brailleBlank && r != utf8.RuneError &&
		!unicode.In(r, unicode.Zs, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// isASCII reports whether all bytes of the text are ASCII characters.
func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
}

// Cut returns the first n characters of a text.
func Cut(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}
