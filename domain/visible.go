package domain

import (
	"fmt"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Visible returns an untrusted text on one line, for people and agents: every control and invisible character, and
// every byte that is not UTF-8, is replaced with an escape such as \u{202e}, \x{ff} or \n.
func Visible(text string) string { return escapeText(text, Escaper{}) }

// VisibleLines escapes an untrusted text as Visible does, but keeps newlines and tabs.
func VisibleLines(text string) string { return escapeText(text, Escaper{Lines: true}) }

// escapeText returns the whole text, escaped by e.
func escapeText(text string, e Escaper) string {
	out, left := e.Append(nil, []byte(text))
	return string(e.AppendRest(out, []byte(text)[len(text)-left:]))
}

// Escaper makes an untrusted text visible, which may come in pieces. It escapes the control characters C0 and C1,
// characters that change the direction of text, joiners, zero-width spaces, tags, variation selectors, fillers,
// unassigned characters, and the separators of lines and paragraphs. A variation selector for the form of an emoji
// (U+FE0E, U+FE0F) stays after a visible character. The joiner of emoji (U+200D) is always escaped, because it can hide
// text.
type Escaper struct {
	// JSON treats the text as JSON, and writes the escapes of JSON strings.
	JSON bool
	// Lines leaves newlines and tabs as they are.
	Lines bool

	afterVisible bool // whether the last character was visible
}

// Append escapes a piece of text, and appends it to b. left is the number of bytes at the end of the piece that are not
// appended, because they begin a character whose rest is in the next piece.
func (e *Escaper) Append(b, text []byte) (out []byte, left int) {
	for len(text) > 0 {
		if c := text[0]; ' ' <= c && c < 0x7f {
			b, text, e.afterVisible = append(b, c), text[1:], true
			continue
		}
		if !utf8.FullRune(text) {
			return b, len(text)
		}
		r, n := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && n == 1:
			b, e.afterVisible = e.escapeByte(b, text[0]), false
		case !e.isVisible(r):
			b, e.afterVisible = e.escape(b, r), false
		default:
			b = append(b, text[:n]...)
			e.afterVisible = r > ' ' && !unicode.Is(unicode.Variation_Selector, r) // not so a newline, tab or selector
		}
		text = text[n:]
	}
	return b, 0
}

// AppendRest appends escapes of the bytes that Append left at the end of a text.
func (e *Escaper) AppendRest(b, rest []byte) []byte {
	for _, c := range rest {
		b = e.escapeByte(b, c)
	}
	return b
}

// isVisible reports whether a character is not escaped. A selector of an emoji stays after a visible character.
func (e *Escaper) isVisible(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return e.Lines
	case r == '\ufe0e' || r == '\ufe0f':
		return e.afterVisible
	}
	const brailleBlank = '\u2800'
	return unicode.IsGraphic(r) && r != brailleBlank &&
		!unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// escape appends the escape of a character: \n, \r, \t or \u{…}; in JSON \u with four digits, twice for a character
// that is a surrogate pair in UTF-16.
func (e *Escaper) escape(b []byte, r rune) []byte {
	if e.JSON {
		if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
			return fmt.Appendf(b, `\u%04x\u%04x`, high, low)
		}
		return fmt.Appendf(b, `\u%04x`, r)
	}
	switch r {
	case '\n':
		return append(b, `\n`...)
	case '\r':
		return append(b, `\r`...)
	case '\t':
		return append(b, `\t`...)
	}
	return fmt.Appendf(b, `\u{%x}`, r)
}

// escapeByte appends the escape of a byte that is not UTF-8: \x{…}, or the replacement character in JSON, which has no
// escape for bytes.
func (e *Escaper) escapeByte(b []byte, c byte) []byte {
	if e.JSON {
		return append(b, `\ufffd`...)
	}
	return fmt.Appendf(b, `\x{%02x}`, c)
}
