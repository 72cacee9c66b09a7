// Package ndjson reads newline-delimited JSON line by line, in bounded memory.
package ndjson

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// byteOrderMark is what some editors put before a text in UTF-8.
const byteOrderMark = "\uFEFF"

// Reader reads lines, and passes over those that are too long without holding them.
type Reader struct {
	// Number is that of the last line, from 1, and Bytes how many were read.
	Number int
	Bytes  int64

	in   *bufio.Reader
	text []byte
	most int
}

// NewReader returns a Reader of lines of at most so many bytes, their ends not
// counted.
func NewReader(r io.Reader, most int) *Reader {
	return &Reader{in: bufio.NewReaderSize(r, 64<<10), most: most}
}

// Next returns the next line without its end and the white space around it, or
// that it is too long; io.EOF after the last. A byte order mark before the first is
// left out. The text is valid until the next call.
func (r *Reader) Next() (text []byte, tooLong bool, err error) {
	r.text = r.text[:0]
	size := 0
	for {
		part, err := r.in.ReadSlice('\n')
		r.Bytes += int64(len(part))
		size += len(part)
		if tooLong = size > r.most+1; !tooLong { // the end of the line is none of it
			r.text = append(r.text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == io.EOF && size > 0, err == nil:
			r.Number++
			text = bytes.TrimSuffix(r.text, []byte("\n"))
			if r.Number == 1 {
				text = bytes.TrimPrefix(text, []byte(byteOrderMark))
			}
			return bytes.TrimSpace(text), tooLong || len(text) > r.most, nil
		default:
			return nil, false, err
		}
	}
}
