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
	l.accents = accentsOf(d.Brand)
	l.drawTitle(d)
	l.head = func() { l.drawRunningHead(d) }

	for i := range d.Sections {
		if err := l.drawSection(ctx, &d.Sections[i]); err != nil {
			return fmt.Errorf("write %q as a pdf: %w", d.Sections[i].Heading, err)
		}
	}
	return l.finish(w, d)
}

// drawTitle draws the top of the first page: the brand, the title, the client, the period and the one that it is
// compared with, if there are any, and when the report was created.
func (l *layout) drawTitle(d *Document) {
	l.drawBrand(d.Brand)
	l.add(2.5, l.bar(0, 0, 24, 1.6, l.accents.bar))
	for _, line := range l.wrap(d.Title, bodyWidth, titleStyle, 2) {
		l.add(9.5, l.words(line, 0, 8, titleStyle))
	}
	client := clientStyle
	client.color = l.accents.text
	for _, line := range l.wrap(d.Client, bodyWidth, client, 2) {
		l.add(6.5, l.words(line, 0, 5, client))
	}

	about, created := d.period(), d.created()
	if d.Before != nil {
		about += ", compared with " + periodText(*d.Before)
	}
	if about == "" {
		l.add(7.5, l.words(created, 0, 4, smallStyle), l.rule(6.5))
		return
	}
	l.add(7.5, l.words(about, 0, 4, smallStyle), l.words(created, bodyWidth-l.width(created, smallStyle), 4, smallStyle),
		l.rule(6.5))
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
	if s.OnNewPage {
		l.breakPage()
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
	// changeHeight is the height of the line of a change.
	changeHeight = 3.8
)

// drawFigures draws a card for each figure, four in a row. A row in which a figure has a change is higher.
func (l *layout) drawFigures(list Figures) {
	for cards := range slices.Chunk(list, cardsInRow) {
		height := cardHeight
		if slices.ContainsFunc(cards, func(f Figure) bool { return f.Change.Text != "" }) {
			height += changeHeight
		}
		var marks []mark
		for i := range cards {
			marks = append(marks, l.card(&cards[i], float64(i)*(cardWidth+cardGap), height)...)
		}
		l.place(height, marks...)
		l.addGap(2.5)
	}
}

// card returns the marks of a figure's card at x. A value that is too wide is written smaller, down to 9 points. A note
// that is too wide is written one point smaller. Texts that are still too wide are cut.
func (l *layout) card(f *Figure, x, height float64) []mark {
	const width = cardWidth - cardInset - 2
	value, change, edge := valueStyle, changeStyle, quiet
	if f.Tone != Neutral {
		value.color, edge = toneColors[f.Tone], toneColors[f.Tone]
	}
	if f.Change.Verdict != Neutral {
		change.color = toneColors[f.Change.Verdict]
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
		l.bar(x, 0, cardWidth, height, pale),
		l.bar(x, 0, 1, height, edge),
		l.words(l.fit(f.Label, width, labelStyle), at, 4.4, labelStyle),
		l.words(l.fit(f.text(), width, value), at, 10.8, value),
		l.words(l.fit(f.Note, width, note), at, 15, note),
		l.words(l.fit(f.Change.text(), width, change), at, 15+changeHeight, change),
	}
}
