package report

import (
	"fmt"

	"partnerapi/domain"
)

// color is a color of a report, red, green and blue.
type color [3]uint8

// The colors of reports.
var (
	ink   = color{0x1B, 0x26, 0x3B}
	gray  = color{0x5B, 0x65, 0x75}
	quiet = color{0x94, 0xA3, 0xB8}
	faint = color{0xD5, 0xDB, 0xE4}
	pale  = color{0xF3, 0xF5, 0xF8}
	white = color{0xFF, 0xFF, 0xFF}
)

// toneColors are the colors of tones.
var toneColors = map[Tone]color{
	Neutral: {0x3E, 0x7C, 0xB1}, Good: {0x1B, 0x7F, 0x4B}, Warning: {0xC2, 0x6A, 0x06}, Bad: {0xB4, 0x23, 0x18},
}

// gradeColors are the colors of the bands of the grades.
var gradeColors = map[domain.Grade]color{
	domain.GradeA: {0xDF, 0xF1, 0xE6}, domain.GradeB: {0xEC, 0xF6, 0xEF}, domain.GradeC: {0xFC, 0xF4, 0xE2},
	domain.GradeD: {0xFB, 0xE8, 0xDC}, domain.GradeF: {0xF6, 0xD9, 0xD6},
}

// accents are the colors of a brand in a report: bar is the brand's own accent color, and text the same or, if it is
// too light to be read on white, ink.
type accents struct{ bar, text color }

// accentsOf returns the colors of a brand; those of the service if the brand has no accent color.
func accentsOf(b domain.Brand) accents {
	c := b.AccentColor
	red, green, blue, ok := c.RGB()
	if !ok {
		c = domain.Accent
		red, green, blue, _ = c.RGB()
	}
	bar := color{red, green, blue}
	if c.DarkOnWhite() {
		return accents{bar, bar}
	}
	return accents{bar, ink}
}

// seriesColors are the colors of a chart's series after the first one, which has the color of the accent.
var seriesColors = []color{
	quiet, {0xE0, 0x8A, 0x1E}, {0x12, 0x9A, 0x8C}, {0xC8, 0x3C, 0x4A}, {0x7A, 0x5B, 0xC4}, {0x5F, 0xA8, 0xE8},
	{0x6B, 0x9E, 0x3F},
}

// series returns the color of a chart's series by its index. The colors repeat.
func (a accents) series(i int) color {
	if i %= len(seriesColors) + 1; i == 0 {
		return a.text
	}
	return seriesColors[i-1]
}

// colors returns the colors of a Donut's labels. A label with a tone has the color of the tone, darker at each
// repetition of the tone. Other labels have the colors of series.
func (c *Chart) colors(a accents) []color {
	colors := make([]color, len(c.Labels))
	for i := range colors {
		colors[i] = a.series(i)
		if i >= len(c.Tones) {
			continue
		}
		colors[i] = toneColors[c.Tones[i]]
		for _, previous := range c.Tones[:i] {
			if previous == c.Tones[i] {
				colors[i] = colors[i].darker()
			}
		}
	}
	return colors
}

// darker returns the color at 60% of its brightness.
func (c color) darker() color {
	for i := range c {
		c[i] = uint8(int(c[i]) * 3 / 5)
	}
	return c
}

// hex returns the color as Excel writes it: six hexadecimal digits.
func (c color) hex() string { return fmt.Sprintf("%02X%02X%02X", c[0], c[1], c[2]) }

// rgb returns the color as the PDF library takes it.
func (c color) rgb() (red, green, blue int) { return int(c[0]), int(c[1]), int(c[2]) }

// The measures of a page, A4, in millimeters.
const (
	pageWidth    = 210.0
	pageHeight   = 297.0
	sideMargin   = 18.0
	topMargin    = 14.0
	bottomMargin = 12.5
	bodyWidth    = pageWidth - 2*sideMargin
	footerHeight = 9.0
	// bodyHeight is the height for the rows of a page, with its header.
	bodyHeight = pageHeight - topMargin - bottomMargin - footerHeight
)

// The styles of texts.
var (
	titleStyle   = style{size: 21, bold: true, color: ink}
	clientStyle  = style{size: 12.5} // in the accent color
	smallStyle   = style{size: 8, color: gray}
	headingStyle = style{size: 13, bold: true, color: ink}
	captionStyle = style{size: 9.5, bold: true, color: ink}
	bodyStyle    = style{size: 9.5, color: ink}
	// paragraphStyle is the style of a table that is a paragraph.
	paragraphStyle = style{size: 8, color: ink}
	labelStyle     = style{size: 7.5, color: gray}
	valueStyle     = style{size: 16, bold: true, color: ink}
	changeStyle    = style{size: 7.5, bold: true, color: gray}
)
