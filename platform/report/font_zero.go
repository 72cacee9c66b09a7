package report

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// glyphPoint is a point of a TrueType outline, in font units. A point that is not on the curve controls it.
type glyphPoint struct {
	x, y int
	on   bool
}

// plainZero returns a copy of a TrueType font whose digit zero is an oval with one counter. The Go fonts have a slashed
// zero, which suits code, but not figures. The new counter has the shape of the zero's outline and the size of the old
// counters together. The error says why the font's zero cannot be replaced.
func plainZero(font []byte) ([]byte, error) {
	f, err := sfnt.Parse(font)
	if err != nil {
		return nil, err
	}
	var buffer sfnt.Buffer
	index, err := f.GlyphIndex(&buffer, '0')
	if err != nil {
		return nil, err
	}
	segments, err := f.LoadGlyph(&buffer, index, fixed.I(int(f.UnitsPerEm())), nil)
	if err != nil {
		return nil, err
	}
	contours := glyphContours(segments)
	if len(contours) < 2 {
		return nil, errors.New("the zero has no counter")
	}

	font = slices.Clone(font)
	glyph := glyphData(font, int(index))
	outline := encodeGlyph(contours[0], counterOf(contours[0], slices.Concat(contours[1:]...)))
	if len(outline) > len(glyph) {
		return nil, errors.New("the plain zero needs more room than the zero has")
	}
	copy(glyph, outline)
	return font, nil
}

// glyphContours returns the contours of a glyph, whose y grows upward as in the font file.
func glyphContours(segments sfnt.Segments) (contours [][]glyphPoint) {
	for _, s := range segments {
		points := []glyphPoint{{s.Args[0].X.Round(), -s.Args[0].Y.Round(), s.Op != sfnt.SegmentOpQuadTo}}
		if s.Op == sfnt.SegmentOpQuadTo {
			points = append(points, glyphPoint{s.Args[1].X.Round(), -s.Args[1].Y.Round(), true})
		}
		if s.Op == sfnt.SegmentOpMoveTo {
			contours = append(contours, points)
			continue
		}
		last := &contours[len(contours)-1]
		*last = append(*last, points...)
	}
	for i, c := range contours { // the last point is the first one again
		contours[i] = c[:len(c)-1]
	}
	return contours
}

// boundsOf returns the bounding box of points.
func boundsOf(points []glyphPoint) (left, bottom, right, top int) {
	left, bottom, right, top = math.MaxInt, math.MaxInt, math.MinInt, math.MinInt
	for _, p := range points {
		left, bottom, right, top = min(left, p.x), min(bottom, p.y), max(right, p.x), max(top, p.y)
	}
	return left, bottom, right, top
}

// counterOf returns the outline, scaled to the bounding box of the points of the old counters. Its direction is the
// reverse of the outline's, as it is to be empty.
func counterOf(outline, counters []glyphPoint) []glyphPoint {
	left, bottom, right, top := boundsOf(outline)
	toLeft, toBottom, toRight, toTop := boundsOf(counters)
	counter := make([]glyphPoint, len(outline))
	for i, p := range outline {
		counter[i] = glyphPoint{
			toLeft + (p.x-left)*(toRight-toLeft)/(right-left), toBottom + (p.y-bottom)*(toTop-toBottom)/(top-bottom), p.on,
		}
	}
	slices.Reverse(counter)
	return counter
}

// glyphData returns the part of a font file that describes a glyph.
func glyphData(font []byte, index int) []byte {
	u16 := func(at int) int { return int(binary.BigEndian.Uint16(font[at:])) }
	u32 := func(at int) int { return int(binary.BigEndian.Uint32(font[at:])) }
	const directory, entry, numTables, indexToLocFormat = 12, 16, 4, 50
	tables := map[string]int{}
	for at := directory; at < directory+entry*u16(numTables); at += entry {
		tables[string(font[at:at+4])] = u32(at + 8)
	}
	offset := func(index int) int { return 2 * u16(tables["loca"]+2*index) }
	if u16(tables["head"]+indexToLocFormat) == 1 {
		offset = func(index int) int { return u32(tables["loca"] + 4*index) }
	}
	return font[tables["glyf"]+offset(index) : tables["glyf"]+offset(index+1)]
}

// encodeGlyph returns the description of a glyph of contours, the outline first, without instructions.
func encodeGlyph(contours ...[]glyphPoint) (data []byte) {
	add := func(values ...int) {
		for _, v := range values {
			data = binary.BigEndian.AppendUint16(data, uint16(int16(v)))
		}
	}
	add(len(contours))
	left, bottom, right, top := boundsOf(contours[0])
	add(left, bottom, right, top)
	end := -1
	for _, c := range contours {
		end += len(c)
		add(end)
	}
	add(0) // the length of the instructions
	points := slices.Concat(contours...)
	for _, p := range points {
		flag := byte(0) // coordinates of two bytes each
		if p.on {
			flag = 1
		}
		data = append(data, flag)
	}
	x, y := 0, 0
	for _, p := range points {
		add(p.x - x)
		x = p.x
	}
	for _, p := range points {
		add(p.y - y)
		y = p.y
	}
	return data
}
