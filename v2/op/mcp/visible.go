package mcp

import (
	"bytes"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/domain"
)

// escapeInvisible escapes control and invisible characters in the strings of a JSON text. Some strings, such as the
// subject of an email, are from outsiders, and must not contain instructions that an agent reads and people do not see
// (decisions 12). An escape such as \u{202e} is part of the string, so it is visible in the text and after decoding.
func escapeInvisible(body []byte) []byte {
	if !bytes.ContainsFunc(body, mayHide) {
		return body
	}
	var out []byte
	copied := 0 // the length of the part of body that is in out
	dec := jsontext.NewDecoder(bytes.NewReader(body), asSent)
	for {
		from := dec.InputOffset()
		token, err := dec.ReadToken()
		if err != nil { // the end
			return append(out, body[copied:]...)
		}
		if read := body[from:dec.InputOffset()]; token.Kind() != '"' || !bytes.ContainsFunc(read, mayHide) {
			continue
		}
		from += int64(bytes.IndexByte(body[from:], '"'))
		if escaped := domain.VisibleLines(token.String()); escaped != token.String() {
			out, _ = jsontext.AppendQuote(append(out, body[copied:from]...), escaped) // never fails for UTF-8
			copied = int(dec.InputOffset())
		}
	}
}

// mayHide reports whether a character of a JSON string may be, or begin, one to escape. Letters of Latin script never
// are.
func mayHide(r rune) bool { return r == '\\' || r >= 0x7f && !unicode.Is(unicode.Latin, r) }
