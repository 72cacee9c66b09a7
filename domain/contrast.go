package domain

import "math"

// The colors of texts on an accent color, and of the border of a button that white would hide.
const (
	blackText  = "#000000"
	whiteText  = "#ffffff"
	grayBorder = "#6b7280"
)

// minBorderContrast is the contrast with white from which a button needs no border of another color.
const minBorderContrast = 1.5

// TextColor returns the color of a text on the color: black or white, whichever has more contrast. Without a color it
// returns black.
func (c AccentColor) TextColor() string {
	red, green, blue, ok := c.RGB()
	if l := luminance(red, green, blue); ok && contrast(1, l) > contrast(l, 0) {
		return whiteText
	}
	return blackText
}

// DarkOnWhite reports whether a text in the color can be read on white: its contrast is then over 4.5 (WCAG 2.2, AA).
func (c AccentColor) DarkOnWhite() bool { return c.TextColor() == whiteText }

// BorderOnWhite returns the color of the border of a button in the color on white: the color itself or, if it can
// hardly be told from white, gray. Without a color it returns gray.
func (c AccentColor) BorderOnWhite() string {
	red, green, blue, ok := c.RGB()
	if !ok || contrast(1, luminance(red, green, blue)) < minBorderContrast {
		return grayBorder
	}
	return string(c)
}

// contrast returns the contrast ratio of two luminances, the lighter one first (WCAG 2.2, "contrast ratio").
func contrast(lighter, darker float64) float64 { return (lighter + 0.05) / (darker + 0.05) }

// luminance returns the relative luminance of a color in sRGB (WCAG 2.2, "relative luminance").
func luminance(red, green, blue uint8) float64 {
	var linear [3]float64
	for i, value := range []uint8{red, green, blue} {
		s := float64(value) / 255
		if linear[i] = s / 12.92; s > 0.04045 {
			linear[i] = math.Pow((s+0.055)/1.055, 2.4)
		}
	}
	return 0.2126*linear[0] + 0.7152*linear[1] + 0.0722*linear[2]
}
