package mcp

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/domain"
)

// visible escapes control and invisible characters in JSON strings: outsiders write some of them, such as the
// subject of a mail, and an agent must not read in them what people do not see (decisions 12.1). An escape such as
// \u{202e} is part of the string, so it is visible in the text and after decoding.
func visible(body []byte) []byte {
	var out []byte
	copied := 0 // of the body, into out
	for i := 0; i < len(body); i++ {
		if body[i] != '"' {
			continue
		}
		n, mayHide := scanString(body[i:])
		if mayHide {
			out = appendVisible(append(out, body[copied:i]...), body[i:i+n])
			copied = i + n
		}
		i += n - 1
	}
	if copied == 0 {
		return body
	}
	return append(out, body[copied:]...)
}

// scanString returns the length of the string at the start of JSON, and whether it may contain a character to
// escape; most do not, and skip the second pass.
func scanString(body []byte) (n int, mayHide bool) {
	for i := 1; i < len(body); i++ {
		switch c := body[i]; {
		case c == '"':
			return i + 1, mayHide
		case c == '\\' && i+1 < len(body):
			i++
			mayHide = mayHide || bytes.IndexByte([]byte(`ubfr`), body[i]) >= 0
		case c >= 0x7f:
			mayHide = true
		}
	}
	return len(body), mayHide
}

// appendVisible appends a string with its invisible characters escaped.
func appendVisible(out, quoted []byte) []byte {
	text, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil {
		return append(out, quoted...) // which the service did not write
	}
	shown := domain.VisibleLines(string(text))
	if shown == string(text) {
		return append(out, quoted...)
	}
	if longer, err := jsontext.AppendQuote(out, shown); err == nil {
		return longer
	}
	return append(out, quoted...)
}
