// Package ndjson reads newline-delimited JSON line by line, in bounded memory.
package ndjson

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
)

// byteOrderMark is what some editors put before a text in UTF-8.
const byteOrderMark = "\uFEFF"

// Line is a line of an input, or its end.
type Line struct {
	Number  int    // from 1; at the end that of the last line
	Bytes   int64  // how many of the input were read
	Text    []byte // without its end and the white space around it; none where it is too long
	TooLong bool
	Err     error // what ended the input; io.EOF if nothing is wrong
}

// Lines reads r in the background, and hands on its lines of at most that many bytes,
// their ends not counted, and then what ended it. Empty lines and a byte order mark
// before the first are left out, and longer lines are passed over without holding them.
// It stops at the end of ctx; a read of r goes on waiting then.
func Lines(ctx context.Context, r io.Reader, most int) <-chan Line {
	lines := make(chan Line)
	go func() {
		in := &reader{in: bufio.NewReaderSize(r, 64<<10), most: most}
		for ended := false; !ended; {
			l := in.next()
			ended = l.Err != nil
			if len(l.Text) == 0 && !l.TooLong && !ended {
				continue
			}
			select {
			case lines <- l:
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}

type reader struct {
	in    *bufio.Reader
	most  int
	lines int
	bytes int64
}

// next returns the next line, empty ones too.
func (r *reader) next() Line {
	var text []byte
	size := 0
	for {
		part, err := r.in.ReadSlice('\n')
		r.bytes += int64(len(part))
		size += len(part)
		tooLong := size > r.most+1 // the end of the line is none of it
		if !tooLong {
			text = append(text, part...)
		}

		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == io.EOF && size > 0, err == nil:
			r.lines++
			text = bytes.TrimSuffix(text, []byte("\n"))
			if r.lines == 1 {
				text = bytes.TrimPrefix(text, []byte(byteOrderMark))
			}
			l := Line{Number: r.lines, Bytes: r.bytes, TooLong: tooLong || len(text) > r.most}
			if !l.TooLong {
				l.Text = bytes.TrimSpace(text)
			}
			return l
		default:
			return Line{Number: r.lines, Bytes: r.bytes, Err: err}
		}
	}
}
