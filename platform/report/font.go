package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"codeberg.org/go-pdf/fpdf"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"golang.org/x/text/unicode/bidi"
	"golang.org/x/text/unicode/norm"
)

// Font is a TrueType font for the texts of a PDF.
type Font struct {
	data   []byte
	family string
	sfnt   *sfnt.Font
}

// maxFontSize is the maximum size of a font file in bytes.
const maxFontSize = 40 << 20

// LoadFont reads a TrueType font file (not a collection, and not OpenType with CFF outlines), for the scripts that the
// built-in font does not have.
func LoadFont(file string) (*Font, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("read the report font: %w", err)
	}
	if info.Size() > maxFontSize {
		return nil, fmt.Errorf("the report font %s is larger than %d MiB", file, maxFontSize>>20)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the report font: %w", err)
	}

	f, err := parseFont(data, "extra")
	if err == nil {
		err = f.check()
	}
	if err != nil {
		return nil, fmt.Errorf("the report font %s is not a TrueType font (.ttf): %w", file, err)
	}
	return f, nil
}

// parseFont parses a TrueType font. family is its name in the PDF library.
func parseFont(data []byte, family string) (*Font, error) {
	if !bytes.HasPrefix(data, []byte{0, 1, 0, 0}) { // version 1.0: TrueType outlines
		return nil, errors.New("it is another type of file")
	}
	parsed, err := sfnt.Parse(data)
	return &Font{data: data, family: family, sfnt: parsed}, err
}

// check writes a PDF with the first of a few characters, of several scripts, that the font has. It returns an error if
// the font has none of them, or if the PDF library panics, as it does with a font that it cannot read.
func (f *Font) check() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()

	l := newLayout(newTypefaces(f))
	for _, r := range "A0漢あ한अไשع" {
		if l.extra.width(r) >= 0 {
			l.extra.embed(l.pdf)
			l.pdf.SetFont(f.family, "", bodyStyle.size)
			l.pdf.Text(sideMargin, topMargin, string(r))
			return l.finish(io.Discard, &Document{})
		}
	}
	return errors.New("it contains no letters")
}

// builtIn returns the fonts for Latin, Greek and Cyrillic: regular and bold.
var builtIn = sync.OnceValue(func() (fonts [2]*Font) {
	for i, file := range [][]byte{goregular.TTF, gobold.TTF} {
		data, err := plainZero(file)
		if err == nil {
			fonts[i], err = parseFont(data, []string{"regular", "bold"}[i])
		}
		if err != nil {
			panic(err) // the fonts are a part of the program
		}
	}
	return fonts
})

// typeface is a font in one document, with a cache of its characters' widths. It is not safe for concurrent use.
type typeface struct {
	*Font
	buffer   sfnt.Buffer
	widths   map[rune]float64
	embedded bool
}

// embed adds the font to the document, once. The PDF contains only the characters of the font that the document uses.
func (t *typeface) embed(pdf *fpdf.Fpdf) {
	if t.embedded {
		return
	}
	t.embedded = true
	pdf.AddUTF8FontFromBytes(t.family, "", slices.Clone(t.data)) // the library may write into the bytes
}

// width returns the width of a character as a multiple of the font's size; -1 if the font does not have the character.
func (t *typeface) width(r rune) float64 {
	if width, known := t.widths[r]; known {
		return width
	}
	width := -1.0
	if glyph, err := t.sfnt.GlyphIndex(&t.buffer, r); err == nil && glyph != 0 {
		advance, err := t.sfnt.GlyphAdvance(&t.buffer, glyph, fixed.I(1000), font.HintingNone)
		if err == nil {
			width = float64(advance) / 64 / 1000 // a fixed.Int26_6, in 64ths, at the size 1000
		}
	}
	t.widths[r] = width
	return width
}

// typefaces are the fonts of one document. They are not safe for concurrent use.
type typefaces struct {
	regular, bold *typeface
	extra         *typeface // of WritePDF; nil for none
	// lacking is true once clean omitted or replaced a visible character that no font has.
	lacking bool
}

// newTypefaces returns the built-in fonts and extra, which may be nil.
func newTypefaces(extra *Font) *typefaces {
	face := func(f *Font) *typeface { return &typeface{Font: f, widths: map[rune]float64{}} }
	fonts := builtIn()
	t := &typefaces{regular: face(fonts[0]), bold: face(fonts[1])}
	if extra != nil {
		t.extra = face(extra)
	}
	return t
}

// style is the size, weight and color of a text.
type style struct {
	size  float64 // points
	bold  bool
	color color
}

// run is a part of a text in one typeface.
type run struct {
	face *typeface
	text string
}

// replacement replaces a character that no font has.
const replacement = '\uFFFD'

// maxRune is the last character that the PDF library can write.
const maxRune = 0xFFFF

// clean returns a text as one line of characters that the fonts have: a clean text. It replaces white space by spaces,
// and other characters that no font has by substitutes (see substitute). It drops control characters, invisible
// characters, and combining marks that no font has. It notes in lacking whether any font lacked a visible character.
func (t *typefaces) clean(text string) string {
	if isASCII(text) {
		return text
	}
	var b strings.Builder
	for _, r := range norm.NFC.String(text) {
		switch {
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r): // dropped
		case t.has(r):
			b.WriteRune(r)
		case unicode.Is(unicode.Mn, r): // dropped
			t.lacking = true
		default:
			t.lacking = true
			b.WriteRune(t.substitute(r))
		}
	}
	return b.String()
}

