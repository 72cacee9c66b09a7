package usage

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// clean is a user agent as it is kept: at most maxAgent bytes of valid UTF-8,
// without what does not print, such as control characters. A text that is clean
// already is returned as it is, without an allocation.
func clean(agent string) string {
	if len(agent) > maxAgent {
		agent = agent[:maxAgent]
	}
	for i, r := range agent {
		if bad(r, agent[i:]) {
			return strings.TrimSpace(scrub(agent))
		}
	}
	return strings.TrimSpace(agent)
}

// bad reports whether r, with which the text begins, is left out.
func bad(r rune, text string) bool {
	if r == utf8.RuneError {
		_, size := utf8.DecodeRuneInString(text)
		return size == 1 // a byte that is no UTF-8, or the rest of a character that was cut
	}
	return !unicode.IsPrint(r)
}

func scrub(text string) string {
	var out strings.Builder
	for i, r := range text {
		if !bad(r, text[i:]) {
			out.WriteRune(r)
		}
	}
	return out.String()
}
