package domain

import (
	"net/mail"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/cases"
	"golang.org/x/text/language"
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
		text = norm.NFC.String(cases.Fold().String(strings.Map(capitalCherokee, norm.NFD.String(text))))
	}
	return strings.Join(strings.Fields(text), " ")
}

// capitalCherokee returns the capital letter of a small Cherokee letter, and other characters as they are. Cherokee is
// folded to capitals, which cases.Fold confuses: it folds small letters to capitals, and capitals to small letters.
func capitalCherokee(r rune) rune {
	if unicode.Is(unicode.Cherokee, r) {
		return unicode.ToUpper(r)
	}
	return r
}

// CleanName returns a name as it is stored: without the white space around it.
func CleanName(text string) string { return strings.TrimSpace(text) }

// CheckName returns, in words for callers, why a result of CleanName is not a valid name: it has control characters or
// separators of lines, or no visible character. It returns "" for a valid name, and for the empty text.
func CheckName(name string) string {
	visible := name == ""
	for _, r := range name {
		if unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp) {
			return "must not contain control characters"
		}
		visible = visible || isVisible(r)
	}
	if !visible {
		return "must contain a visible character"
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

// unicodeHosts converts parts of hosts to Unicode. It does not demand that they are names of hosts.
var unicodeHosts = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false))

// asciiLabel begins a label in the ASCII form of an internationalized host.
const asciiLabel = "xn--"

// CleanEmail returns an email address as it is stored: in lower case, with the host in its ASCII form (IDNA) and without
// a final dot (decisions 2.8). Addresses are compared by their EmailKey. CleanEmail returns false for a text that is not
// a plain address, whose host is invalid or has no dot, that has white space or invisible characters, or that is too
// long.
func CleanEmail(text string) (string, bool) {
	isInvisible := func(r rune) bool { return !isVisible(r) }
	if len(text) > MaxEmail*utf8.UTFMax || strings.ContainsFunc(text, isInvisible) {
		return "", false
	}
	text = norm.NFC.String(text) // before the checks: some characters become ASCII, such as U+037E, a semicolon
	parsed, err := mail.ParseAddress(text)
	if err != nil || parsed.Name != "" || parsed.Address != text {
		return "", false
	}

	at := strings.LastIndexByte(text, '@')
	local := lowerCase(text[:at])
	host, err := hosts.ToASCII(text[at+1:])
	if err != nil || len(local) > maxLocal || !strings.Contains(strings.TrimSuffix(host, "."), ".") {
		return "", false
	}

	email := local + "@" + strings.TrimSuffix(host, ".")
	return email, utf8.RuneCountInString(email) <= MaxEmail
}

// lowerCase returns a text in lower case and in NFC. It uses the full case mapping, which keeps the dot of U+0130:
// strings.ToLower makes it an ASCII i, so that an address would become another person's.
func lowerCase(text string) string {
	if isASCII(text) {
		return strings.ToLower(text)
	}
	return norm.NFC.String(cases.Lower(language.Und).String(norm.NFC.String(text)))
}

// EmailKey returns the key by which email addresses are compared and sorted, in byte order, of an address in the form of
// CleanEmail: the SortKey of its local part, and its host in Unicode (decisions 2.8). Hosts are not case-folded:
// straße.example and strasse.example are two.
func EmailKey(email string) string {
	if IsOwnKey(email) {
		return email
	}
	at := strings.LastIndexByte(email, '@')
	if at < 0 {
		return SortKey(email)
	}
	return SortKey(email[:at]) + "@" + unicodeHost(email[at+1:])
}

// IsOwnKey reports whether an address in the form of CleanEmail is one of which the EmailKey is known to be the address
// itself: one in ASCII without an internationalized host. Only for other addresses the database has a key.
func IsOwnKey(email string) bool { return isASCII(email) && !strings.Contains(email, asciiLabel) }

// unicodeHost returns a host, or a part of one, in Unicode. Labels that are not valid stay as they are.
func unicodeHost(host string) string {
	labels := strings.Split(host, ".")
	for i, label := range labels {
		if text, err := unicodeHosts.ToUnicode(label); err == nil && text != "" { // "xn--" alone would become nothing
			labels[i] = text
		}
	}
	return strings.Join(labels, ".")
}

// EmailTexts returns what the key of an address, or the address as it is stored, contains if the caller's text is a part
// of the address in one of its spellings: one of the results, of which the texts follow one another, with anything between
// them. A text without @ may be a part of the local part, which is case-folded, or of the host, which is not and which has
// two spellings.
func EmailTexts(text string) [][]string {
	text = strings.Join(strings.Fields(text), " ")
	folded, host, stored := SortKey(text), unicodeHost(text), lowerCase(text)
	at := strings.LastIndexByte(text, '@')
	switch {
	case at >= 0:
		folded = SortKey(text[:at]) + "@" + unicodeHost(text[at+1:])
		if folded != stored {
			return [][]string{{folded}, {stored}}
		}
	case folded != host || folded != stored:
		return [][]string{{folded, "@"}, {"@", host}, {stored}}
	}
	return [][]string{{folded}}
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
