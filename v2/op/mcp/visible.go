package mcp

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/domain"
)

// visible returns JSON whose strings hold no control or invisible character: strangers
// write some of them, such as the subject of a mail, and an agent must not read in them
// what people do not see (decisions 12.1). An escape such as \u{202e} is part of the
// string, so it is seen in the text and after decoding.
func visible(body []byte) []byte {
	if !mayHide(body) {
		return body
	}
	out := make([]byte, 0, len(body)+64)
	for {
		begin := bytes.IndexByte(body, '"')
		if begin < 0 {
			return append(out, body...)
		}
		out, body = append(out, body[:begin]...), body[begin:]
		n := literal(body)
		out, body = appendVisible(out, body[:n]), body[n:]
	}
}

// mayHide reports whether JSON may hold what visible escapes.
func mayHide(body []byte) bool {
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case c >= 0x7f:
			return true
		case c == '\\' && i+1 < len(body):
			if i++; bytes.IndexByte([]byte(`ubfr`), body[i]) >= 0 {
				return true
			}
		}
	}
	return false
}

// literal is how long the string is that JSON begins with.
func literal(body []byte) int {
	for i := 1; i < len(body); i++ {
		switch body[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(body)
}

// appendVisible appends a string, as it is where nothing in it is hidden.
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
