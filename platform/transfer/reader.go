package transfer

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// byteOrderMark is what some editors put before a text in UTF-8.
const byteOrderMark = "\uFEFF"

// lineReader reads lines of at most MaxLine bytes and passes over longer ones
// without holding them.
type lineReader struct {
	in     *bufio.Reader
	text   []byte
	number int   // of the last line, from 1
	bytes  int64 // that were read
}

func newLineReader(r io.Reader) *lineReader {
	return &lineReader{in: bufio.NewReaderSize(r, 256<<10)}
}

// next returns the next line without its end and the white space around it, or
// that it is too long; io.EOF after the last. The text is valid until the next
// call.
func (r *lineReader) next() (text []byte, tooLong bool, err error) {
	r.text = r.text[:0]
	size := 0
	for {
		part, err := r.in.ReadSlice('\n')
		r.bytes += int64(len(part))
		size += len(part)
		if tooLong = size > MaxLine+1; !tooLong { // the end of the line is none of it
			r.text = append(r.text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == io.EOF && size > 0, err == nil:
			r.number++
			text = bytes.TrimSuffix(r.text, []byte("\n"))
			if r.number == 1 {
				text = bytes.TrimPrefix(text, []byte(byteOrderMark))
			}
			return bytes.TrimSpace(text), tooLong || len(text) > MaxLine, nil
		default:
			return nil, false, err
		}
	}
}
