package usage

import (
	"strings"
	"unicode"
)

// clean is a user agent as it is kept: at most maxAgent bytes of valid UTF-8,
// without what does not print, such as control characters. A text that is clean
// already is returned as it is, without an allocation.
func clean(agent string) string {
	if len(agent) > maxAgent {
		agent = agent[:maxAgent]
	}
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(agent, "")))
}
