package report

import (
	"context"
	"fmt"
	"io"
	"slices"
)

// WritePDF writes a document as pages of the size A4. extra is a font for characters that the built-in fonts do not
// have. Characters without a font are replaced. extra may be nil.
func WritePDF(ctx context.Context, w io.Writer, d *Document, extra *Font) error {
	l := newLayout(newTypefaces(extra))
	l.drawTitle(d)
	l.head = func() { l.drawRunningHead(d) }

	for i := range d.Sections {
		if err := l.drawSection(ctx, &d.Sections[i]); err != nil {
			return fmt.Errorf("write %q as a pdf: %w", d.Sections[i].Heading, err)
		}
	}
	return l.finish(w, d)
}

// drawTitle draws the top of the first page: the brand, the title, the client, the period if there is one, and the time at which
// the report was made.
func (l *layout) drawTitle(d *Document) {
	l.drawBrand(d.Brand)
	l.add(2.5, l.bar(0, 0, 24, 1.6, accentOf(d.Brand)))
	for _, line := range l.wrap(d.Title, bodyWidth, titleStyle, 2) {
		l.add(9.5, l.words(line, 0, 8, titleStyle))
	}
	for _, line := range l.wrap(d.Client, bodyWidth, clientStyle, 2) {
		l.add(6.5, l.words(line, 0, 5, clientStyle))
	}

	about := "Made " + d.madeAt()
	if period := d.period(); period != "" {
		about = "Period " + period + "  ·  " + about
	}
	l.add(8, l.words(about, 0, 4, smallStyle), l.rule(7))
}

// drawRunningHead draws the header of a page after the first: the title and the period.
func (l *layout) drawRunningHead(d *Document) {
	title := l.fit(d.Title, bodyWidth/2, smallStyle)
	about := l.fit(d.period(), bodyWidth/2, smallStyle)
	l.add(9, l.words(title, 0, 2.8, smallStyle),
		l.words(about, bodyWidth-l.width(about, smallStyle), 2.8, smallStyle), l.rule(4.5))
}

// drawSection draws a section, unless it has no blocks. The heading stays with the first row.
func (l *layout) drawSection(ctx context.Context, s *Section) error {
	if len(s.Blocks) == 0 {
		return nil
	}
	if lines := l.wrap(s.Heading, bodyWidth, headingStyle, 2); len(lines) > 0 {
		l.hold(3.5) // space above
		for _, line := range lines {
			l.hold(6.5, l.words(line, 0, 4.8, headingStyle))
		}
		l.hold(1) // space below
	}

	for blocks := s.Blocks; len(blocks) > 0; {
		drawn := 1 // the number of blocks that this iteration draws
		switch b := blocks[0].(type) {
		case Text:
			l.drawText(b)
		case Figures:
			l.drawFigures(b)
		case Chart:
			drawn = l.chartsSideBySide(blocks)
			l.drawCharts(blocks[:drawn])
		case Table:
			draw := l.drawTable
			if b.Line != nil {
				draw = l.drawParagraph
			}
			if err := draw(ctx, &b, s.Heading); err != nil {
				return err
			}
		}
		blocks = blocks[drawn:]
	}
	return nil
}

// drawText draws a paragraph. Its first two lines are on one page, and its last two lines are on one page.
func (l *layout) drawText(t Text) {
	const height = 4.7
	lines := l.wrap(string(t), bodyWidth, bodyStyle, 0)
	for i, line := range lines {
		linesTogether := 1
		if i == 0 || i == len(lines)-2 {
			linesTogether = min(2, len(lines)-i)
		}
		l.begin(float64(linesTogether) * height)
		l.add(height, l.words(line, 0, 3.5, bodyStyle))
	}
	l.addGap(1.8)
}

// The measures of a card.
const (
	cardsInRow = 4
	cardGap    = 3.0
	cardWidth  = (bodyWidth - (cardsInRow-1)*cardGap) / cardsInRow
	cardHeight = 17.0
	cardInset  = 4.0
)

// drawFigures draws a card for each figure, four in a row.
func (l *layout) drawFigures(list Figures) {
	for cards := range slices.Chunk(list, cardsInRow) {
		var marks []mark
		for i := range cards {
			marks = append(marks, l.card(&cards[i], float64(i)*(cardWidth+cardGap))...)
		}
		l.place(cardHeight, marks...)
		l.addGap(2.5)
	}
}

// card returns the marks of a figure's card at x. A value that is too wide is written smaller, down to 9 points. A note
// that is too wide is written one point smaller. Texts that are still too wide are cut.
func (l *layout) card(f *Figure, x float64) []mark {
	const width = cardWidth - cardInset - 2
	value := valueStyle
	if f.Tone != Neutral {
		value.color = toneColors[f.Tone]
	}
	for value.size > 9 && l.width(l.clean(f.text()), value) > width {
		value.size--
	}
	note := labelStyle
	if l.width(l.clean(f.Note), note) > width {
		note.size--
	}
	at := x + cardInset
	return []mark{
		l.bar(x, 0, cardWidth, cardHeight, pale),
		l.bar(x, 0, 1, cardHeight, toneColors[f.Tone]),
		l.words(l.fit(f.Label, width, labelStyle), at, 4.4, labelStyle),
		l.words(l.fit(f.text(), width, value), at, 10.8, value),
		l.words(l.fit(f.Note, width, note), at, 15, note),
	}
}
