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

// Font is a TrueType font that texts are written in.
type Font struct {
	data   []byte
	family string
	sfnt   *sfnt.Font
}

// maxFontSize is the size in bytes up to which a font file is read.
const maxFontSize = 40 << 20

// LoadFont reads a TrueType font file (not a collection, and not OpenType with CFF
// outlines), for the scripts that the built-in font does not have.
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
		err = f.try()
	}
	if err != nil {
		return nil, fmt.Errorf("the report font %s is not a TrueType font (.ttf): %w", file, err)
	}
	return f, nil
}

func parseFont(data []byte, family string) (*Font, error) {
	if !bytes.HasPrefix(data, []byte{0, 1, 0, 0}) {
		return nil, errors.New("it is another kind of file")
	}
	parsed, err := sfnt.Parse(data)
	return &Font{data: data, family: family, sfnt: parsed}, err
}

// try returns an error if the PDF library cannot read the font, on which it panics.
func (f *Font) try() (err error) {
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
	return errors.New("it has no letters")
}

// builtIn are the fonts for Latin, Greek and Cyrillic: regular and bold.
var builtIn = sync.OnceValue(func() [2]*Font {
	regular, err := parseFont(goregular.TTF, "regular")
	if err != nil {
		panic(err) // the font is a part of the program
	}
	bold, err := parseFont(gobold.TTF, "bold")
	if err != nil {
		panic(err)
	}
	return [2]*Font{regular, bold}
})

// typeface is a font in one document, with a cache of its characters' widths. It is not
// safe for concurrent use.
type typeface struct {
	*Font
	buffer   sfnt.Buffer
	widths   map[rune]float64
	embedded bool
}

// embed adds the font to the document, once. The file gets only the characters that are
// written.
func (t *typeface) embed(pdf *fpdf.Fpdf) {
	if t.embedded {
		return
	}
	t.embedded = true
	pdf.AddUTF8FontFromBytes(t.family, "", slices.Clone(t.data)) // the library may write into the bytes
}

// width is how wide a character is, in parts of the font's size; negative where the
// font does not have it.
func (t *typeface) width(r rune) float64 {
	if width, known := t.widths[r]; known {
		return width
	}
	width := -1.0
	if glyph, err := t.sfnt.GlyphIndex(&t.buffer, r); err == nil && glyph != 0 {
		advance, err := t.sfnt.GlyphAdvance(&t.buffer, glyph, fixed.I(1000), font.HintingNone)
		if err == nil {
			width = float64(advance) / 64 / 1000
		}
	}
	t.widths[r] = width
	return width
}

// typefaces choose the font of every character of one document. They are not safe
// for concurrent use.
type typefaces struct {
	regular, bold *typeface
	extra         *typeface // nil without
}

func newTypefaces(extra *Font) *typefaces {
	face := func(f *Font) *typeface { return &typeface{Font: f, widths: map[rune]float64{}} }
	fonts := builtIn()
	t := &typefaces{regular: face(fonts[0]), bold: face(fonts[1])}
	if extra != nil {
		t.extra = face(extra)
	}
	return t
}

// style is how a text looks.
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

// replacement stands for a character that no font has.
const replacement = '\uFFFD'

// maxRune is the last character that the PDF library can write.
const maxRune = 0xFFFF

// clean makes a text one line of characters that the fonts have. A letter with a
// mark that they do not have loses the mark.
func (t *typefaces) clean(text string) string {
	if isASCII(text) {
		return text
	}
	var b strings.Builder
	for _, r := range norm.NFC.String(text) {
		switch {
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
		case t.has(r):
			b.WriteRune(r)
		case unicode.Is(unicode.Mn, r):
		default:
			b.WriteRune(t.instead(r))
		}
	}
	return b.String()
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}

func (t *typefaces) has(r rune) bool {
	return r <= maxRune && (t.regular.width(r) >= 0 || t.extra != nil && t.extra.width(r) >= 0)
}

// instead returns the substitute for a character that no font has: the letter without
// its marks, or the replacement character.
func (t *typefaces) instead(r rune) rune {
	base, _ := utf8.DecodeRuneInString(norm.NFKD.String(string(r)))
	if t.has(base) {
		return base
	}
	return replacement
}

// face is the typeface for a character of a clean text.
func (t *typefaces) face(r rune, bold bool) *typeface {
	if t.extra != nil && t.regular.width(r) < 0 && t.extra.width(r) >= 0 {
		return t.extra
	}
	if bold && t.bold.width(r) >= 0 {
		return t.bold
	}
	return t.regular
}

// runs splits a clean text by typeface.
func (t *typefaces) runs(text string, bold bool) []run {
	var list []run
	for i, r := range text {
		face := t.face(r, bold)
		if len(list) == 0 || list[len(list)-1].face != face {
			list = append(list, run{face: face, text: text[i:i]})
		}
		last := &list[len(list)-1]
		last.text = text[i-len(last.text) : i+len(string(r))]
	}
	return list
}

// visual returns the characters of a clean line in visual order, from left to right:
// it reverses those of Hebrew and Arabic. Arabic letters are not joined.
func visual(text string) string {
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

// millimetres is the length of a point.
const millimetres = 25.4 / 72

// width is how wide a clean text is, in millimetres.
func (t *typefaces) width(text string, s style) (sum float64) {
	for _, r := range text {
		sum += max(t.face(r, s.bold).width(r), 0)
	}
	return sum * s.size * millimetres
}

// lines breaks a text into lines of a width in millimetres: at spaces, or within a word
// that is wider than a line. If most is not 0, it cuts the text after that many lines,
// with an ellipsis.
func (t *typefaces) lines(text string, width float64, s style, most int) []string {
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
		if most > 0 && len(lines) > most {
			break
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	if most > 0 && len(lines) > most {
		lines = slices.Clip(lines[:most])
		lines[most-1] = t.ellipsis(lines[most-1]+" …", width, s)
	}
	return lines
}

// breakWord splits a word that is wider than a line: after a character at which an
// address may break, if there is one in the second half of what fits.
func (t *typefaces) breakWord(word string, width float64, s style) (head, tail string) {
	fits, nice := 0, 0
	for i, r := range word {
		end := i + len(string(r))
		if i > 0 && t.width(word[:end], s) > width {
			break
		}
		fits = end
		if strings.ContainsRune("@.-_/", r) {
			nice = end
		}
	}
	if nice > fits/2 {
		fits = nice
	}
	return word[:fits], word[fits:]
}

// ellipsis shortens a text that ends with an ellipsis until it fits.
func (t *typefaces) ellipsis(text string, width float64, s style) string {
	letters := []rune(strings.TrimRight(strings.TrimSuffix(text, "…"), " "))
	for len(letters) > 0 && t.width(string(letters)+"…", s) > width {
		letters = letters[:len(letters)-1]
	}
	return strings.TrimRight(string(letters), " ") + "…"
}

// fit is a text in one line of a width, cut with an ellipsis if it is wider.
func (t *typefaces) fit(text string, width float64, s style) string {
	text = strings.Join(strings.Fields(t.clean(text)), " ")
	if t.width(text, s) <= width {
		return text
	}
	return t.ellipsis(text+"…", width, s)
}