// isASCII reports whether a text has only printable ASCII characters.
func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}

// has reports whether the regular or the extra font has a character, and the PDF library can write it.
func (t *typefaces) has(r rune) bool {
	return r <= maxRune && (t.regular.width(r) >= 0 || t.extra != nil && t.extra.width(r) >= 0)
}

// substitute returns the substitute for a character that no font has: its base letter without marks, or replacement if
// no font has the base letter.
func (t *typefaces) substitute(r rune) rune {
	base, _ := utf8.DecodeRuneInString(norm.NFKD.String(string(r)))
	if t.has(base) {
		return base
	}
	return replacement
}

// face returns the typeface for a character of a clean text: extra if the regular font does not have it and extra has,
// bold if bold is true and the bold font has it, otherwise regular.
func (t *typefaces) face(r rune, bold bool) *typeface {
	if t.extra != nil && t.regular.width(r) < 0 && t.extra.width(r) >= 0 {
		return t.extra
	}
	if bold && t.bold.width(r) >= 0 {
		return t.bold
	}
	return t.regular
}

// runs splits a clean text into runs of one typeface each.
func (t *typefaces) runs(text string, bold bool) []run {
	var list []run
	for i, r := range text {
		face := t.face(r, bold)
		if len(list) == 0 || list[len(list)-1].face != face {
			list = append(list, run{face: face, text: text[i:i]})
		}
		last := &list[len(list)-1]
		last.text = text[i-len(last.text) : i+len(string(r))] // longer by r
	}
	return list
}

// visualOrder returns the characters of a clean text in visual order, from left to right: it reverses Hebrew and
// Arabic. It does not join Arabic letters. A text that the bidirectional algorithm refuses stays.
func visualOrder(text string) string {
	rightToLeft := func(r rune) bool {
		p, _ := bidi.LookupRune(r)
		return p.Class() == bidi.R || p.Class() == bidi.AL
	}
	if !strings.ContainsFunc(text, rightToLeft) {
		return text
	}
	var p bidi.Paragraph
	if _, err := p.SetString(text); err != nil {
		return text
	}
	order, err := p.Order()
	if err != nil {
		return text
	}

	runs := make([]string, order.NumRuns())
	for i := range runs {
		run := order.Run(i)
		if runs[i] = run.String(); run.Direction() == bidi.RightToLeft {
			runs[i] = bidi.ReverseString(runs[i])
		}
	}
	if order.Direction() == bidi.RightToLeft {
		slices.Reverse(runs)
	}
	return strings.Join(runs, "")
}

// millimeters is the length of a point in millimeters.
const millimeters = 25.4 / 72

// width returns the width of a clean text in millimeters.
func (t *typefaces) width(text string, s style) (sum float64) {
	for _, r := range text {
		sum += max(t.face(r, s.bold).width(r), 0) // -1 without a glyph
	}
	return sum * s.size * millimeters
}

// wrap cleans a text and breaks it into lines of at most a width in millimeters: at spaces, or within a word that is
// wider than a line. If maxLines is not 0 and the text has more lines, it cuts the text there, with an ellipsis.
func (t *typefaces) wrap(text string, width float64, s style, maxLines int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(t.clean(text)) {
		if line != "" && t.width(line+" "+word, s) <= width {
			line += " " + word
			continue
		}
		if line != "" {
			lines = append(lines, line)
		}
		for line = word; t.width(line, s) > width; {
			head, tail := t.breakWord(line, width, s)
			lines, line = append(lines, head), tail
		}
		if maxLines > 0 && len(lines) > maxLines {
			break
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	if maxLines > 0 && len(lines) > maxLines {
		lines = lines[:maxLines]
		lines[maxLines-1] = t.truncate(lines[maxLines-1]+" …", width, s)
	}
	return lines
}

// breakWord splits a word that is wider than a line: head is as much of it as fits into the width, but at least one
// character. If one of @.-_/ is in the second half of head, it splits after the last of them.
func (t *typefaces) breakWord(word string, width float64, s style) (head, tail string) {
	length, separator := 0, 0 // of head, and up to its last separator
	for i, r := range word {
		end := i + len(string(r))
		if i > 0 && t.width(word[:end], s) > width {
			break
		}
		length = end
		if strings.ContainsRune("@.-_/", r) {
			separator = end
		}
	}
	if separator > length/2 {
		length = separator
	}
	return word[:length], word[length:]
}

// truncate removes characters before the ellipsis with which a clean text ends, until the text fits into the width.
func (t *typefaces) truncate(text string, width float64, s style) string {
	letters := []rune(strings.TrimRight(strings.TrimSuffix(text, "…"), " "))
	for len(letters) > 0 && t.width(string(letters)+"…", s) > width {
		letters = letters[:len(letters)-1]
	}
	return strings.TrimRight(string(letters), " ") + "…"
}

// fit returns a text as one clean line of at most a width. A wider text is cut, with an ellipsis.
func (t *typefaces) fit(text string, width float64, s style) string {
	text = strings.Join(strings.Fields(t.clean(text)), " ")
	if t.width(text, s) <= width {
		return text
	}
	return t.truncate(text+"…", width, s)
}
