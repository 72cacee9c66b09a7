package domain

import (
	"fmt"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Visible returns a text from outside as it is shown to people and agents, on one
// line: with an escape such as \u{202e}, \x{ff} or \n instead of every control
// and invisible character, and of every byte that is not UTF-8.
func Visible(text string) string { return visible(text, Escaper{}) }

// VisibleLines is Visible for a text of several lines: newlines and tabs stay.
func VisibleLines(text string) string { return visible(text, Escaper{Lines: true}) }

func visible(text string, e Escaper) string {
	out, left := e.Append(nil, []byte(text))
	return string(e.AppendRest(out, []byte(text)[len(text)-left:]))
}

// Escaper makes text from outside visible, which may come in pieces. It escapes the
// control characters C0 and C1, characters that change the direction of text, joiners,
// zero-width spaces, tags, variation selectors, fillers, unassigned characters, and
// the separators of lines and paragraphs. A variation selector that chooses between
// the forms of an emoji (U+FE0E, U+FE0F) stays after a visible character. The joiner
// of emoji (U+200D) is escaped everywhere: it is also what hides text.
type Escaper struct {
	// JSON treats the text as JSON, and writes the escapes of JSON strings.
	JSON bool
	// Lines leaves newlines and tabs as they are.
	Lines bool

	plain bool // the character before was a visible one
}

// Append appends a piece of text to b. left is the number of bytes at its end that are
// not appended, because they begin a character whose rest is in the next piece.
func (e *Escaper) Append(b, text []byte) (out []byte, left int) {
	for len(text) > 0 {
		if c := text[0]; ' ' <= c && c < 0x7f {
			b, text, e.plain = append(b, c), text[1:], true
			continue
		}
		if !utf8.FullRune(text) {
			return b, len(text)
		}
		r, n := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && n == 1:
			b, e.plain = e.invalid(b, text[0]), false
		case !e.visible(r):
			b, e.plain = e.escape(b, r), false
		default:
			b, e.plain = append(b, text[:n]...), !unicode.Is(unicode.Variation_Selector, r) && r > ' '
		}
		text = text[n:]
	}
	return b, 0
}

// AppendRest appends the bytes that Append left out of the last piece of a text.
func (e *Escaper) AppendRest(b, rest []byte) []byte {
	for _, c := range rest {
		b = e.invalid(b, c)
	}
	return b
}

// visible reports whether a character is shown as it is.
func (e *Escaper) visible(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return e.Lines
	case r == '\ufe0e' || r == '\ufe0f':
		return e.plain
	}
	const brailleBlank = '\u2800'
	return unicode.IsGraphic(r) && r != brailleBlank &&
		!unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

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

func (e *Escaper) invalid(b []byte, c byte) []byte {
	if e.JSON {
		return append(b, `\ufffd`...)
	}
	return fmt.Appendf(b, `\x{%02x}`, c)
}
