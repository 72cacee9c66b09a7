package report

import (
	"testing"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// TestPlainZero verifies that the zero of the built-in fonts is an oval with one counter, of the outline and the width
// that the fonts have, and that no other digit differs.
func TestPlainZero(t *testing.T) {
	size := fixed.I(1000)
	for i, file := range [][]byte{goregular.TTF, gobold.TTF} {
		before, after := must(sfnt.Parse(file)), builtIn()[i].sfnt
		var buffer sfnt.Buffer
		load := func(f *sfnt.Font, digit rune) (glyph [][]glyphPoint, advance fixed.Int26_6) {
			index := must(f.GlyphIndex(&buffer, digit))
			glyph = glyphContours(must(f.LoadGlyph(&buffer, index, size, nil)))
			return glyph, must(f.GlyphAdvance(&buffer, index, size, font.HintingNone))
		}
		for digit := '0'; digit <= '9'; digit++ {
			was, wide := load(before, digit)
			is, advance := load(after, digit)
			contours := len(was)
			if digit == '0' {
				contours = 2
			}
			if len(is) != contours || advance != wide || len(is[0]) != len(was[0]) || is[0][0] != was[0][0] {
				t.Errorf("font %d, %c: got %d contours and the width %v, want %d and %v", i, digit, len(is), advance, contours, wide)
			}
		}
		zero, _ := load(after, '0')
		left, bottom, right, top := boundsOf(zero[0])
		inLeft, inBottom, inRight, inTop := boundsOf(zero[1])
		if inLeft <= left || inBottom <= bottom || inRight >= right || inTop >= top {
			t.Errorf("font %d: the counter is not within the outline", i)
		}
	}
	if _, err := plainZero([]byte("no font")); err == nil {
		t.Error("got no error for a file that is no font")
	}
}
