package mcp

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/domain"
)

// escapeInvisible escapes control and invisible characters in the strings of a JSON text. Some strings, such as the
// subject of a mail, are from outsiders, and must not contain instructions that an agent reads and people do not see
// (decisions 12). An escape such as \u{202e} is part of the string, so it is visible in the text and after decoding.
func escapeInvisible(body []byte) []byte {
	var out []byte
	copied := 0 // the length of the part of body that is in out
	for i := 0; i < len(body); i++ {
		if body[i] != '"' {
			continue
		}
		n, mayHide := scanString(body[i:])
		if mayHide {
			out = appendEscaped(append(out, body[copied:i]...), body[i:i+n])
			copied = i + n
		}
		i += n - 1
	}
	if copied == 0 {
		return body
	}
	return append(out, body[copied:]...)
}

// scanString returns the length of the JSON string at the start of body, and whether it may encode control or invisible
// characters. Most do not and skip appendEscaped.
func scanString(body []byte) (n int, mayHide bool) {
	for i := 1; i < len(body); i++ {
		switch c := body[i]; {
		case c == '"':
			return i + 1, mayHide
		case c == '\\' && i+1 < len(body):
			i++
			mayHide = mayHide || bytes.IndexByte([]byte(`ubfr`), body[i]) >= 0 // not \n, \t, \", \\ and \/
		case c >= 0x7f:
			mayHide = true
		}
	}
	return len(body), mayHide
}

// appendEscaped appends a JSON string with its invisible characters escaped. It appends invalid JSON unchanged.
func appendEscaped(out, quoted []byte) []byte {
	text, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil {
		return append(out, quoted...)
	}
	escaped := domain.VisibleLines(string(text))
	if escaped == string(text) {
		return append(out, quoted...)
	}
	if appended, err := jsontext.AppendQuote(out, escaped); err == nil {
		return appended
	}
	return append(out, quoted...)
}
